"""Endpoints: an address, and a key that can be written and removed but never read."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.decorators import method_decorator
from django.views.decorators.debug import sensitive_post_parameters
from unfold.admin import ModelAdmin
from unfold.widgets import UnfoldAdminPasswordWidget, UnfoldBooleanWidget

from prompts import actions, secrets
from prompts.admin.forms import refusals_shown, staff
from prompts.models import Endpoint, ProviderDialect


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
        fields: ClassVar = ["name", "provider", "dialect", "base_url", "is_active"]

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


@admin.register(Endpoint)
class EndpointAdmin(ModelAdmin):  # type: ignore[misc]
    """Where models answer."""

    form = EndpointForm
    list_display = ("name", "provider", "dialect", "base_url", "shown_has_key", "is_active")
    list_filter = ("is_active", "dialect")
    search_fields = ("name", "provider", "base_url")
    readonly_fields = ("shown_key",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Endpoint]:
        found: QuerySet[Endpoint] = super().get_queryset(request)
        return found.select_related("secret")

    def get_fieldsets(self, request: HttpRequest, obj: Endpoint | None = None) -> list[Any]:
        kept = ("remove_key",) if obj and obj.secret_id else ()
        facts = ("name", "provider", "dialect", "base_url", "is_active")
        return [(None, {"fields": facts}), ("Key", {"fields": ("shown_key", "key", *kept)})]

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
