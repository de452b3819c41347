"""Filters of admin's lists of runs and conversations that stay fast at any size.

Django's own filter on a text column queries its distinct values, which reads the whole table; here
a value is typed in. A column without an index is searched among the newest `WINDOW` runs before
the end of the chosen days. Conversations are found by their runs: by the newest `NEWEST` that fit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import date, datetime, time, timedelta
from typing import Any, ClassVar, Final
from uuid import UUID

from django.core.paginator import Paginator
from django.db.models import Q, QuerySet
from django.db.models.expressions import RawSQL
from django.utils import timezone
from unfold.contrib.filters.admin import DropdownFilter, RangeDateFilter, TextFilter
from unfold.paginator import InfinitePaginator
from unfold.views import ChangeList

from config.staff.user_search import find_users
from conversations.models import Feedback, Run, RunStatus

NEWEST: Final = 5_000
WINDOW: Final = 20_000
_DAY: Final = timedelta(days=1)
_NAMED_VERSION: Final = re.compile(r"(?P<name>.*\S)\s+v(?P<number>\d{1,9})")


class _RunCondition:
    """A filter whose value is a condition on runs; a conversation fits if one of its runs does."""

    def queryset(self, request: Any, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = str(self.value() or "").strip()[:200]  # type: ignore[attr-defined]
        if not value or "\x00" in value:
            return queryset
        begin = _window_begin(request)
        condition = self.condition(value)
        return filter_by_runs(
            request, queryset, condition & Q(created_at__gte=begin) if begin else condition
        )

    def condition(self, value: str) -> Q:
        raise NotImplementedError


def _window_begin(request: Any) -> datetime | None:
    """Return the creation time of the oldest run that filters read; None if there are few. Cached."""
    if not hasattr(request, "runs_since"):
        runs = Run.objects.order_by("-created_at")
        if (end := _window_end(request.GET)) is not None:
            runs = runs.filter(created_at__lt=end)
        times = runs.values_list("created_at", flat=True)
        request.runs_since = next(iter(times[WINDOW : WINDOW + 1]), None)
    since: datetime | None = request.runs_since
    return since


def _window_end(parameters: Any) -> datetime | None:
    """Return the end of the requested time, from the days in the filter or a link of a chart."""
    if (day := _midnight(parameters.get("created_at_to"))) is not None:
        return day + _DAY
    try:
        moment = datetime.fromisoformat(parameters.get("created_at__lt") or "")
    except ValueError:
        return None
    return moment if timezone.is_aware(moment) else timezone.make_aware(moment)


def _midnight(day: object) -> datetime | None:
    """Return the beginning of a day (`YYYY-MM-DD`) in the server's time zone; None for other text."""
    try:
        return timezone.make_aware(datetime.combine(date.fromisoformat(str(day or "")), time.min))
    except (ValueError, OverflowError):
        return None


def filter_by_runs(request: Any, queryset: QuerySet[Any], condition: Q) -> QuerySet[Any]:
    """Return the runs that fit; for conversations all, until `ListOfThreads` has every condition."""
    if queryset.model is Run:
        return queryset.filter(condition)
    request.of_runs = getattr(request, "of_runs", Q()) & condition
    return queryset


class ThreadChangeList(ChangeList):  # type: ignore[misc]
    """Conversations with a run that fits every filter at once, among the newest of those that do."""

    def get_queryset(self, request: Any, exclude_parameters: Any = None) -> QuerySet[Any]:
        request.of_runs = Q()
        found: QuerySet[Any] = super().get_queryset(request, exclude_parameters)
        if not request.of_runs:
            return found
        fit = Run.objects.filter(request.of_runs).order_by("-created_at")
        return found.filter(pk__in=fit.values("thread_id")[:NEWEST])


