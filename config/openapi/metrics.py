"""The schemas of the metrics, and of an account's own usage."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from agents.api.usage import Usage
from config.http.documentation.schema_builders import (
    COUNT,
    FLAG,
    TEXT,
    TIME,
    Schema,
    array,
    nullable,
    record,
)
from config.openapi.derived_schemas import derive_structs
from conversations.metrics.dimensions import GROUPS
from conversations.metrics.query import MetricsQuery
from conversations.metrics.sheets import SHEETS, kind_of

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


SCHEMAS: Final[dict[str, Schema]] = derive_structs(Usage) | {"MetricsSheet": _answer()}
