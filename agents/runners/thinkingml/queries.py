"""The search queries that end `<final>`: a JSON array of at most 5 distinct strings of at most 80."""

from __future__ import annotations

import json
from typing import Any, Final

from agents.runners.thinkingml.tags import TAG

MOST: Final = 5
LONGEST: Final = 80
_UNREADABLE: Final = object()


def fault_of(body: str) -> str | None:
    """Return the array's fault as the validator's reason; None if it has none."""
    queries = _read(body)
    if queries is _UNREADABLE:
        return "serp_queries_json_parse_error"
    if not isinstance(queries, list):
        return "serp_queries_not_array"
    if len(queries) > MOST:
        return "serp_queries_too_many"
    if len(set(map(_as_key, queries))) < len(queries):
        return "serp_queries_not_deduped"
    if not all(isinstance(query, str) for query in queries):
        return "serp_queries_item_not_string"
    if any(len(query) > LONGEST for query in queries):
        return "serp_queries_item_too_long"
    return None


def render_block(body: str) -> str:
    """Return the whole comment for the model's array, with its usable queries."""
    queries = _read(body)
    usable = [query for query in queries if _usable(query)] if isinstance(queries, list) else []
    return _comment(list(dict.fromkeys(usable))[:MOST])


def is_clean(body: str) -> bool:
    """Return whether the array can stay unchanged: valid, and without tags in its strings."""
    return fault_of(body) is None and not TAG.search(body) and "<serp_queries>" not in body


def _comment(queries: list[str]) -> str:
    written = json.dumps(queries, ensure_ascii=False).replace("<", "\\u003c").replace(">", "\\u003e")
    return f"<!-- <serp_queries>\n{written}\n</serp_queries> -->"


EMPTY: Final = _comment([])


def _read(body: str) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return _UNREADABLE


def _as_key(query: object) -> str:
    """Return a key that is equal for equal JSON only: 1, true and "1" are three."""
    try:
        return json.dumps(query, sort_keys=True)
    except RecursionError:  # nested just as deep as can be read; no string, which the next check finds
        return f"{id(query)}"


def _usable(query: object) -> bool:
    return isinstance(query, str) and len(query) <= LONGEST and bool(query.strip())
