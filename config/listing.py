"""Admin's lists: a page of them is small, and nothing of one grows with the table behind it.

Every page of ours in admin is a `ModelAdmin` from here. A list that runs and clients fill is a
`LargeList` too: it is not counted, and what no index finds is looked for among its newest rows.
"""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin
from django.core.exceptions import ValidationError
from django.core.paginator import Paginator
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from unfold.admin import ModelAdmin as UnfoldModelAdmin
from unfold.contrib.filters.admin import TextFilter
from unfold.paginator import InfinitePaginator

from config.finding import users_named


class ModelAdmin(UnfoldModelAdmin):  # type: ignore[misc]
    """Unfold's, with short pages, and without the counts that Django makes beside a list."""

    list_per_page = 25
    list_max_show_all = 100
    show_facets = admin.ShowFacets.NEVER


class LargeList:
    """A list whose table may have millions of rows; mixed in before `ModelAdmin`.

    A search finds whole values in `found_by`, each of which has an index, then parts of words in
    `looked_through` and the rows of accounts (`owned_by`), both among the newest `NEWEST` rows. Rows are
    told apart by age by their key.
    """

    NEWEST: ClassVar = 20_000
    paginator: type[Paginator[Any]] = InfinitePaginator
    show_full_result_count = False
    found_by: ClassVar[tuple[str, ...]] = ()
    looked_through: ClassVar[tuple[str, ...]] = ()
    owned_by: ClassVar = ""

    def get_search_fields(self, request: HttpRequest) -> tuple[str, ...]:
        """For Django to show the search at all."""
        return (*self.found_by, *self.looked_through)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        term = search_term.replace("\x00", "").strip()[:200]
        if not term:
            return queryset, False
        for name in self.found_by:
            if (found := _holding(queryset, name, term)) is not None:
                return found, False
        part = Q(pk__in=[])
        for name in self.looked_through:
            part |= Q(**{f"{name}__icontains": term})
        if self.owned_by:
            part |= Q(**{f"{self.owned_by}__in": users_named(term)})
        return newest(queryset, self.NEWEST).filter(part), False


def _holding(queryset: QuerySet[Any], name: str, term: str) -> QuerySet[Any] | None:
    """The rows with just this value; None if there are none, or if it can be no such value."""
    try:
        found = queryset.filter(**{name: term})
    except (ValidationError, ValueError):
        return None
    return found if found.exists() else None


def newest(queryset: QuerySet[Any], most: int) -> QuerySet[Any]:
    """Those of the rows that are among the newest of their whole table, by the key."""
    keys = queryset.model._base_manager.order_by("-pk").values_list("pk", flat=True)
    floor = next(iter(keys[most : most + 1]), None)
    return queryset if floor is None else queryset.filter(pk__gt=floor)


def among_newest(column: str, shown: str) -> type[TextFilter]:
    """A filter by the whole value of a column without an index."""

    class Typed(TextFilter):  # type: ignore[misc]
        title = shown
        parameter_name = column

        def queryset(self, request: Any, queryset: QuerySet[Any]) -> QuerySet[Any]:
            value = str(self.value() or "").strip()[:200]
            if not value or "\x00" in value:
                return queryset
            return newest(queryset, LargeList.NEWEST).filter(**{column: value})

    return Typed
