"""Threads in admin: the text of a conversation. Read-only: the log is the truth, not this page."""

from __future__ import annotations

from typing import Any, ClassVar, Final
from uuid import UUID

from django.contrib import admin
from django.db import connection
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponseBase, StreamingHttpResponse
from unfold.decorators import action

from config.http.slow_readers import patiently
from config.staff.user_search import find_users
from conversations.admin.content_pages import ContentAdmin, record_access
from conversations.admin.conversation_page import fetch_page
from conversations.admin.export import FORMATS, export
from conversations.admin.filters import NEWEST, OF_RUNS, ThreadChangeList, filter_by_owners
from conversations.identifiers import uuid_of
from conversations.models import Run, Thread
from conversations.threads.staff_search import find_threads_holding

_SEARCHED_USERS: Final = 50


@admin.register(Thread)
class ThreadAdmin(ContentAdmin):
    """Conversations, latest first; each with its transcript, and as a file."""

    list_display = ("title_or_id", "owner", "last_seq", "created_at", "updated_at")
    list_filter: ClassVar = OF_RUNS
    search_help_text = "Words, an id, or a user's name"
    ordering = ("-updated_at",)
    sortable_by = ("updated_at",)
    fields = ("title", "owner", "id", ("created_at", "updated_at", "archived_at"))
    change_form_after_template = "admin/conversations/thread/transcript.html"
    actions_detail: ClassVar = ["export_json", "export_markdown"]
    large_columns = ("state", "summary")

    @admin.display(description="Conversation", ordering="title")
    def title_or_id(self, thread: Thread) -> str:
        return str(thread)

    def get_changelist(self, request: HttpRequest, **more: Any) -> type[ThreadChangeList]:
        return ThreadChangeList

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Search the messages' text, the ids of thread and run, and the user's name."""
        term = search_term.replace("\x00", "").strip()
        if not term:
            return queryset, False
        found_id = uuid_of(term)
        if found_id is None:
            ids = find_threads_holding(term)
            if users := find_users(term)[:_SEARCHED_USERS]:
                ids += filter_by_owners(Thread.objects.all(), users).values_list("pk", flat=True)[
                    :NEWEST
                ]
            return queryset.filter(pk__in=ids), False
        of_run = Run.objects.filter(pk=found_id).values("thread_id")
        return queryset.filter(Q(pk=found_id) | Q(pk__in=of_run) | Q(owner_id=found_id)), False

    def content(self, request: HttpRequest, row_id: UUID) -> dict[str, Any]:
        before, branch = _parse_place(request.GET.get("before")), uuid_of(request.GET.get("branch"))
        return {"conversation": fetch_page(row_id, before=before, branch=branch)}

    @action(description="Export JSON", url_path="export-json", permissions=["view"])  # type: ignore[untyped-decorator]
    def export_json(self, request: HttpRequest, object_id: str) -> HttpResponseBase:
        return _file(object_id, "json")

    @action(description="Export Markdown", url_path="export-markdown", permissions=["view"])  # type: ignore[untyped-decorator]
    def export_markdown(self, request: HttpRequest, object_id: str) -> HttpResponseBase:
        return _file(object_id, "md")


def _parse_place(text: str | None) -> int | None:
    """Return a place in a thread, from an address that anybody may type."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) <= 9 else None


def _file(object_id: str, form: str) -> HttpResponseBase:
    thread_id = uuid_of(object_id)
    if thread_id is None or not Thread.objects.filter(pk=thread_id).exists():
        raise Http404
    record_access("exported", Thread(pk=thread_id), format=form)
    connection.close()  # else this request's operating-system thread holds it while they read
    name = f'attachment; filename="conversation-{thread_id}.{form}"'
    return StreamingHttpResponse(
        patiently(export(thread_id, form)),
        content_type=FORMATS[form],
        headers={"Content-Disposition": name, "Cache-Control": "no-store"},
    )
