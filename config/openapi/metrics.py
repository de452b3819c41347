"""The OpenAPI operations of the metrics, and of an account's own usage."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from config.openapi.builders import (
    COUNT,
    ERROR,
    FLAG,
    TEXT,
    TIME,
    Route,
    Schema,
    array,
    nullable,
    operation,
    query,
    record,
    response,
)
from conversations.metrics.dimensions import GROUPS
from conversations.metrics.query import MetricsQuery
from conversations.metrics.sheets import SHEETS, kind_of

_FILTERS: Final = [
    query("from", "A day or a time. Default: the last seven days, including today."),
    query("to", "A day (inclusive) or a time (exclusive)."),
    query("bucket", "For the sheet timeseries.", enum=["hour", "day", "week", "month"]),
    query(
        "group_by", "For timeseries and models.", enum=["model", "prompt_version", "dialect", "runner"]
    ),
    query("model", "Only runs that requested this model."),
    query("prompt_version", "Only runs that used the version with this id.", type="integer"),
    query("dialect", "Only runs of this dialect."),
    query("runner", "Only runs of this runner."),
    query("user", "Only runs of the user with this id."),
    query("compare", "For overview: add a row for the previous period.", enum=["previous"]),
    query("versions", "For prompts: the ids of two versions to compare, such as 12,15."),
    query("format", "Default: json.", enum=["json", "csv", "jsonl", "parquet"]),
    query("limit", "Rows per page, 1 to 1000.", type="integer"),
    query("cursor", "The `next_cursor` of the previous page."),
]
_NUMBER: Final = {"type": "number"}
_KINDS: Final[dict[str, Schema]] = {
    "time": TIME,
    "text": TEXT,
    "flag": FLAG,
    "number": _NUMBER,
    "count": {"type": "integer"},
}


def _row() -> Schema:
    """Return the schema of a row of any sheet, in any grouping."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    queries = [MetricsQuery(at, at, at, "day", group=group) for group in (None, *GROUPS)]
    names = {name for sheet in SHEETS.values() for one in queries for name in sheet.columns(one)}
    columns = {name: nullable(_KINDS[kind_of(name)]) for name in sorted(names)}
    columns["errors"] = {
        "type": ["object", "null"],
        "additionalProperties": COUNT,
        "description": "The number of failed runs by error code.",
    }
    return record(optional=columns) | {"description": "The columns of the requested sheet."}


def _answer() -> Schema:
    difference = record(difference=_NUMBER, low=_NUMBER, high=_NUMBER, sure=FLAG)
    measured = dict.fromkeys(
        ("success_rate", "feedback_good_share", "feedback_score"), nullable(difference)
    )
    version = {"type": "integer"}
    filters = dict.fromkeys(("model", "dialect", "runner", "user", "group_by", "bucket"), TEXT)
    more = {
        "prompt_version": version,
        "percentile_error": _NUMBER,
        "next_cursor": nullable(TEXT),
        "comparison": record(a=version, b=version, **measured),
    }
    return record(**{"from": TIME}, to=TIME, rows=array(_row()), optional=filters | more)


_USD: Final = nullable(TEXT) | {
    "description": "US dollars: the sum of the known prices; null if no price is known."
}
_SPENT: Final[dict[str, Schema]] = {
    "runs": COUNT,
    "input_tokens": COUNT,
    "output_tokens": COUNT,
    "unpriced_tokens": COUNT | {"description": "The input and output tokens whose price is unknown."},
    "cost_usd": _USD,
}
_PERIOD: Final = {"enum": ["day", "month"]}
_UNIT: Final = {"enum": ["usd", "tokens"]}
_AMOUNT: Final = {"type": ["string", "integer"], "description": "US dollars as a string, or tokens."}
_LIMIT: Final = record(
    period=_PERIOD, unit=_UNIT, limit=_AMOUNT, used=_AMOUNT, left=_AMOUNT, resets_in_s=COUNT
)
_SCOPE: Final = {"enum": ["account", "installation"]}
_EXCEEDED: Final = nullable(record(scope=_SCOPE, period=_PERIOD, unit=_UNIT, resets_in_s=COUNT)) | {
    "description": "The exceeded limit, because of which runs are refused now."
}
_USAGE: Final = record(
    time_zone=TEXT,
    today=record(date=TEXT, **_SPENT),
    month=record(month=TEXT, **_SPENT),
    budget=array(_LIMIT) | {"description": "The account's limits; empty if it has none."},
    exceeded=_EXCEEDED,
)

_CONTENT: Final = {
    "application/json": {"schema": _answer()},
    "text/csv": {"schema": TEXT},
    "application/jsonl": {"schema": TEXT},
    "application/vnd.apache.parquet": {"schema": TEXT | {"format": "binary"}},
}

OPERATIONS: Final[list[Route]] = [
    operation(
        "GET /api/v1/metrics/{sheet}",
        "metrics",
        "Get a sheet of metrics, for analysts",
        {
            "200": {"description": "The rows of the sheet.", "content": _CONTENT},
            "501": response("Parquet support is not installed on this server.", ERROR),
        },
        parameters=_FILTERS,
        tags=["metrics"],
    ),
    operation(
        "GET /api/v1/agent/usage",
        "agent_usage",
        "Get the usage and cost of the caller's finished runs and the budget that is left",
        {"200": response("The caller's usage.", _USAGE)},
    ),
]
