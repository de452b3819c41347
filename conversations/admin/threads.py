"""Threads in admin: the text of a conversation. Read-only: the log is the truth, not this page."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, ClassVar, Final
from uuid import UUID

from django.contrib import admin
from django.db import connection
from django.db.models import Model, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from unfold.decorators import action

from config.audit.recording import record
from config.http.slow_readers import patiently
from config.staff.lists import ModelAdmin
from config.staff.staff_pages import ReadOnly
from config.staff.user_search import find_users
from conversations.admin.conversation_page import fetch_page
from conversations.admin.export import FORMATS, export
from conversations.admin.filters import NEWEST, OF_RUNS, PAGINATOR, ThreadChangeList, filter_by_owners
from conversations.identifiers import uuid_of
from conversations.models import Run, Thread
from conversations.threads.staff_search import find_threads_holding

_SEARCHED_USERS: Final = 50


class UuidSearch:
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


@admin.register(Thread)
class ThreadAdmin(UuidSearch, ReadOnly, ModelAdmin):
    """Conversations, latest first; each with its transcript, and as a file."""

    list_display = ("title_or_id", "owner", "last_seq", "created_at", "updated_at")
    list_select_related: ClassVar = ["owner"]
    list_filter: ClassVar = OF_RUNS
    list_filter_submit = True
    search_fields: ClassVar = ["=id"]
    search_help_text = "Words, an id, or a user's name"
    list_after_template = "admin/conversations/window.html"
    ordering = ("-updated_at",)
    paginator = PAGINATOR
    show_full_result_count = False
    sortable_by = ("updated_at",)
    fields = ("title", "owner", "id", ("created_at", "updated_at", "archived_at"))
    change_form_after_template = "admin/conversations/thread/transcript.html"
    actions_detail: ClassVar = ["export_json", "export_markdown"]

    class Media:
        css: ClassVar = {"all": ["conversations/admin.css"]}

    @admin.display(description="Conversation", ordering="title")
    def title_or_id(self, thread: Thread) -> str:
        return str(thread)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return defer_large_columns(request, super().get_queryset(request), "state", "summary")

    def get_changelist(self, request: HttpRequest, **more: Any) -> type[ThreadChangeList]:
        return ThreadChangeList

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Search the messages' text, the ids of thread and run, and the user's name."""
        term = search_term.replace("\x00", "").strip()
        if not term:
            return queryset, False
        try:
            found_id = UUID(term)
        except ValueError:
            ids = find_threads_holding(term)
            if users := find_users(term)[:_SEARCHED_USERS]:
                ids += filter_by_owners(Thread.objects.all(), users).values_list("pk", flat=True)[
                    :NEWEST
                ]
            return queryset.filter(pk__in=ids), False
        of_run = Run.objects.filter(pk=found_id).values("thread_id")
        return queryset.filter(Q(pk=found_id) | Q(pk__in=of_run) | Q(owner_id=found_id)), False

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        shown: dict[str, Any] = {}
        if (thread_id := uuid_of(object_id)) and self.has_view_permission(request):
            before, branch = _parse_place(request.GET.get("before")), uuid_of(request.GET.get("branch"))
            shown = {"conversation": fetch_page(thread_id, before=before, branch=branch)}
        response: HttpResponse = super().changeform_view(
            request, object_id, form_url, (extra_context or {}) | shown
        )
        if thread_id and response.status_code == HTTPStatus.OK:
            record_access("read", Thread(pk=thread_id))
        return response

    @action(description="Export JSON", url_path="export-json", permissions=["view"])  # type: ignore[untyped-decorator]
    def export_json(self, request: HttpRequest, object_id: str) -> HttpResponseBase:
        return _file(object_id, "json")

    @action(description="Export Markdown", url_path="export-markdown", permissions=["view"])  # type: ignore[untyped-decorator]
    def export_markdown(self, request: HttpRequest, object_id: str) -> HttpResponseBase:
        return _file(object_id, "md")


def record_access(action: str, subject: Model, **after: Any) -> None:
    """Record a staff access to a user's content; the entry names the object by its id, not a title."""
    record(action, subject, name=str(subject.pk), after=after)


def defer_large_columns(request: HttpRequest, queryset: QuerySet[Any], *columns: str) -> QuerySet[Any]:
    """Return rows for a list, without the large columns that it does not show."""
    match = request.resolver_match
    is_list = match is not None and (match.url_name or "").endswith("_changelist")
    return queryset.defer(*columns) if is_list else queryset


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
