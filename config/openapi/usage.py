"""The OpenAPI operation of an account's own usage."""

from __future__ import annotations

from typing import Final

from config.openapi.parts import (
    COUNT,
    TEXT,
    Operation,
    Schema,
    array,
    nullable,
    operation,
    record,
    response,
)

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
    {
        "period": _PERIOD,
        "unit": _UNIT,
        "limit": _AMOUNT,
        "used": _AMOUNT,
        "left": _AMOUNT,
        "resets_in_s": COUNT,
    }
)
_SCOPE: Final = {"enum": ["account", "installation"]}
_EXCEEDED: Final = nullable(
    record({"scope": _SCOPE, "period": _PERIOD, "unit": _UNIT, "resets_in_s": COUNT})
) | {"description": "The exceeded limit, because of which runs are refused now."}
_USAGE: Final = record(
    {
        "time_zone": TEXT,
        "today": record({"date": TEXT} | _SPENT),
        "month": record({"month": TEXT} | _SPENT),
        "budget": array(_LIMIT) | {"description": "The account's limits; empty if it has none."},
        "exceeded": _EXCEEDED,
    }
)


def usage_operations() -> dict[str, dict[str, Operation]]:
    """Return the operations by path and method."""
    described = operation(
        "agent_usage",
        "Get the usage and cost of the caller's finished runs and the budget that is left",
        {"200": response("The caller's usage.", _USAGE)},
    )
    return {"/api/v1/agent/usage": {"get": described}}
