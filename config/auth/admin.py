"""Admin of accounts and API tokens.

The text of a token appears once, in the message after its creation. That message travels in a cookie
of the browser; the text is never in the database, the admin log or a server log.
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
from unfold.decorators import action, display
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm
from unfold.paginator import InfinitePaginator
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget

from config.auth.bearer import create_api_token, revoke
from config.auth.models import ApiToken, Scope, User, default_scopes
from config.staff.lists import LargeList, ModelAdmin
from config.staff.user_search import LIMIT, find_users

admin.site.unregister(Group)


@admin.register(Group)
class GroupAdmin(DjangoGroupAdmin, ModelAdmin):
    """Groups, in the style of unfold."""


@admin.register(User)
class UserAdmin(DjangoUserAdmin, ModelAdmin):  # type: ignore[type-arg]
    """Accounts; those of an identity provider are created by their first request, not here."""

    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_display = ("username", "email", "is_active", "is_staff", "is_guest", "issuer", "last_login")
    list_filter = ("is_active", "is_staff", "is_guest", "groups")
    search_fields = ("username", "email", "issuer", "subject")
    search_help_text = "The beginning of a name or an address, an id, or an identity's whole subject"
    sortable_by = ("username",)
    paginator = InfinitePaginator
    show_full_result_count = False
    readonly_fields = ("issuer", "subject", "last_login", "date_joined")
    fieldsets: ClassVar = [
        *(DjangoUserAdmin.fieldsets or ()),
        ("Identity", {"fields": ("issuer", "subject", "is_guest")}),
    ]

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[User], search_term: str
    ) -> tuple[QuerySet[User], bool]:
        """Search by indexed values; see `config.staff.user_search`."""
        term = search_term.replace("\x00", "").strip()[:500]
        if not term:
            return queryset, False
        identities = User.objects.filter(subject=term).values_list("pk", flat=True)[:LIMIT]
        return queryset.filter(pk__in=[*find_users(term), *identities]), False

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> tuple[str, ...]:
        """Allow only superusers to create superusers or to grant permissions besides roles."""
        found = tuple(super().get_readonly_fields(request, obj))
        return found if request.user.is_superuser else (*found, "is_superuser", "user_permissions")

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return super().has_change_permission(request, obj) and _may_touch(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return super().has_delete_permission(request, obj) and _may_touch(request, obj)


class ApiTokenForm(forms.ModelForm):  # type: ignore[type-arg]
    """A new token; its expiry must be in the future."""

    def clean_expires_at(self) -> Any:
        moment = self.cleaned_data["expires_at"]
        if moment is not None and moment <= timezone.now():
            raise forms.ValidationError("Enter a future time, or nothing for a token without expiry.")
        return moment


@admin.register(ApiToken)
class ApiTokenAdmin(LargeList, ModelAdmin):
    """Pages to create API tokens, see their last use and revoke them."""

    form = ApiTokenForm
    fields = ("user", "name", "scopes", "expires_at")
    list_display = ("shown_prefix", "name", "user", "shown_scopes", "last_used_at", "state")
    list_filter = (("revoked_at", admin.EmptyFieldListFilter), "expires_at")
    autocomplete_fields = ("user",)
    list_select_related = ("user",)
    found_by = ("prefix",)
    looked_through = ("name",)
    owned_by = "user"
    search_help_text = "The beginning of a token or of its user's name, or a part of its name"
    ordering = ("-id",)
    sortable_by = ()
    actions: ClassVar = ["revoke_tokens"]

    def get_fields(self, request: HttpRequest, obj: ApiToken | None = None) -> tuple[str, ...]:
        if obj is None:
            return self.fields
        return ("name", "user", "shown_prefix", "shown_scopes", *_MOMENTS)

    def get_readonly_fields(self, request: HttpRequest, obj: ApiToken | None = None) -> tuple[str, ...]:
        """Allow only the name of an existing token to change: its clients rely on the rest."""
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
        """Allow only superusers to create tokens of other accounts."""
        if not request.user.is_superuser:
            kwargs["queryset"] = User.objects.filter(username=request.user.get_username())
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def save_model(self, request: HttpRequest, obj: ApiToken, form: Any, change: bool) -> None:
        if change:
            super().save_model(request, obj, form, change)
            return
        token, text = create_api_token(obj.user, obj.name, scopes=obj.scopes, expires_at=obj.expires_at)
        obj.pk, obj.prefix = token.pk, token.prefix
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
        self.message_user(request, "The tokens are revoked and refused from now on.", messages.SUCCESS)


def _may_touch(request: HttpRequest, account: User | None) -> bool:
    """Allow only superusers to change a superuser's account, whose password opens everything."""
    return account is None or not account.is_superuser or bool(request.user.is_superuser)


_MOMENTS = ("created_at", "expires_at", "last_used_at", "revoked_at")


def _shown_once(text: str) -> str:
    return format_html("Copy the token now. It is not shown again: <code>{}</code>", text)
