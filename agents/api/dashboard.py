"""The numbers of the analysts' dashboard, for a window that ends now (specs/text-run.md §7).

Every number is counted from the runs created in the window: one pass over the index `run_by_time`. An
answer is kept for a few seconds, so any number of open dashboards cost one pass in that time.
"""

from __future__ import annotations

import threading
from time import monotonic
from typing import Any, Final, Literal

from django.db.models import Prefetch

from conversations.metrics.recent_usage import RecentUsage, UsageSums, fetch_recent_usage, percent
from prompts.endpoints.routing import routable_candidates
from prompts.models import Endpoint, ModelMapping

Window = Literal["1h", "24h", "7d"]
WINDOWS: Final[dict[Window, int]] = {"1h": 3_600, "24h": 86_400, "7d": 604_800}
CACHE_S: Final = 5.0
_MOST_MODELS: Final = 500

_kept: Final[dict[Window, tuple[float, dict[str, Any]]]] = {}
_counting: Final = threading.Lock()


def dashboard(window: Window) -> dict[str, Any]:
    """Return the numbers of the window, at most CACHE_S old."""
    with _counting:  # a caller that waits for it gets the same answer
        counted_at, found = _kept.get(window, (float("-inf"), {}))
        if monotonic() - counted_at >= CACHE_S:
            found = _count(window)
            _kept[window] = (monotonic(), found)
        return found


def clear_cache() -> None:
    """Discard the kept answers; the next call counts again."""
    _kept.clear()


def _count(window: Window) -> dict[str, Any]:
    usage = fetch_recent_usage(WINDOWS[window])
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


def _connectivity(usage: RecentUsage) -> dict[str, Any]:
    """Return the state of the active endpoints; one is healthy unless all its runs there failed."""
    active = list(Endpoint.objects.filter(is_active=True).values_list("pk", flat=True))
    here = [usage.endpoints.get(pk, UsageSums()) for pk in active]
    healthy = sum(used.success > 0 or used.error == 0 for used in here)
    last = max((used.last_at for used in here if used.last_at), default=None)
    return {
        "is_running": True,  # every run is a check
        "healthy_endpoints": healthy,
        "total_endpoints": len(active),
        "connectivity_rate": percent(healthy, len(active)),
        "last_check": last.isoformat() if last else None,
    }


def _mapped_models(models: dict[str, UsageSums]) -> dict[str, Any]:
    usable = Prefetch("candidates", routable_candidates().select_related("endpoint"), to_attr="usable")
    mappings = ModelMapping.objects.filter(is_active=True).order_by("key")
    some = list(mappings.prefetch_related("candidates", usable)[:_MOST_MODELS])
    rows = [_model_row(mapping, models.get(mapping.name, UsageSums())) for mapping in some]
    available = sum(row["availability"] for row in rows)
    return {
        "total": len(rows),
        "available": available,
        "unavailable": len(rows) - available,
        "rows": rows,
    }


def _model_row(mapping: Any, used: UsageSums) -> dict[str, Any]:
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
