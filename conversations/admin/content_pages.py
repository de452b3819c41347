"""The base of the admin pages that show what users wrote. Read-only, and each reading is recorded."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, ClassVar
from uuid import UUID

from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse

from config.audit.recording import record
from config.staff.lists import ModelAdmin
from config.staff.staff_pages import ReadOnly
from conversations.admin.filters import PAGINATOR
from conversations.identifiers import uuid_of


class ContentAdmin(ReadOnly, ModelAdmin):
    """Admin of rows with an owner; its list leaves out `large_columns`, which it does not show."""

    large_columns: ClassVar[tuple[str, ...]]
    list_select_related: ClassVar = ["owner"]
    list_filter_submit = True
    list_after_template = "admin/conversations/window.html"
    search_fields: ClassVar = ["=id"]
    paginator = PAGINATOR
    show_full_result_count = False

    class Media:
        css: ClassVar = {"all": ["conversations/admin.css"]}

    def content(self, request: HttpRequest, row_id: UUID) -> dict[str, Any]:
        """Return what the page shows below the row's fields."""
        raise NotImplementedError

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request)
        name = (request.resolver_match and request.resolver_match.url_name) or ""
        return rows.defer(*self.large_columns) if name.endswith("_changelist") else rows

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        row_id = uuid_of(object_id)
        shown = self.content(request, row_id) if row_id and self.has_view_permission(request) else {}
        response: HttpResponse = super().changeform_view(
            request, object_id, form_url, (extra_context or {}) | shown
        )
        if row_id and response.status_code == HTTPStatus.OK:
            record_access("read", self.model(pk=row_id))
        return response


def record_access(action: str, subject: Model, **after: Any) -> None:
    """Record a staff access to a user's content; the entry names the object by its id, not a title."""
    record(action, subject, name=str(subject.pk), after=after)
