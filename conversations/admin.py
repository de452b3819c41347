"""Threads in admin: a conversation as it was said. Read-only: the log is the truth, not this page."""

from __future__ import annotations

from typing import Any, ClassVar
from uuid import UUID

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.admin import ModelAdmin, TabularInline

from conversations.models import Message, Thread


class ReadOnly:
    """Admin that shows and never saves."""

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class FoundById:
    """Search that finds a UUID however it is written: clients see 32 hex digits."""

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        search: Any = super().get_search_results  # type: ignore[misc]
        found, doubled = search(request, queryset, search_term)
        try:
            same_id = str(UUID(search_term))
        except ValueError:
            return found, doubled
        return found | search(request, queryset, same_id)[0], doubled


class MessageInline(ReadOnly, TabularInline):  # type: ignore[misc]
    """The messages of a thread, in order."""

    model = Message
    fields = ("seq", "role", "content", "stage", "tool_name", "latency_ms", "created_at")
    readonly_fields = fields
    ordering = ("seq",)
    extra = 0
    per_page = 50
    show_change_link = False
    verbose_name_plural = "messages"


@admin.register(Thread)
class ThreadAdmin(FoundById, ReadOnly, ModelAdmin):  # type: ignore[misc]
    """Conversations, newest first."""

    list_display = ("title_or_id", "owner", "last_seq", "created_at", "updated_at")
    list_select_related: ClassVar = ["owner"]
    list_filter: ClassVar = ["created_at"]
    search_fields: ClassVar = ["=id", "title", "owner__username"]
    ordering = ("-updated_at",)
    show_full_result_count = False
    list_per_page = 50
    fields = ("id", "title", "owner", "last_seq", "created_at", "updated_at", "archived_at")
    inlines: ClassVar = [MessageInline]

    @admin.display(description="Thread", ordering="title")
    def title_or_id(self, thread: Thread) -> str:
        return str(thread)
