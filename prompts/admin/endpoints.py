"""Endpoints: an address, and a key that can be written and removed but never read."""

from __future__ import annotations

from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.decorators import method_decorator
from django.utils.html import format_html, format_html_join
from django.views.decorators.debug import sensitive_post_parameters
from unfold.decorators import action
from unfold.widgets import UnfoldAdminPasswordWidget, UnfoldBooleanWidget

from config.listing import ModelAdmin
from prompts import actions, given, secrets
from prompts.admin.forms import refusals_shown, staff
from prompts.models import Endpoint, ProviderDialect

_BASE_URL_HELP: Final = format_html(
    "As the provider gives it to its own clients:{}",
    format_html_join(
        "",
        "<br><b>{}</b>: {}",
        [
            (
                "openai.chat_completions",
                "https://api.openai.com/v1, http://ollama:11434/v1",
            ),
            ("openai.responses", "https://api.openai.com/v1"),
            ("anthropic.messages", "https://api.anthropic.com"),
            ("gemini.generate_content", "https://generativelanguage.googleapis.com"),
        ],
    ),
)


class EndpointForm(forms.ModelForm):  # type: ignore[type-arg]
    """An endpoint's facts, and its key going one way."""

    key = forms.CharField(
        label="New key",
        required=False,
        widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "new-password"}),
        help_text="Sealed before it is stored and never shown again. Empty keeps the present one.",
    )
    remove_key = forms.BooleanField(label="Remove the key", required=False, widget=UnfoldBooleanWidget())

    class Meta:
        model = Endpoint
        fields: ClassVar = [
            "name",
            "provider",
            "dialect",
            "base_url",
            "images_by_url",
            "needs_key",
            "is_active",
        ]
        help_texts: ClassVar = {"base_url": _BASE_URL_HELP}

    def clean_base_url(self) -> str:
        address: str = self.cleaned_data["base_url"]
        return address.rstrip("/")

    def clean_key(self) -> str:
        key: str = self.cleaned_data["key"]
        if key:
            with refusals_shown():
                secrets.check_key(key)
        return key

    def clean(self) -> None:
        super().clean()
        facts = self.cleaned_data
        needs_address = facts.get("dialect") != ProviderDialect.DEMO
        if needs_address and "base_url" in facts and not facts["base_url"]:
            self.add_error("base_url", "Enter the provider's address; only the demo needs none.")
        if facts.get("key") and facts.get("remove_key"):
            self.add_error("remove_key", "Enter a new key or remove the present one, not both.")
        self._check_kept_key()

    def _check_kept_key(self) -> None:
        """A stored key goes nowhere else: who may edit the address may not thereby read the key."""
        facts = self.cleaned_data
        if not self.instance.secret_id or facts.get("key") or facts.get("remove_key"):
            return
        if "base_url" in facts and _origin(self.initial.get("base_url", "")) != _origin(
            facts["base_url"]
        ):
            self.add_error("base_url", "Another address needs its key entered again, or removed.")


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc.lower()


@admin.register(Endpoint)
class EndpointAdmin(ModelAdmin):
    """Where models answer."""

    form = EndpointForm
    list_display = ("name", "provider", "dialect", "base_url", "shown_has_key", "is_active")
    list_filter = ("is_active", "dialect")
    search_fields = ("name", "provider", "base_url")
    readonly_fields = ("shown_key",)
    actions_detail = ("test_connection",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Endpoint]:
        found: QuerySet[Endpoint] = super().get_queryset(request)
        return found.select_related("secret")

    def get_fieldsets(self, request: HttpRequest, obj: Endpoint | None = None) -> list[Any]:
        kept = ("remove_key",) if obj and obj.secret_id else ()
        facts = ("name", "provider", "dialect", "base_url", "images_by_url", "is_active")
        return [(None, {"fields": facts}), ("Key", {"fields": ("needs_key", "shown_key", "key", *kept)})]

    @method_decorator(sensitive_post_parameters("key"))
    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        response: HttpResponse = super().changeform_view(request, *args, **kwargs)
        return response

    @admin.display(description="Has key", boolean=True)
    def shown_has_key(self, endpoint: Endpoint) -> bool:
        return endpoint.secret_id is not None

    @admin.display(description="Present key")
    def shown_key(self, endpoint: Endpoint) -> str:
        return endpoint.secret.mask if endpoint.secret else "–"

    def save_model(self, request: HttpRequest, obj: Endpoint, form: EndpointForm, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if form.cleaned_data.get("key") or form.cleaned_data.get("remove_key"):
            actions.rotate_secret(obj, form.cleaned_data["key"], by=staff(request))

    def delete_model(self, request: HttpRequest, obj: Endpoint) -> None:
        actions.delete_endpoint(obj, by=staff(request))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Endpoint]) -> None:
        for endpoint in queryset:
            actions.delete_endpoint(endpoint, by=staff(request))

    @action(  # type: ignore[untyped-decorator]
        description="Test connection", url_path="test", permissions=["change"]
    )
    def test_connection(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask first (GET), then ask the provider for its models, or say why that failed (POST)."""
        endpoint: Endpoint | None = self.get_object(request, object_id)
        if endpoint is None:
            raise Http404
        if not self.has_change_permission(request, endpoint):
            raise PermissionDenied
        shown: dict[str, Any] = {"title": f"Test {endpoint.name}", "endpoint": endpoint}
        if request.method == "POST":
            works, said, names = given.test_endpoint(endpoint)
            shown |= {"tested": True, "works": works, "said": said, "names": names}
        site = self.admin_site.each_context(request)
        return TemplateResponse(request, "prompts/test_endpoint.html", site | shown)
