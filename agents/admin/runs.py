"""Runs in admin: status, timings, tokens, the event timeline, and "cancel". Nothing is edited."""

from __future__ import annotations

from typing import Any, ClassVar, Final
from uuid import UUID

import msgspec
from django import forms
from django.contrib import admin, messages
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from unfold.decorators import action, display
from unfold.widgets import UnfoldAdminSelectWidget

from agents import requests
from agents.intake.prompt_override import PERMISSION
from agents.intake.rerun import MARK, rerun
from agents.intake.submit import cancel_run
from agents.runners.system_message import system_message
from agents.runners.thinkingml import form_instructions
from config.database import run_sync
from config.errors import ParleyError
from conversations import events
from conversations.admin.content_pages import ContentAdmin, record_access
from conversations.admin.filters import OF_RUNS, DialectFilter, limit_to_window
from conversations.identifiers import uuid_of
from conversations.models import LIVE, Run, RunStatus
from conversations.runs.client_queries import milliseconds_between
from conversations.runs.event_timeline import fetch_events, fetch_state_read, make_rows
from conversations.runs.metadata_search import METADATA_MOST, find_runs_with_metadata
from conversations.runs.timeline import measure_run, render_svg
from conversations.usage import usd
from prompts.models import PromptKind, PromptVersion
from prompts.wordings import template
from prompts.wordings.active import read_recorded_message

_VERSIONS: Final = 200
_UNFILLED: Final = "This run did not record what stood for the variables: they are shown as written."


