"""The schemas of the metrics, and of an account's own usage."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

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
SCHEMAS: Final[dict[str, Schema]] = {"MetricsSheet": _answer(), "Usage": _USAGE}
