"""Accounts and API tokens in admin.

A token's text appears once, in the message after it was made. That message travels in a cookie of
the browser that asked; the text is never in the database, the admin log or a server log.
"""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group
from django.db.models import Field, ForeignKey, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html
from unfold.admin import ModelAdmin
from unfold.decorators import action, display
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget

from config.auth.bearer import create_api_token, revoke
from config.auth.models import ApiToken, Scope, User, default_scopes

admin.site.unregister(Group)


@admin.register(Group)
class GroupAdmin(DjangoGroupAdmin, ModelAdmin):  # type: ignore[misc]
    """Groups in unfold's clothes."""


@admin.register(User)
class UserAdmin(DjangoUserAdmin, ModelAdmin):  # type: ignore[misc,type-arg]
    """Accounts; those of an identity provider are made by their first request, not here."""

    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_display = ("username", "email", "is_active", "is_staff", "is_guest", "issuer", "last_login")
    list_filter = ("is_active", "is_staff", "is_guest", "groups")
    search_fields = ("username", "email", "issuer", "subject")
    readonly_fields = ("issuer", "subject", "last_login", "date_joined")
    fieldsets: ClassVar = [
        *(DjangoUserAdmin.fieldsets or ()),
        ("Identity", {"fields": ("issuer", "subject", "is_guest")}),
    ]


@admin.register(ApiToken)
class ApiTokenAdmin(ModelAdmin):  # type: ignore[misc]
    """Make API tokens, see when they were used, revoke them."""

    fields = ("user", "name", "scopes", "expires_at")
    list_display = ("shown_prefix", "name", "user", "shown_scopes", "last_used_at", "state")
    list_filter = (("revoked_at", admin.EmptyFieldListFilter), "expires_at")
    autocomplete_fields = ("user",)
    list_select_related = ("user",)
    search_fields = ("name", "prefix", "user__username")
    ordering = ("-created_at",)
    actions: ClassVar = ["revoke_tokens"]

    def get_fields(self, request: HttpRequest, obj: ApiToken | None = None) -> tuple[str, ...]:
        if obj is None:
            return self.fields
        return ("name", "user", "shown_prefix", "shown_scopes", *_MOMENTS)

    def get_readonly_fields(self, request: HttpRequest, obj: ApiToken | None = None) -> tuple[str, ...]:
        """Of a token that exists only the name may change: whoever holds it counts on the rest."""
        return () if obj is None else ("user", "shown_prefix", "shown_scopes", *_MOMENTS)

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        return {"user": request.user.pk}

    def formfield_for_dbfield(
        self, db_field: Field[Any, Any], request: HttpRequest, **kwargs: Any
    ) -> Any:
        if db_field.name != "scopes":
            return super().formfield_for_dbfield(db_field, request, **kwargs)
        return forms.MultipleChoiceField(
            choices=Scope.choices,
            initial=default_scopes,
            widget=UnfoldAdminCheckboxSelectMultipleWidget,
        )

    def formfield_for_foreignkey(
        self, db_field: ForeignKey[Any, Any], request: HttpRequest, **kwargs: Any
    ) -> Any:
        """Only a superuser may make a token that acts as somebody else."""
        if not request.user.is_superuser:
            kwargs["queryset"] = User.objects.filter(username=request.user.get_username())
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def save_model(self, request: HttpRequest, obj: ApiToken, form: Any, change: bool) -> None:
        if change:
            super().save_model(request, obj, form, change)
            return
        made, text = create_api_token(obj.user, obj.name, scopes=obj.scopes, expires_at=obj.expires_at)
        obj.pk, obj.prefix = made.pk, made.prefix
        self.message_user(request, _shown_once(text), messages.WARNING)

    @admin.display(description="token", ordering="prefix")
    def shown_prefix(self, token: ApiToken) -> str:
        return f"{token.prefix}…"

    @admin.display(description="scopes")
    def shown_scopes(self, token: ApiToken) -> str:
        return ", ".join(token.scopes)

    @display(description="state", label={"active": "success", "expired": "warning", "revoked": "danger"})  # type: ignore[untyped-decorator]
    def state(self, token: ApiToken) -> str:
        if token.revoked_at:
            return "revoked"
        return "expired" if token.expires_at and token.expires_at <= timezone.now() else "active"

    @action(description="Revoke the selected API tokens", permissions=["change"])  # type: ignore[untyped-decorator]
    def revoke_tokens(self, request: HttpRequest, tokens: QuerySet[ApiToken]) -> None:
        live = tokens.filter(revoked_at=None)
        for token in live:
            revoke(token)
            self.log_change(request, token, "Revoked.")
        self.message_user(request, "Revoked. They are refused from now on.", messages.SUCCESS)


_MOMENTS = ("created_at", "expires_at", "last_used_at", "revoked_at")


def _shown_once(text: str) -> str:
    return format_html("Copy the token now, it is not shown again: <code>{}</code>", text)
