"""Admin of the audit log: read-only, with search by actor, action, time and object.

An account sees only entries about objects that it may view, so the log does not bypass permissions.
"""

from __future__ import annotations

import json
from typing import Any, ClassVar, Final

from django.apps import apps
from django.contrib import admin
from django.contrib.admin import SimpleListFilter
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import mark_safe

from config.audit.models import AuditEntry
from config.staff.lists import LargeList, ModelAdmin
from config.staff.staff_pages import ReadOnly

_LONGEST_IN_LIST = 160


class KindFilter(SimpleListFilter):
    """A filter by the kinds of objects that the account may view."""

    title = "kind of object"
    parameter_name = "kind"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(label, _kind_name(label)) for label in sorted(_visible(request))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[AuditEntry]) -> QuerySet[AuditEntry]:
        return queryset.filter(object_type=self.value()) if self.value() else queryset


class ActionFilter(SimpleListFilter):
    """A filter by the first word of the action."""

    title = "action"
    parameter_name = "did"
    _WORDS = ("added", "changed", "deleted", "saved", "activated", "deactivated", "rolled back",
              "label", "split", "key", "imported", "revoked", "made", "read", "exported", "run again",
              "cancelled", "approved", "refused", "signed in", "sign-in refused")  # fmt: skip

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(word, word) for word in self._WORDS]

    def queryset(self, request: HttpRequest, queryset: QuerySet[AuditEntry]) -> QuerySet[AuditEntry]:
        word = self.value()
        return queryset.filter(action__startswith=word) if word else queryset


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnly, LargeList, ModelAdmin):
    """The list of entries, newest first."""

    list_display = ("moment", "actor_name", "action", "kind", "shown_object", "shown_changes")
    list_filter: ClassVar = [KindFilter, ActionFilter, "at"]
    found_by = ("actor_name", "object_id", "request_id")
    looked_through = ("object_name",)
    search_help_text = (
        "A whole user name, an object's id, a request id, or a part of a newer object's name"
    )
    ordering = ("-id",)
    sortable_by = ("moment",)
    fields = ("moment", "actor_name", "action", "kind", "shown_object", "shown_difference", "request_id")
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[AuditEntry]:
        found: QuerySet[AuditEntry] = super().get_queryset(request)
        if request.user.is_superuser:
            return found
        return found.filter(object_type__in=_visible(request))

    @admin.display(description="When", ordering="id")
    def moment(self, entry: AuditEntry) -> str:
        return timezone.localtime(entry.at).strftime("%Y-%m-%d %H:%M:%S")

    @admin.display(description="Kind", ordering="object_type")
    def kind(self, entry: AuditEntry) -> str:
        return _kind_name(entry.object_type)

    @admin.display(description="Object")
    def shown_object(self, entry: AuditEntry) -> str:
        url = _page_of(entry)
        if not url:
            return entry.object_name
        return format_html('<a class="text-link" href="{}">{}</a>', url, entry.object_name)

    @admin.display(description="Changes")
    def shown_changes(self, entry: AuditEntry) -> str:
        names = list(dict.fromkeys([*entry.before, *entry.after]))
        text = "; ".join(_line(name, entry) for name in names)
        return text if len(text) <= _LONGEST_IN_LIST else f"{text[:_LONGEST_IN_LIST]}…"

    @admin.display(description="Before and after")
    def shown_difference(self, entry: AuditEntry) -> str:
        names = list(dict.fromkeys([*entry.before, *entry.after]))
        if not names:
            return "–"
        rows = format_html_join(
            "",
            "<tr><th scope='row'>{}</th><td><pre>{}</pre></td><td><pre>{}</pre></td></tr>",
            [(name, _text(entry.before, name), _text(entry.after, name)) for name in names],
        )
        return format_html('<table class="audit-difference">{}<tbody>{}</tbody></table>', _HEAD, rows)


_HEAD: Final = mark_safe(
    "<thead><tr><th scope='col'>Field</th><th scope='col'>Before</th><th scope='col'>After</th></tr>"
    "</thead>"
)


def _line(name: str, entry: AuditEntry) -> str:
    before, after = _text(entry.before, name), _text(entry.after, name)
    if name in entry.before and name in entry.after:
        return f"{name}: {before or '–'} → {after or '–'}"
    return f"{name}: {after or before}"


def _text(facts: dict[str, Any], name: str) -> str:
    value = facts.get(name)
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _visible(request: HttpRequest) -> set[str]:
    """Return the kinds of objects that this account may view."""
    return {
        model._meta.label_lower
        for model in apps.get_models()
        if model in admin.site._registry
        and request.user.has_perm(f"{model._meta.app_label}.view_{model._meta.model_name}")
    }


def _kind_name(label: str) -> str:
    try:
        return str(apps.get_model(label)._meta.verbose_name)
    except (LookupError, ValueError):
        return label


def _page_of(entry: AuditEntry) -> str:
    try:
        return reverse(f"admin:{entry.object_type.replace('.', '_')}_change", args=[entry.object_id])
    except NoReverseMatch:
        return ""
