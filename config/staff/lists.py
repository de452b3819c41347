"""Admin lists with short pages whose cost does not grow with the table.

Every admin page is a `ModelAdmin` from here. A list that grows with runs and clients is also a
`LargeList`: its rows are not counted, and searches without an index look only at the newest rows.
"""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin
from django.core.exceptions import ValidationError
from django.core.paginator import Paginator
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.template.response import TemplateResponse
from unfold.admin import ModelAdmin as UnfoldModelAdmin
from unfold.contrib.filters.admin import TextFilter
from unfold.paginator import InfinitePaginator

from config.staff.user_search import find_users


class ModelAdmin(UnfoldModelAdmin):  # type: ignore[misc]
    """Unfold's ModelAdmin with short pages and without facet counts."""

    list_per_page = 25
    list_max_show_all = 100
    show_facets = admin.ShowFacets.NEVER

    def render_page(self, request: HttpRequest, template: str, **context: Any) -> TemplateResponse:
        """Return a further page of this admin."""
        shared = self.admin_site.each_context(request) | {"opts": self.opts, "media": self.media}
        return TemplateResponse(request, template, shared | context)


class LargeList:
    """A mixin before `ModelAdmin` for tables with millions of rows.

    A search finds whole values in `found_by` (indexed columns), then substrings in `looked_through`
    and the rows of accounts (`owned_by`), both among the newest `NEWEST` rows by primary key.
    """

    NEWEST: ClassVar = 20_000
    paginator: type[Paginator[Any]] = InfinitePaginator
    show_full_result_count = False
    found_by: ClassVar[tuple[str, ...]] = ()
    looked_through: ClassVar[tuple[str, ...]] = ()
    owned_by: ClassVar = ""

    def get_search_fields(self, request: HttpRequest) -> tuple[str, ...]:
        """Return all searched columns, so that Django shows the search field."""
        return (*self.found_by, *self.looked_through)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        term = search_term.replace("\x00", "").strip()[:200]
        if not term:
            return queryset, False
        for name in self.found_by:
            if (found := _filter_exact(queryset, name, term)) is not None:
                return found, False
        part = Q(pk__in=[])
        for name in self.looked_through:
            part |= Q(**{f"{name}__icontains": term})
        if self.owned_by:
            part |= Q(**{f"{self.owned_by}__in": find_users(term)})
        return newest(queryset, self.NEWEST).filter(part), False


def _filter_exact(queryset: QuerySet[Any], name: str, term: str) -> QuerySet[Any] | None:
    """Return the rows with exactly this value; None if there are none or the value is not valid."""
    try:
        found = queryset.filter(**{name: term})
    except (ValidationError, ValueError):
        return None
    return found if found.exists() else None


def newest(queryset: QuerySet[Any], most: int) -> QuerySet[Any]:
    """Return those of the rows that are among the newest of the whole table, by primary key."""
    keys = queryset.model._base_manager.order_by("-pk").values_list("pk", flat=True)
    floor = next(iter(keys[most : most + 1]), None)
    return queryset if floor is None else queryset.filter(pk__gt=floor)


def newest_filter(column: str, shown: str) -> type[TextFilter]:
    """Return a filter by the whole value of a column without an index, among the newest rows."""

    class Typed(TextFilter):  # type: ignore[misc]
        title = shown
        parameter_name = column

        def queryset(self, request: Any, queryset: QuerySet[Any]) -> QuerySet[Any]:
            value = str(self.value() or "").strip()[:200]
            if not value or "\x00" in value:
                return queryset
            return newest(queryset, LargeList.NEWEST).filter(**{column: value})

    return Typed