class RerunForm(forms.Form):
    """The choice of a prompt version in place of the active one of its kind."""

    version = forms.ModelChoiceField(
        queryset=PromptVersion.objects.none(),
        required=False,
        empty_label="The versions in use",
        widget=UnfoldAdminSelectWidget,
        label="Prompt version",
        help_text="The newest versions of all prompts. The model and everything else stay as they were.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        known = PromptVersion.objects.filter(prompt__deleted_at=None, prompt__kind__in=PromptKind.values)
        newest = list(known.order_by("-pk").values_list("pk", flat=True)[:_VERSIONS])
        of_newest = (
            known.filter(pk__in=newest).select_related("prompt").order_by("prompt__name", "-number")
        )
        self.fields["version"].queryset = of_newest  # type: ignore[attr-defined]


def _tab(title: str, *fields: str | tuple[str, ...]) -> tuple[str, dict[str, Any]]:
    return title, {"fields": fields, "classes": ("tab",)}


@admin.register(Run)
class RunAdmin(ContentAdmin):
    """Runs, newest first."""

    list_display = (
        "begun",
        "short_id",
        "status_label",
        "model",
        "owner",
        "queue_ms",
        "first_token_ms",
        "total_ms",
        "output_tokens",
        "cost",
    )
    list_filter: ClassVar = [*OF_RUNS, DialectFilter]
    search_help_text = "An id of run, conversation, request or user, or a value of a run's metadata"
    ordering = ("-created_at",)
    sortable_by = ("begun",)
    change_form_after_template = "admin/conversations/run/timeline.html"
    actions_detail: ClassVar = ["rerun", "cancel"]
    large_columns = ("request", "model_usage", "error_message", "prompt_versions", "prompt_values")
    readonly_fields = (
        "queue_ms",
        "first_token_ms",
        "total_ms",
        "cost",
        "by_model",
        "thread_link",
        "effective_system",
        "given_feedback",
        "rerun_of",
    )
    fieldsets: ClassVar = [
        (
            None,
            {
                "fields": (
                    ("status", "error_code"),
                    ("queue_ms", "first_token_ms", "total_ms"),
                    ("input_tokens", "output_tokens", "cost"),
                    "attempt",
                )
            },
        ),
        _tab("Who and where", "model", "owner", "thread_link", "rerun_of", "given_feedback"),
        _tab(
            "Answer",
            ("provider", "finish_reason"),
            "resolved_model",
            "endpoint_id",
            ("cached_tokens", "cache_write_tokens", "reasoning_tokens"),
            "by_model",
            "prompt_versions",
        ),
        _tab(
            "Execution",
            ("created_at", "started_at"),
            ("first_token_at", "finished_at"),
            ("deadline_at", "cancel_requested_at"),
            ("lease_until", "fence"),
            "worker",
            "error_message",
        ),
        _tab(
            "Request",
            ("id", "client_run_id"),
            ("dialect", "request_id"),
            "effective_system",
            "request",
        ),
    ]

    @admin.display(description="Created", ordering="created_at")
    def begun(self, run: Run) -> str:
        return timezone.localtime(run.created_at).strftime("%Y-%m-%d %H:%M:%S")

    @admin.display(description="Run", ordering="id")
    def short_id(self, run: Run) -> str:
        return format_html(
            '<code class="whitespace-nowrap" title="{}">…{}</code>', run.id.hex, run.id.hex[-8:]
        )

    @display(  # type: ignore[untyped-decorator]
        description="Status",
        ordering="status",
        label={
            RunStatus.COMPLETED: "success",
            RunStatus.FAILED: "danger",
            RunStatus.CANCELLED: "warning",
            RunStatus.RUNNING: "info",
        },
    )
    def status_label(self, run: Run) -> tuple[str, str]:
        """Return the status, with the code of the error."""
        code = run.error_code if run.error_code != RunStatus.CANCELLED else ""
        return run.status, f"{run.get_status_display()}: {code}" if code else run.get_status_display()

    @admin.display(description="Queue, ms")
    def queue_ms(self, run: Run) -> int | None:
        return milliseconds_between(run.created_at, run.started_at)

    @admin.display(description="First token, ms")
    def first_token_ms(self, run: Run) -> int | None:
        return milliseconds_between(run.created_at, run.first_token_at)

    @admin.display(description="Total, ms")
    def total_ms(self, run: Run) -> int | None:
        return milliseconds_between(run.created_at, run.finished_at)

    @admin.display(description="Cost (USD)", ordering="cost_usd")
    def cost(self, run: Run) -> str:
        """Return the known cost, and the number of tokens that have no price."""
        known = usd(run.cost_usd) or ("unknown" if run.unpriced_tokens else "–")
        if run.cost_usd is None or not run.unpriced_tokens:
            return known
        return f"{known} + {run.unpriced_tokens} tokens without a price"

    @admin.display(description="By model")
    def by_model(self, run: Run) -> str:
        rows = [
            (
                f"{used['provider']} · {used['model']}",
                used["calls"],
                used["input_tokens"],
                used["output_tokens"],
                used["cost_usd"] or "unknown",
            )
            for used in run.model_usage
        ]
        line = "<div>{}: {} × asked, {} tokens in, {} out, USD {}</div>"
        return format_html_join("", line, rows) if rows else "–"

    @admin.display(description="Thread")
    def thread_link(self, run: Run) -> str:
        return _link("admin:conversations_thread_change", run.thread_id, shown=run.thread_id)

    @admin.display(description="Re-run of")
    def rerun_of(self, run: Run) -> str:
        original = uuid_of((run.request.get("metadata") or {}).get(MARK))
        if original is None:
            return "–"
        return _link("admin:conversations_run_change", original, shown=original.hex)

    @admin.display(description="Feedback")
    def given_feedback(self, run: Run) -> str:
        opinions = [
            (f"{one}", ", ".join(one.tags), one.comment, one.user)
            for one in run.feedback.select_related("user").order_by("-updated_at")[:20]
        ]
        return format_html_join("", "<p>{} {} {} ({})</p>", opinions) or "–"

    @admin.display(description="System message")
    def effective_system(self, run: Run) -> str:
        """Return the message that the model received: versions, values, tools, context and state."""
        request = requests.load(msgspec.json.encode(run.request))
        prompts = read_recorded_message(run.prompt_versions)
        unfilled = run.prompt_values is None and template.has_variables(prompts)
        if not unfilled:
            prompts = template.fill(prompts, run.prompt_values or {})
        state = fetch_state_read(run.pk) if request.state is None else request.state
        form, instructions = form_instructions(request.result_mode), request.instructions
        message = system_message(
            prompts, request.tools, request.context, state, form=form, instructions=instructions
        )
        note = format_html("<p>{}</p>", _UNFILLED) if unfilled else ""
        return format_html('{}<pre class="whitespace-pre-wrap">{}</pre>', note, message or "–")

    def content(self, request: HttpRequest, row_id: UUID) -> dict[str, Any]:
        """Return a drawing of the run's time, and its events."""
        some = fetch_events(row_id)
        drawn = render_svg(measure_run(some, now_ms=events.now_ms()))
        return {"timeline": list(make_rows(some)), "drawn": drawn}

    @action(description="Cancel run", url_path="cancel", permissions=["cancel"])  # type: ignore[untyped-decorator]
    def cancel(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask for confirmation (GET), then cancel (POST): a link must not end a run."""
        run = _find_run(object_id)
        if run.status in LIVE and request.method != "POST":
            template = "admin/conversations/run/confirm_cancel.html"
            return self.render_page(request, template, title="Cancel run", run=run)
        if run.status not in LIVE:
            messages.info(request, "The run has ended already.")
        else:
            run_sync(cancel_run(run.id))
            record_access("cancelled", run)
            messages.success(request, "Cancelling: the run ends within two seconds.")
        return HttpResponseRedirect(reverse("admin:conversations_run_change", args=[object_id]))

    @action(description="Run again…", url_path="rerun", permissions=["rerun"])  # type: ignore[untyped-decorator]
    def rerun(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show the choice of a prompt version (GET), then start a run of the caller's own (POST)."""
        run = _find_run(object_id)
        form = RerunForm(request.POST if request.method == "POST" else None)
        if not form.is_valid():
            template = "admin/conversations/run/rerun.html"
            return self.render_page(request, template, title="Run again", run=run, form=form)
        version = form.cleaned_data["version"]
        try:
            started = run_sync(
                rerun(run.pk, by=request.user.pk, version_id=version.pk if version else None)  # type: ignore[arg-type]
            )
        except ParleyError as error:
            messages.error(request, error.detail)
            return HttpResponseRedirect(reverse("admin:conversations_run_change", args=[run.pk]))
        record_access("run again", run, run=str(started.run_id))
        messages.success(request, "Started in a conversation of your own; the original is untouched.")
        return HttpResponseRedirect(reverse("admin:conversations_run_change", args=[started.run_id]))

    def has_rerun_permission(self, request: HttpRequest, object_id: str | None = None) -> bool:
        """Return whether the user may read the run and try prompts: the new run is their own."""
        user = request.user
        return user.is_active and user.has_perms(("conversations.view_run", PERMISSION))

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Return runs by an id of ours or a value of `metadata`, or the newest by the client's ids."""
        term = search_term.replace("\x00", "").strip()[:200]
        if not term:
            return queryset, False
        if (identifier := uuid_of(term)) is not None:
            of_id = queryset.filter(Q(pk=identifier) | Q(thread_id=identifier) | Q(owner_id=identifier))
            if of_id.exists():
                return of_id, False
        named = limit_to_window(request, queryset).filter(Q(client_run_id=term) | Q(request_id=term))
        if not (found := find_runs_with_metadata(term)):
            return named, False
        found += named.values_list("pk", flat=True)[:METADATA_MOST]
        return queryset.filter(pk__in=found), False

    def get_actions_detail(self, request: HttpRequest, object_id: str) -> list[Any]:
        """Return the actions: only a live run can be cancelled."""
        found: list[Any] = super().get_actions_detail(request, object_id)
        run_id = uuid_of(object_id)
        live = run_id and Run.objects.filter(pk=run_id, status__in=LIVE).exists()
        return [one for one in found if live or not one.action_name.endswith("_cancel")]

    def has_cancel_permission(self, request: HttpRequest, object_id: str | None = None) -> bool:
        return request.user.is_active and request.user.has_perm("conversations.change_run")


def _find_run(object_id: str) -> Run:
    return get_object_or_404(Run.objects.select_related("owner"), pk=uuid_of(object_id))


def _link(address: str, key: UUID, *, shown: object) -> str:
    url = reverse(address, args=[key])
    styled = '<a class="text-primary-600 dark:text-primary-500 underline" href="{}">{}</a>'
    return format_html(styled, url, shown)
