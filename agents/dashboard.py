"""What the analysts' dashboard shows of a window that ends now (specs/text-run.md §7).

Every number is counted from the runs created in the window: one pass over the index `run_by_time`.
An answer is kept for a few seconds, so any number of open dashboards cost one pass in that time.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import datetime
from time import monotonic
from typing import Any, Final, Literal, NamedTuple

from django.db import connection, transaction
from django.db.models import Prefetch

from prompts.models import Endpoint, ModelMapping
from prompts.routing import routable_candidates

Window = Literal["1h", "24h", "7d"]
WINDOWS: Final[dict[Window, int]] = {"1h": 3_600, "24h": 86_400, "7d": 604_800}
KEPT_S: Final = 5.0
_MOST_MODELS: Final = 500

_RUNS: Final = """
WITH parts AS MATERIALIZED (
    SELECT model, endpoint_id, owner_id, count(*) AS total,
        count(*) FILTER (WHERE status = 'completed') AS success,
        count(*) FILTER (WHERE status = 'failed') AS error,
        sum(extract(epoch FROM finished_at - created_at)::float8)
            FILTER (WHERE status = 'completed') AS spent,
        sum(input_tokens) + sum(output_tokens) AS tokens, max(finished_at) AS last_at
    FROM conversations_run
    WHERE created_at > statement_timestamp() - make_interval(secs => %s)
        AND created_at <= statement_timestamp()
    GROUP BY model, endpoint_id, owner_id
)
SELECT grouping(model, endpoint_id), model, endpoint_id, coalesce(sum(total), 0),
    coalesce(sum(success), 0), coalesce(sum(error), 0), count(DISTINCT owner_id),
    coalesce(sum(spent), 0), coalesce(sum(tokens), 0), max(last_at)
FROM parts GROUP BY GROUPING SETS ((), (model), (endpoint_id))
"""
_ALL, _OF_MODEL, _OF_ENDPOINT = 3, 1, 2  # what `grouping` says of a row


class Used(NamedTuple):
    """The runs of a window, or those of one model or endpoint in it."""

    total: int = 0
    success: int = 0
    error: int = 0
    users: int = 0
    spent_s: float = 0.0
    tokens: int = 0
    last_at: datetime | None = None

    @property
    def latency_ms(self) -> float:
        """From acceptance to the end, of the runs that completed."""
        return round(float(self.spent_s) * 1000 / self.success, 2) if self.success else 0.0

    @property
    def success_rate(self) -> float:
        """In percent of the runs that ended by themselves."""
        return _percent(self.success, self.success + self.error)


class _Usage(NamedTuple):
    whole: Used
    models: dict[str, Used]
    endpoints: dict[int, Used]


_kept: Final[dict[Window, tuple[float, dict[str, Any]]]] = {}
_counting: Final = threading.Lock()


def dashboard(window: Window) -> dict[str, Any]:
    """The numbers of the window, at most KEPT_S old."""
    with _counting:  # whoever comes meanwhile gets the same answer
        counted_at, found = _kept.get(window, (float("-inf"), {}))
        if monotonic() - counted_at >= KEPT_S:
            found = _count(window)
            _kept[window] = (monotonic(), found)
        return found


def forget() -> None:
    """Count anew next time."""
    _kept.clear()


def _count(window: Window) -> dict[str, Any]:
    usage = _usage(WINDOWS[window])
    whole = usage.whole
    return {
        "time_window": window,
        "daily_active_users": whole.users,
        "ai_requests": {
            "total": whole.total,
            "success": whole.success,
            "error": whole.error,
            "avg_latency_ms": whole.latency_ms,
        },
        "token_usage": whole.tokens,
        "api_connectivity": _connectivity(usage),
        "mapped_models": _mapped_models(usage.models),
    }


def _usage(seconds: int) -> _Usage:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            "SET LOCAL work_mem = '32MB'"
        )  # a week's groups by hashing, not by sorting on disk
        cursor.execute(_RUNS, [seconds])
        rows = cursor.fetchall()
    whole, models, endpoints = Used(), dict[str, Used](), dict[int, Used]()
    for kind, model, endpoint_id, *numbers in rows:
        used = _used(numbers)
        if kind == _ALL:
            whole = used
        elif kind == _OF_MODEL:
            models[model] = used
        elif endpoint_id is not None:
            endpoints[endpoint_id] = used
    return _Usage(whole, models, endpoints)


def _used(numbers: Sequence[Any]) -> Used:
    *counts, spent, tokens, last_at = numbers
    total, success, error, users = map(int, counts)
    return Used(total, success, error, users, float(spent), int(tokens), last_at)


def _connectivity(usage: _Usage) -> dict[str, Any]:
    """Of the active endpoints: healthy is one whose runs in the window did not all fail."""
    active = list(Endpoint.objects.filter(is_active=True).values_list("pk", flat=True))
    here = [usage.endpoints.get(pk, Used()) for pk in active]
    healthy = sum(used.success > 0 or used.error == 0 for used in here)
    last = max((used.last_at for used in here if used.last_at), default=None)
    return {
        "is_running": True,  # every run is a check
        "healthy_endpoints": healthy,
        "total_endpoints": len(active),
        "connectivity_rate": _percent(healthy, len(active)),
        "last_check": last.isoformat() if last else None,
    }


def _mapped_models(models: dict[str, Used]) -> dict[str, Any]:
    usable = Prefetch("candidates", routable_candidates().select_related("endpoint"), to_attr="usable")
    mappings = ModelMapping.objects.filter(is_active=True).order_by("key")
    some = list(mappings.prefetch_related("candidates", usable)[:_MOST_MODELS])
    rows = [_model_row(mapping, models.get(mapping.name, Used())) for mapping in some]
    available = sum(row["availability"] for row in rows)
    return {
        "total": len(rows),
        "available": available,
        "unavailable": len(rows) - available,
        "rows": rows,
    }


def _model_row(mapping: Any, used: Used) -> dict[str, Any]:
    first = next(iter(mapping.usable), None)
    reason = "no_active_endpoint_with_key" if mapping.candidates.all() else "no_candidate"
    return {
        "model_key": mapping.key,
        "scope_type": "global",
        "resolved_model": first.model if first else None,
        "provider": first.endpoint.provider if first else None,
        "endpoint_id": first.endpoint_id if first else None,
        "availability": first is not None,
        "availability_reason": None if first else reason,
        "calls_total": used.total,
        "unique_users": used.users,
        "success_rate": used.success_rate,
        "avg_latency_ms": used.latency_ms,
    }


def _percent(part: int, whole: int) -> float:
    return round(100 * part / whole, 2) if whole else 0.0
