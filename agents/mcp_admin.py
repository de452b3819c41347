"""MCP servers in admin: what staff save here is offered to runs within two seconds."""

from __future__ import annotations

import asyncio
import json
from typing import Any, ClassVar, Final, cast
from urllib.parse import urlsplit

from django import forms
from django.contrib import admin
from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import Field, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.decorators import method_decorator
from django.views.decorators.debug import sensitive_post_parameters
from unfold.decorators import action
from unfold.widgets import UnfoldAdminTextareaWidget, UnfoldBooleanWidget

from agents.lines import LinesField
from agents.mcp_models import McpServer, McpTransport
from agents.tools.mcp.entering import (
    as_server,
    delete_server,
    masked,
    read_pairs,
    store_pairs,
)
from agents.tools.mcp.naming import model_name, usable_schema
from agents.tools.mcp.opening import Trail, look_once
from agents.tools.mcp.servers import Kind, StdioRefused, check_stdio
from config.auth.models import User
from config.errors import InvalidRequest
from config.listing import ModelAdmin

_KINDS: Final[tuple[Kind, Kind]] = ("headers", "env")


class _OneWay(UnfoldAdminTextareaWidget):  # type: ignore[misc]
    """Lines that are entered and never shown again, not even beside an error."""

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


class McpServerForm(forms.ModelForm):  # type: ignore[type-arg]
    """A server's facts; its secrets go one way."""

    new_headers = _secret("headers", "Name: value")
    new_env = _secret("variables", "NAME=value")
    remove_headers = forms.BooleanField(
        label="Remove the headers", required=False, widget=UnfoldBooleanWidget()
    )
    remove_env = forms.BooleanField(
        label="Remove the variables", required=False, widget=UnfoldBooleanWidget()
    )

    class Meta:
        model = McpServer
        fields: ClassVar = [
            "label", "transport", "url", "command", "args", "all_tools", "allowed_tools",
            "requires_approval", "timeout_s", "is_active",
        ]  # fmt: skip

    def clean_new_headers(self) -> dict[str, str]:
        return self._pairs("headers")

    def clean_new_env(self) -> dict[str, str]:
        return self._pairs("env")

    def clean(self) -> None:
        super().clean()
        facts = self.cleaned_data
        if facts.get("transport") == McpTransport.STDIO:
            self._check_stdio()
        elif "url" in facts and not facts["url"]:
            self.add_error("url", "Enter the server's address.")
        self._check_kept_headers()
        for kind in _KINDS:
            if facts.get(f"new_{kind}") and facts.get(f"remove_{kind}"):
                self.add_error(f"remove_{kind}", "Enter new ones or remove the present ones, not both.")

    def _check_kept_headers(self) -> None:
        """Stored headers go nowhere else: who may edit the address may not thereby read them."""
        facts = self.cleaned_data
        before = self.initial.get("url") or ""
        if not self.instance.headers_id or not facts.get("url"):
            return
        if facts.get("new_headers") or facts.get("remove_headers"):
            return
        if _origin(before) != _origin(facts["url"]):
            self.add_error("url", "Another address needs its headers entered again, or removed.")

    def _pairs(self, kind: Kind) -> dict[str, str]:
        try:
            return read_pairs(kind, self.cleaned_data[f"new_{kind}"])
        except InvalidRequest as refused:
            raise ValidationError(refused.detail) from None

    def _check_stdio(self) -> None:
        facts = self.cleaned_data
        if not facts.get("command"):
            self.add_error("command", "Enter the program to start.")
            return
        try:
            check_stdio(facts["command"], tuple(facts.get("args") or ()), facts.get("new_env") or {})
        except StdioRefused as refused:
            self.add_error("command", str(refused))


@admin.register(McpServer)
class McpServerAdmin(ModelAdmin):
    """Where tools come from."""

    form = McpServerForm
    list_display = ("label", "transport", "url", "command", "all_tools", "is_active", "updated_at")
    list_filter = ("is_active", "transport")
    search_fields = ("label", "url", "command")
    readonly_fields = ("shown_headers", "shown_env")
    actions_detail = ("test_connection",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[McpServer]:
        found: QuerySet[McpServer] = super().get_queryset(request)
        return found.select_related("headers", "env")

    def get_fieldsets(self, request: HttpRequest, obj: McpServer | None = None) -> list[Any]:
        keys = ["shown_headers", "new_headers", *(["remove_headers"] if obj and obj.headers_id else [])]
        keys += ["shown_env", "new_env", *(["remove_env"] if obj and obj.env_id else [])]
        return [
            (None, {"fields": ("label", "transport", "url", "command", "args", "is_active")}),
            ("Headers (HTTP) and variables (stdio)", {"fields": tuple(keys)}),
            ("Tools", {"fields": ("all_tools", "allowed_tools", "requires_approval", "timeout_s")}),
        ]

    def formfield_for_dbfield(
        self, db_field: Field[Any, Any], request: HttpRequest, **kwargs: Any
    ) -> forms.Field | None:
        if isinstance(db_field, ArrayField):
            widget = UnfoldAdminTextareaWidget(attrs={"rows": 4})
            help_text = " ".join(filter(None, ["One a line.", str(db_field.help_text)]))
            return db_field.formfield(form_class=LinesField, widget=widget, help_text=help_text)
        found: forms.Field | None = super().formfield_for_dbfield(db_field, request, **kwargs)
        return found

    @method_decorator(sensitive_post_parameters("new_headers", "new_env"))
    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        response: HttpResponse = super().changeform_view(request, *args, **kwargs)
        return response

    @admin.display(description="Present headers")
    def shown_headers(self, server: McpServer) -> str:
        return "; ".join(masked(server, "headers")) or "–"

    @admin.display(description="Present variables")
    def shown_env(self, server: McpServer) -> str:
        return "; ".join(masked(server, "env")) or "–"

    def save_model(
        self, request: HttpRequest, obj: McpServer, form: McpServerForm, change: bool
    ) -> None:
        super().save_model(request, obj, form, change)
        for kind in _KINDS:
            pairs = form.cleaned_data.get(f"new_{kind}")
            if pairs or form.cleaned_data.get(f"remove_{kind}"):
                store_pairs(obj, kind, pairs or {}, by=_staff(request))

    def delete_model(self, request: HttpRequest, obj: McpServer) -> None:
        delete_server(obj, by=_staff(request))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[McpServer]) -> None:
        for server in queryset:
            delete_server(server, by=_staff(request))

    @action(  # type: ignore[untyped-decorator]
        description="Test connection", url_path="test", permissions=["change"]
    )
    def test_connection(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask first (GET), then connect and list the tools, or say why that failed (POST)."""
        server = self.get_object(request, object_id)
        if server is None:
            raise Http404
        if not self.has_change_permission(request, server):
            raise PermissionDenied
        shown: dict[str, Any] = {"title": f"Test {server.label}", "server": server}
        if request.method == "POST":
            shown |= _tested(server)
        site = self.admin_site.each_context(request)
        return TemplateResponse(request, "admin/agents/mcpserver/test.html", site | shown)


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc.lower()


def _tested(row: McpServer) -> dict[str, Any]:
    server, trail = as_server(row), Trail()
    found = asyncio.run(look_once(server, trail))
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


def _staff(request: HttpRequest) -> User:
    return cast("User", request.user)
