"""MCP servers in admin; a saved server is offered to runs within two seconds."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any, Final

from django import forms
from django.contrib import admin
from django.http import HttpRequest
from unfold.widgets import UnfoldAdminTextareaWidget

from agents.admin.connection_form import ConnectionForm, removal
from agents.models.mcp import McpServer
from agents.tools.mcp.sdk_client import FailureTrail, check_connection
from agents.tools.mcp.secret_pairs import (
    delete_server,
    mask_pairs,
    read_pairs,
    server_from_row,
    store_pairs,
)
from agents.tools.mcp.servers import Kind, StdioRefused, check_stdio
from agents.tools.mcp.tool_definitions import model_name, usable_schema
from config.staff.list_field import LINES
from config.staff.staff_pages import ConnectionAdmin
from prompts.admin.forms import get_staff, show_errors

_KINDS: Final[tuple[Kind, Kind]] = ("headers", "env")


class _OneWay(UnfoldAdminTextareaWidget):  # type: ignore[misc]
    """A text area whose lines are never shown again, not even beside an error."""

    def format_value(self, value: Any) -> None:
        return None


def _secret(label: str, form: str) -> forms.CharField:
    return forms.CharField(
        label=f"New {label}",
        required=False,
        strip=True,
        max_length=40_000,
        widget=_OneWay(attrs={"rows": 3, "autocomplete": "off"}),
        help_text=f"{form} a line; all of them, in place of the present ones. Sealed before they are "
        "stored and never shown again. Empty keeps the present ones.",
    )


class McpServerForm(ConnectionForm):
    """The form of a server; its secrets are entered and never shown."""

    new_headers = _secret("headers", "Name: value")
    new_env = _secret("variables", "NAME=value")
    remove_headers = removal("headers")
    remove_env = removal("variables")

    peer = "server"
    secrets = _KINDS
    not_both = "Enter new ones or remove the present ones, not both."

    def clean_new_headers(self) -> dict[str, str]:
        return self._pairs("headers")

    def clean_new_env(self) -> dict[str, str]:
        return self._pairs("env")

    def _pairs(self, kind: Kind) -> dict[str, str]:
        with show_errors():
            return read_pairs(kind, self.cleaned_data[f"new_{kind}"])

    def explain_refusal(self, command: str, args: Sequence[str]) -> str:
        try:
            check_stdio(command, tuple(args), self.cleaned_data.get("new_env") or {})
        except StdioRefused as refused:
            return str(refused)
        return ""


@admin.register(McpServer)
class McpServerAdmin(ConnectionAdmin):
    """The servers from which tools come."""

    form = McpServerForm
    formfield_overrides = LINES
    list_display = ("label", "transport", "url", "command", "all_tools", "is_active", "updated_at")
    list_filter = ("is_active", "transport")
    search_fields = ("label", "url", "command")
    readonly_fields = ("shown_headers", "shown_env")
    secrets = _KINDS
    test_template = "admin/agents/mcpserver/test.html"

    def get_fieldsets(self, request: HttpRequest, obj: McpServer | None = None) -> list[Any]:
        keys = ["shown_headers", "new_headers", *(["remove_headers"] if obj and obj.headers_id else [])]
        keys += ["shown_env", "new_env", *(["remove_env"] if obj and obj.env_id else [])]
        return [
            (None, {"fields": ("label", "transport", "url", "command", "args", "is_active")}),
            ("Headers (HTTP) and variables (stdio)", {"fields": tuple(keys)}),
            ("Tools", {"fields": ("all_tools", "allowed_tools", "requires_approval", "timeout_s")}),
        ]

    @admin.display(description="Present headers")
    def shown_headers(self, server: McpServer) -> str:
        return "; ".join(mask_pairs(server, "headers")) or "–"

    @admin.display(description="Present variables")
    def shown_env(self, server: McpServer) -> str:
        return "; ".join(mask_pairs(server, "env")) or "–"

    def save_model(
        self, request: HttpRequest, obj: McpServer, form: McpServerForm, change: bool
    ) -> None:
        super().save_model(request, obj, form, change)
        for kind in _KINDS:
            pairs = form.cleaned_data.get(f"new_{kind}")
            if pairs or form.cleaned_data.get(f"remove_{kind}"):
                store_pairs(obj, kind, pairs or {}, by=get_staff(request))

    def delete_model(self, request: HttpRequest, obj: McpServer) -> None:
        delete_server(obj, by=get_staff(request))

    def test(self, row: McpServer) -> dict[str, Any]:
        """Connect and return the tools, or the reason for the failure."""
        server, trail = server_from_row(row), FailureTrail()
        found = asyncio.run(check_connection(server, trail))
        if isinstance(found, str):
            return {"problem": found}
        tools = [
            {
                "name": trail.hide(tool.name),
                "model_name": model_name(row.label, trail.hide(tool.name)),
                "description": trail.hide(tool.description or "")[:4_000],
                "schema": json.dumps(trail.hide_in(tool.input_schema), indent=1, ensure_ascii=False)[
                    :20_000
                ],
                "allowed": server.allows(tool.name),
                "usable": usable_schema(tool.input_schema) is not None,
            }
            for tool in found
        ]
        return {"tools": tools, "connected": True}
