"""How the OpenAPI document describes the metrics."""

from __future__ import annotations

from typing import Any, Final

from config.openapi_parts import ERROR, Operation, answer, operation, query

_SHEETS: Final = (
    "overview",
    "timeseries",
    "stages",
    "tools",
    "models",
    "prompts",
    "users",
    "runs",
    "messages",
)


def _choice(name: str, description: str, *options: str) -> dict[str, Any]:
    found = query(name, description)
    return found | {"schema": {"type": "string", "enum": list(options)}}


_SHEET: Final = {
    "name": "sheet",
    "in": "path",
    "required": True,
    "schema": {"type": "string", "enum": list(_SHEETS)},
    "description": "users, runs and messages come in pages (limit, cursor), the others whole.",
}
_FILTERS: Final = [
    query("from", "A day or a time; seven days with today if left out."),
    query("to", "A day, which is included, or a time, which is not."),
    _choice("bucket", "Of timeseries.", "hour", "day", "week", "month"),
    _choice("group_by", "Of timeseries and models.", "model", "prompt_version", "dialect", "runner"),
    query("model", "Only runs that asked for this model."),
    query("prompt_version", "Only runs that used this version (its id).", "integer"),
    query("dialect", "Only runs of this dialect."),
    query("runner", "Only runs of this runner."),
    query("user", "Only this user's runs (an id)."),
    _choice("compare", "Of overview: a second row, of the period before.", "previous"),
    query("versions", "Of prompts: two ids, as 12,15, to compare."),
    _choice("format", "json if left out.", "json", "csv", "jsonl", "parquet"),
    query("limit", "1 to 1000 rows a page.", "integer"),
    query("cursor", "The next_cursor of the page before."),
]
_ANSWER: Final = {
    "type": "object",
    "required": ["rows"],
    "properties": {
        "from": {"type": "string", "format": "date-time"},
        "to": {"type": "string", "format": "date-time"},
        "rows": {"type": "array", "items": {"type": "object"}},
        "next_cursor": {"type": ["string", "null"]},
    },
}


def metrics_operations() -> dict[str, dict[str, Operation]]:
    """By path."""
    content = {
        "application/json": {"schema": _ANSWER},
        "text/csv": {"schema": {"type": "string"}},
        "application/jsonl": {"schema": {"type": "string"}},
        "application/vnd.apache.parquet": {"schema": {"type": "string", "format": "binary"}},
    }
    read = operation(
        "metrics",
        "Numbers for analysts",
        {
            "200": {"description": "The rows.", "content": content},
            "501": answer("Parquet is not installed here.", ERROR),
        },
        (401, 403, 404, 405, 422, 429),
        parameters=[_SHEET, *_FILTERS],
        tags=["metrics"],
    )
    return {"/api/v1/metrics/{sheet}": {"get": read}}
