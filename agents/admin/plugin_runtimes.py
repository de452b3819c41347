"""Plugin runtimes in admin; a saved runtime is connected within two seconds."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

import structlog
from django import forms
from django.conf import settings
from django.contrib import admin
from django.db import transaction
from django.http import HttpRequest
from django.utils.html import format_html_join
from unfold.decorators import display
from unfold.widgets import UnfoldAdminPasswordWidget

from agents.admin.connection_form import ConnectionForm, removal
from agents.models.plugins import PluginRuntime, PluginStatus
from agents.runtimes.plugins.connection_check import CheckResult, check_connection, is_live
from config.process.subprocesses import is_allowed
from config.staff.list_field import LINES
from config.staff.staff_pages import ConnectionAdmin
from prompts.admin.forms import get_staff, show_errors
from prompts.endpoints import secrets

log = structlog.get_logger(__name__)
_STATE: Final = ("shown_status", "problem", "spoken", "listed_runners", "left_out", "seen_at")


class PluginRuntimeForm(ConnectionForm):
    """The form of a runtime; its token is entered and never shown."""

    new_token = forms.CharField(
        label="New token",
        required=False,
        widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "new-password"}),
        help_text="What the runtime's LANGBOT_PLUGIN_RUNTIME_CONTROL_TOKEN is set to, if it is. Sealed "
        "before it is stored and never shown again. Empty keeps the present one.",
    )
    remove_token = removal("token")

    peer = "runtime"
    secrets = ("token",)
    not_both = "Enter a new token or remove the present one, not both."

    def clean_new_token(self) -> str:
        token: str = self.cleaned_data["new_token"]
        if token:
            with show_errors():
                secrets.check_key(token)
        return token

    def explain_refusal(self, command: str, args: Sequence[str]) -> str:
        if is_allowed([command, *args], settings.RUNNER_COMMANDS):
            return ""
        return "This command line is not allowed here: whoever runs Parley adds it to RUNNER_COMMANDS."


@admin.register(PluginRuntime)
class PluginRuntimeAdmin(ConnectionAdmin):
    """The runtimes in which remote runners live."""

    form = PluginRuntimeForm
    formfield_overrides = LINES
    list_display = (
        "name",
        "transport",
        "address",
        "shown_status",
        "shown_runners",
        "seen_at",
        "is_active",
    )
    list_filter = ("is_active", "transport", "status")
    search_fields = ("name", "url", "command")
    readonly_fields = ("shown_token", *_STATE)
    secrets = ("token",)
    test_template = "admin/agents/pluginruntime/test.html"

    def get_fieldsets(self, request: HttpRequest, obj: PluginRuntime | None = None) -> list[Any]:
        kept = ("remove_token",) if obj and obj.token_id else ()
        facts = ("name", "transport", "url", "command", "args", "directory", "profile", "is_active")
        return [
            (None, {"fields": facts}),
            ("Token", {"fields": ("shown_token", "new_token", *kept)}),
            *([("Now", {"fields": _STATE})] if obj else []),
        ]

    @admin.display(description="Address")
    def address(self, row: PluginRuntime) -> str:
        return row.url or " ".join([row.command, *row.args])

    @display(  # type: ignore[untyped-decorator]
        description="Status",
        label={"connected": "success", "failed": "danger", "waiting": "warning", "off": "info"},
    )
    def shown_status(self, row: PluginRuntime) -> str:
        if not row.is_active:
            return "off"
        if row.status == PluginStatus.CONNECTED and not is_live(row):
            return str(PluginStatus.WAITING)  # the worker that wrote it is gone
        return row.status

    @admin.display(description="Runners")
    def shown_runners(self, row: PluginRuntime) -> str:
        passed_over = f" ({len(row.passed_over)} passed over)" if row.passed_over else ""
        return f"{len(row.runners)}{passed_over}"

    @admin.display(description="Runners")
    def listed_runners(self, row: PluginRuntime) -> str:
        return ", ".join(one["id"] for one in row.runners) or "–"

    @admin.display(description="Passed over")
    def left_out(self, row: PluginRuntime) -> str:
        return format_html_join("", "<p>{}</p>", ((why,) for why in row.passed_over)) or "–"

    @admin.display(description="Present token")
    def shown_token(self, row: PluginRuntime) -> str:
        return row.token.mask if row.token else "–"

    @transaction.atomic
    def save_model(
        self, request: HttpRequest, obj: PluginRuntime, form: PluginRuntimeForm, change: bool
    ) -> None:
        super().save_model(request, obj, form, change)
        if token := form.cleaned_data.get("new_token"):
            obj.token = secrets.store(secrets.Purpose.PLUGIN_RUNTIME.of(obj.pk), token)
            obj.save(update_fields=["token", "updated_at"])
        elif form.cleaned_data.get("remove_token") and obj.token is not None:
            obj.token.delete()
        log.info("plugin runtime changed", runtime=obj.name, by=get_staff(request).get_username())

    @transaction.atomic
    def delete_model(self, request: HttpRequest, obj: PluginRuntime) -> None:
        if obj.token is not None:
            obj.token.delete()
        log.info("plugin runtime deleted", runtime=obj.name, by=get_staff(request).get_username())
        obj.delete()

    def test(self, row: PluginRuntime) -> dict[str, Any]:
        """Connect and return the runners, or the reason for the failure."""
        found = asyncio.run(check_connection(row))
        return {"look": found} if isinstance(found, CheckResult) else {"problem": found}
