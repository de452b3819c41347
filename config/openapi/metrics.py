"""The OpenAPI operations of the metrics."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from config.openapi.parts import (
    COUNT,
    ERROR,
    FLAG,
    TEXT,
    TIME,
    Operation,
    Schema,
    array,
    nullable,
    operation,
    query,
    record,
    response,
)
from conversations.metrics.query import GROUPS, MetricsQuery
from conversations.metrics.sheets import SHEETS, kind_of


def _choice(name: str, description: str, *options: str) -> dict[str, Any]:
    found = query(name, description)
    return found | {"schema": {"type": "string", "enum": list(options)}}


_SHEET: Final = {
    "name": "sheet",
    "in": "path",
    "required": True,
    "schema": {"type": "string", "enum": list(SHEETS)},
    "description": "users, runs and messages are paginated (limit, cursor); the other sheets are not.",
}
_FILTERS: Final = [
    query("from", "A day or a time. Default: the last seven days, including today."),
    query("to", "A day (inclusive) or a time (exclusive)."),
    _choice("bucket", "For the sheet timeseries.", "hour", "day", "week", "month"),
    _choice("group_by", "For timeseries and models.", "model", "prompt_version", "dialect", "runner"),
    query("model", "Only runs that requested this model."),
    query("prompt_version", "Only runs that used the version with this id.", "integer"),
    query("dialect", "Only runs of this dialect."),
    query("runner", "Only runs of this runner."),
    query("user", "Only runs of the user with this id."),
    _choice("compare", "For overview: add a row for the previous period.", "previous"),
    query("versions", "For prompts: the ids of two versions to compare, such as 12,15."),
    _choice("format", "Default: json.", "json", "csv", "jsonl", "parquet"),
    query("limit", "Rows per page, 1 to 1000.", "integer"),
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
    return record({}, columns) | {"description": "The columns of the requested sheet."}


def _answer() -> Schema:
    difference = record({"difference": _NUMBER, "low": _NUMBER, "high": _NUMBER, "sure": FLAG})
    measured = dict.fromkeys(
        ("success_rate", "feedback_good_share", "feedback_score"), nullable(difference)
    )
    version = {"type": "integer"}
    filters = dict.fromkeys(("model", "dialect", "runner", "user", "group_by", "bucket"), TEXT)
    more = {
        "prompt_version": version,
        "percentile_error": _NUMBER,
        "next_cursor": nullable(TEXT),
        "comparison": record({"a": version, "b": version} | measured),
    }
    return record({"from": TIME, "to": TIME, "rows": array(_row())}, filters | more)


def metrics_operations() -> dict[str, dict[str, Operation]]:
    """Return the operations by path and method."""
    content = {
        "application/json": {"schema": _answer()},
        "text/csv": {"schema": {"type": "string"}},
        "application/jsonl": {"schema": {"type": "string"}},
        "application/vnd.apache.parquet": {"schema": {"type": "string", "format": "binary"}},
    }
    read = operation(
        "metrics",
        "Get a sheet of metrics, for analysts",
        {
            "200": {"description": "The rows of the sheet.", "content": content},
            "501": response("Parquet support is not installed on this server.", ERROR),
        },
        (404,),
        parameters=[_SHEET, *_FILTERS],
        tags=["metrics"],
    )
    return {"/api/v1/metrics/{sheet}": {"get": read}}