class UserFilter(TextFilter):  # type: ignore[misc]
    """Filter by the user's id, or by the beginning of the name or the address."""

    title = "user"
    parameter_name = "user"

    def queryset(self, request: Any, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = str(self.value() or "").strip()[:200]
        if not value or "\x00" in value:
            return queryset
        return filter_by_owners(queryset, find_users(value))


_OF_EACH: Final = """
(SELECT own.id FROM unnest(%s::uuid[]) named(id) CROSS JOIN LATERAL (
    SELECT id FROM {table} WHERE owner_id = named.id ORDER BY {order} DESC LIMIT {most}) own)
"""
_MOST_OF_EACH: Final = 25
_MOST_USERS: Final = 40


def filter_by_owners(queryset: QuerySet[Any], users: list[UUID]) -> QuerySet[Any]:
    """Return the rows of one user; of several the newest of each, read by the index, not by a walk."""
    if len(users) == 1:
        return queryset.filter(owner_id=users[0])
    meta = queryset.model._meta
    order = "created_at" if queryset.model is Run else "updated_at"
    some = _OF_EACH.format(table=meta.db_table, order=order, most=_MOST_OF_EACH)
    return queryset.filter(pk__in=RawSQL(some, [users[:_MOST_USERS]]))


def limit_to_window(request: Any, queryset: QuerySet[Any]) -> QuerySet[Any]:
    """Return those of these runs that the filters read."""
    begin = _window_begin(request)
    return queryset.filter(created_at__gte=begin) if begin else queryset


def _by_text(parameter: str, shown: str, fits: Callable[[str], Q]) -> type[TextFilter]:
    """Return a filter of runs by a typed value."""

    class Typed(_RunCondition, TextFilter):  # type: ignore[misc]
        title = shown
        parameter_name = parameter

        def condition(self, value: str) -> Q:
            return fits(value)

    return Typed


def _of_version(value: str) -> Q:
    """Return the runs with a prompt version, by its id, as `name v3`, or by the name alone."""
    if value.isascii() and value.isdigit() and len(value) <= 9:
        return Q(prompt_versions__contains=[{"version_id": int(value)}])
    named = _NAMED_VERSION.fullmatch(value)
    if named is None:
        return Q(prompt_versions__contains=[{"name": value}])
    version = {"name": named["name"], "number": int(named["number"])}
    return Q(prompt_versions__contains=[version])


ModelFilter: Final = _by_text(  # the model that was requested, or that answered
    "model",
    "model",
    lambda value: Q(model__in=[value, f"global:{value}"]) | Q(resolved_model=value),
)
DialectFilter: Final = _by_text("dialect", "dialect", lambda value: Q(dialect=value))
PromptVersionFilter: Final = _by_text("prompt_version", "prompt version (id, or name v3)", _of_version)
ErrorFilter: Final = _by_text(
    "error_code",
    "error code, or any",
    lambda value: ~Q(error_code="") if value == "any" else Q(error_code=value),
)


class StatusFilter(_RunCondition, DropdownFilter):  # type: ignore[misc]
    """Filter by the run's status."""

    title = "status"
    parameter_name = "status"

    def lookups(self, request: Any, model_admin: Any) -> Iterable[tuple[str, str]]:
        return RunStatus.choices

    def condition(self, value: str) -> Q:
        return Q(status=value)


class DayFilter(RangeDateFilter):  # type: ignore[misc]
    """Filter from one day to another, both included, in the server's time zone."""

    def queryset(self, request: Any, queryset: QuerySet[Any]) -> QuerySet[Any]:
        name = self.parameter_name
        parameters = self.used_parameters
        begin, end = (_midnight(parameters.get(f"{name}_{side}")) for side in ("from", "to"))
        if begin is not None:
            queryset = queryset.filter(self.condition("gte", begin))
        return queryset if end is None else queryset.filter(self.condition("lt", end + _DAY))

    def condition(self, lookup: str, at: datetime) -> Q:
        """Return the condition that rows are from this moment on (`gte`) or before it (`lt`)."""
        return Q(**{f"{self.parameter_name}__{lookup}": at})


class FeedbackFilter(DropdownFilter):  # type: ignore[misc]
    """Filter by users' feedback."""

    title = "feedback"
    parameter_name = "feedback"
    _given: ClassVar[dict[str, Q]] = {
        "good": Q(score=1),
        "bad": Q(score=-1),
        "neither": Q(score=0),
        "comment": ~Q(comment=""),
        "any": Q(),
    }

    def lookups(self, request: Any, model_admin: Any) -> Iterable[tuple[str, str]]:
        labels = ("Good", "Bad", "Neither", "With a comment", "Any")
        return zip(self._given, labels, strict=True)

    def queryset(self, request: Any, queryset: QuerySet[Any]) -> QuerySet[Any]:
        condition = self._given.get(str(self.value() or ""))
        if condition is None:
            return queryset
        judged = Feedback.objects.filter(condition).order_by("-updated_at").values("run_id")[:NEWEST]
        return filter_by_runs(request, queryset, Q(pk__in=judged))


OF_RUNS: Final[list[Any]] = [
    UserFilter,
    StatusFilter,
    ModelFilter,
    PromptVersionFilter,
    ErrorFilter,
    FeedbackFilter,
    ("created_at", DayFilter),
]
# counting a large table takes longer than showing fifty rows of it
PAGINATOR: Final[type[Paginator[Any]]] = InfinitePaginator
