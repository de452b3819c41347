"""The sheets (tables of numbers) that can be requested: their columns, and the sources of their rows."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from conversations.metrics import detail_rows, rollup_reads
from conversations.metrics.dimensions import Group
from conversations.metrics.measures import NOTHING, RunGroup, group_to_row, spread_fields
from conversations.metrics.query import MetricsQuery
from conversations.metrics.rollup_reads import ZEROS, Row

MEASURES: Final = tuple(group_to_row(RunGroup(ZEROS)))
_STEP: Final = ("calls", *spread_fields("latency_ms", NOTHING, 0))
_TOOL: Final = ("calls", "succeeded", "failed", "success_rate", *_STEP[1:])
_VERSION: Final = ("prompt_version", "kind", "prompt", "version")

Page = Callable[..., Awaitable[tuple[list[Row], str | None]]]


@dataclass(frozen=True)
class Sheet:
    """A table of numbers: a short one is read whole, a long one in pages or as a stream of lists."""

    columns: Callable[[MetricsQuery], tuple[str, ...]]
    fetch_all: Callable[[MetricsQuery], Awaitable[list[Row]]] | None = None
    fetch_page: Page | None = None
    stream_all: Callable[[MetricsQuery], AsyncGenerator[list[Row]]] | None = None

    async def stream(self, query: MetricsQuery) -> AsyncGenerator[list[Row]]:
        """Yield all rows, in lists."""
        if self.fetch_all is not None:
            yield await self.fetch_all(query)
        elif self.stream_all is not None:
            async for rows in self.stream_all(query):
                yield rows
        elif self.fetch_page is not None:
            cursor: str | None = ""
            while cursor is not None:
                rows, cursor = await self.fetch_page(query, limit=detail_rows.AT_ONCE, cursor=cursor)
                if rows:
                    yield rows


def _group_columns(group: Group | None) -> tuple[str, ...]:
    match group:
        case None:
            return ()
        case "prompt_version":
            return _VERSION
    return (group,)


SHEETS: Final[dict[str, Sheet]] = {
    "overview": Sheet(
        lambda _: ("period", "from", "to", *MEASURES), fetch_all=rollup_reads.fetch_overview
    ),
    "timeseries": Sheet(
        lambda query: ("bucket", *_group_columns(query.group), *MEASURES),
        fetch_all=rollup_reads.fetch_timeseries,
    ),
    "stages": Sheet(
        lambda _: ("stage", *_STEP), fetch_all=partial(rollup_reads.fetch_steps, kind="stage")
    ),
    "tools": Sheet(lambda _: ("tool", *_TOOL), fetch_all=partial(rollup_reads.fetch_steps, kind="tool")),
    "models": Sheet(
        lambda query: (*_group_columns(query.group or "model"), *MEASURES),
        fetch_all=lambda query: rollup_reads.fetch_by_group(query, query.group or "model"),
    ),
    "prompts": Sheet(
        lambda _: (*_VERSION, *MEASURES),
        fetch_all=partial(rollup_reads.fetch_by_group, group="prompt_version"),
    ),
    "users": Sheet(
        lambda _: detail_rows.USER_COLUMNS,
        fetch_page=detail_rows.fetch_user_page,
        stream_all=detail_rows.stream_users,
    ),
    "runs": Sheet(lambda _: tuple(detail_rows.RUN_COLUMNS), fetch_page=detail_rows.fetch_run_page),
    "messages": Sheet(
        lambda _: tuple(detail_rows.MESSAGE_COLUMNS), fetch_page=detail_rows.fetch_message_page
    ),
}

_KINDS: Final = {
    name: kind
    for kind, names in {
        "time": "bucket from to created_at last_active_at",
        "text": "period model resolved_model provider prompt kind dialect runner role stage tool "
        "user_id username run_id message_id conversation_id errors status error_code finish_reason "
        "prompt_versions metadata",
        "flag": "ok",
        "number": "success_rate cost_usd conversations_per_user turns_per_conversation feedback_rate "
        "feedback_score",
    }.items()
    for name in names.split()
}
_NUMBERS: Final = ("_mean", "_p50", "_p95", "_p99", "_low", "_high", "_share", "_ms")


def kind_of(column: str) -> str:
    """Return the type of a column: `time`, `text`, `flag`, `number` or `count`."""
    return _KINDS.get(column) or ("number" if column.endswith(_NUMBERS) else "count")


def query_to_json(query: MetricsQuery) -> dict[str, Any]:
    """Return the query as it was understood, for the head of the answer."""
    found = {
        "from": query.begin,
        "to": query.end,
        "model": query.model,
        "prompt_version": query.prompt_version,
        "dialect": query.dialect,
        "runner": query.runner,
        "user": str(query.user) if query.user else None,
        "group_by": query.group,
    }
    return {name: value for name, value in found.items() if value is not None}
