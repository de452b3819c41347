"""Admin of endpoints: an address, and a write-only key."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from django import forms
from django.contrib import admin
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from unfold.widgets import UnfoldAdminPasswordWidget, UnfoldBooleanWidget

from config.staff.staff_pages import ConnectionAdmin
from prompts.addresses import same_origin
from prompts.admin import hooks
from prompts.admin.forms import CheckedField, get_staff
from prompts.endpoints import secrets
from prompts.models import Endpoint, ProviderDialect
from prompts.wordings import staff_actions

_BASE_URL_HELP: Final = format_html(
    "The base URL that the provider documents for its own clients:{}",
    format_html_join(
        "",
        "<br><b>{}</b>: {}",
        [
            ("openai.chat_completions", "https://api.openai.com/v1, http://ollama:11434/v1"),
            ("openai.responses", "https://api.openai.com/v1"),
            ("anthropic.messages", "https://api.anthropic.com"),
            ("gemini.generate_content", "https://generativelanguage.googleapis.com"),
        ],
    ),
)


def _check_key(key: str) -> None:
    if key:
        secrets.check_key(key)


class EndpointForm(forms.ModelForm):  # type: ignore[type-arg]
    """An endpoint with a write-only key."""

    key = CheckedField(
        _check_key,
        label="New key",
        widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "new-password"}),
        help_text="The key is encrypted and never shown again. Leave empty to keep the present one.",
    )
    remove_key = forms.BooleanField(label="Remove the key", required=False, widget=UnfoldBooleanWidget())

    class Meta:
        help_texts: ClassVar = {"base_url": _BASE_URL_HELP}

    def clean_base_url(self) -> str:
        address: str = self.cleaned_data["base_url"]
        return address.rstrip("/")

    def clean(self) -> None:
        super().clean()
        facts = self.cleaned_data
        needs_address = facts.get("dialect") != ProviderDialect.DEMO
        if needs_address and "base_url" in facts and not facts["base_url"]:
            self.add_error("base_url", "Enter the provider's address. Only the demo needs none.")
        if facts.get("key") and facts.get("remove_key"):
            self.add_error("remove_key", "Enter a new key or remove the present one, not both.")
        self._check_kept_key()

    def _check_kept_key(self) -> None:
        """Never send a stored key to another address: staff could read the key in this way."""
        facts = self.cleaned_data
        kept = self.instance.secret_id and not facts.get("key") and not facts.get("remove_key")
        before = self.initial.get("base_url", "")
        if kept and "base_url" in facts and not same_origin(before, facts["base_url"]):
            self.add_error("base_url", "Enter the key for the new address, or remove the key.")


@admin.register(Endpoint)
class EndpointAdmin(ConnectionAdmin):
    """The servers of models."""

    form = EndpointForm
    list_display = ("name", "provider", "dialect", "base_url", "shown_has_key", "is_active")
    list_filter = ("is_active", "dialect")
    search_fields = ("name", "provider", "base_url")
    readonly_fields = ("shown_key",)
    secrets = ("secret",)
    test_template = "prompts/test_endpoint.html"

    def get_fieldsets(self, request: HttpRequest, obj: Endpoint | None = None) -> list[Any]:
        kept = ("remove_key",) if obj and obj.secret_id else ()
        facts = ("name", "provider", "dialect", "base_url", "images_by_url", "is_active")
        return [(None, {"fields": facts}), ("Key", {"fields": ("needs_key", "shown_key", "key", *kept)})]

    @admin.display(description="Has key", boolean=True)
    def shown_has_key(self, endpoint: Endpoint) -> bool:
        return endpoint.secret_id is not None

    @admin.display(description="Present key")
    def shown_key(self, endpoint: Endpoint) -> str:
        return endpoint.secret.mask if endpoint.secret else "–"

    def save_model(self, request: HttpRequest, obj: Endpoint, form: EndpointForm, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if form.cleaned_data.get("key") or form.cleaned_data.get("remove_key"):
            staff_actions.rotate_secret(obj, form.cleaned_data["key"], by=get_staff(request))

    def delete_model(self, request: HttpRequest, obj: Endpoint) -> None:
        staff_actions.delete_endpoint(obj, by=get_staff(request))

    def test(self, row: Endpoint) -> dict[str, Any]:
        """Return the provider's models or the error."""
        works, message, names = hooks.test_endpoint(row)
        return {"tested": True, "works": works, "message": message, "names": names}
