"""The usage and cost of model calls, summed over a run, a message, or a model.

Money is US dollars as a Decimal; on a wire it is text in plain notation, so that nothing rounds it.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from functools import reduce
from typing import Any

import msgspec

from conversations.events import ModelCompleted, Usage


def sum_usage(calls: Iterable[ModelCompleted]) -> Usage:
    """Return the sum of all; the cost is None only where no call's is known."""
    return reduce(Usage.plus, (call.usage for call in calls), Usage())


def sum_by_model(calls: Iterable[ModelCompleted]) -> list[dict[str, Any]]:
    """Return `{provider, model, endpoint_id, calls, …usage}` of each model, in order of first use."""
    grouped: dict[tuple[str, str, int | None], list[ModelCompleted]] = {}
    for call in calls:
        grouped.setdefault((call.provider, call.model, call.endpoint_id), []).append(call)
    return [
        {"provider": provider, "model": model, "endpoint_id": endpoint_id, "calls": len(model_calls)}
        | usage_to_json(sum_usage(model_calls))
        for (provider, model, endpoint_id), model_calls in grouped.items()
    ]


def usage_to_json(usage: Usage) -> dict[str, Any]:
    """Return the usage as JSON, with every field."""
    return msgspec.structs.asdict(usage) | {"cost_usd": usd(usage.cost_usd)}


def usd(amount: Decimal | None) -> str | None:
    """Return an amount as text, such as "0.0000315"; None for an unknown one."""
    return None if amount is None else f"{amount.normalize():f}"
