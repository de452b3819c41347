"""The bindings of runs to runners, with the grants of each, and the audit of Host calls."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models.functions import Now

from agents.host_protocol.runner_id import home_of
from agents.models.fields import known_choice, optional_key, optional_text, text_list


class Delivery(models.TextChoices):
    """The form in which an answer reaches the client."""

    STREAM = "stream", "as it is said"
    WHOLE = "whole", "whole messages only"


def is_runner_id(value: str) -> None:
    """Raise ValidationError for a text that is no runner's id."""
    try:
        home_of(value)
    except ValueError as problem:
        raise ValidationError(str(problem)) from None


class RunnerBinding(models.Model):
    """A rule: runs that fit all of its conditions go to this runner, with these grants.

    Of the rules that fit, the one with the lowest position applies; without one a run goes to the
    model-driven runner.
    """

    name = models.CharField(max_length=100, unique=True)
    runner_id = models.CharField(
        "runner",
        max_length=320,
        validators=[is_runner_id],
        help_text="For example python:echo or plugin:author/name/runner; the page Runners lists them.",
    )
    is_active = models.BooleanField(default=True)
    position = models.PositiveIntegerField(
        default=100, help_text="Rules are tried from the lowest; the first that fits counts."
    )

    # conditions
    model = optional_text(
        "Only runs that ask for this model, for example global:xai. Empty: any.", longest=200
    )
    dialect = optional_text(
        "Only runs asked for in this protocol: text, run-agent-input, ag-ui, agent-api, "
        "responses or runner. Empty: any.",
        longest=32,
    )
    prompt = optional_key("prompts.Prompt", "Only runs that are told this prompt.")
    user = optional_key(settings.AUTH_USER_MODEL, "Only this account's runs.")
    tier = optional_key(
        "prompts.Tier",
        "Only runs of accounts of this tier and those above it.",
        on_delete=models.PROTECT,
    )
    thread_id = models.UUIDField(
        "conversation", null=True, blank=True, help_text="Only runs of this conversation."
    )

    # grants and limits
    config = models.JSONField(
        default=dict, blank=True,
        help_text="What the runner's form asks for. Models, tools and knowledge bases chosen here are "
        "granted, as far as the runner's own permissions go.",
    )  # fmt: skip
    own_model = models.BooleanField(
        "may ask the run's model", default=True, help_text="The model that the client asked for."
    )
    further_models = text_list("Further models that it may ask, by public name, one a line.")
    tools = text_list("Tools that it may call, one a line; * are all that the run's user is granted.")
    knowledge_bases = text_list("Knowledge bases that it may search, by name, one a line.")
    storage = text_list(
        "Of plugin, workspace, binding: where it may keep bytes, one a line.", longest=16
    )
    platform_actions = text_list(
        "Platform actions that it may request, one a line; each still needs its tool policy's approval."
    )
    state_enabled = models.BooleanField("may keep state", default=True)
    state_scopes = text_list(
        "Of conversation, actor, subject, runner: whose state. Empty: all four.", longest=16
    )
    calls_per_minute = models.PositiveIntegerField(
        default=6_000, help_text="Host calls of one run a minute; 0 is no limit."
    )
    deadline_s = models.PositiveIntegerField(
        "deadline", null=True, blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(86_400)],
        help_text="Seconds for one run. Empty: as long as the run has.",
    )  # fmt: skip
    delivery = models.CharField(max_length=16, choices=Delivery, default=Delivery.STREAM)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering: ClassVar = ["position", "id"]
        constraints: ClassVar = [known_choice("delivery", Delivery, name="binding_delivery_known")]

    def __str__(self) -> str:
        return self.name


class HostCall(models.Model):
    """A runner's call of the Host, accepted or refused, for the audit; SQL writes the rows in batches.

    It holds no content and no key to another row: it outlives its run, for HOST_AUDIT_DAYS.
    """

    at = models.DateTimeField(db_default=Now())
    run_id = models.UUIDField(null=True)
    runner_id = models.CharField(max_length=320)
    binding_id = models.IntegerField(null=True)
    action = models.CharField(max_length=64)
    resource = models.CharField(max_length=200, blank=True)
    scope = models.CharField(max_length=64, blank=True)
    result = models.CharField(max_length=32, help_text="ok, or the code of the refusal.")
    elapsed_us = models.IntegerField("elapsed, µs")

    class Meta:
        ordering: ClassVar = ["-at"]
        indexes: ClassVar = [
            models.Index(fields=["-at"], name="hostcall_by_time"),
            models.Index(fields=["run_id"], name="hostcall_of_run"),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.result}"
