"""How the OpenAPI document describes an account's own usage."""

from __future__ import annotations

from typing import Any, Final

from config.openapi_parts import Operation, answer, operation

_COUNT: Final = {"type": "integer", "minimum": 0}
_USD: Final = {
    "type": ["string", "null"],
    "description": "US dollars, as far as prices are known; null where none is.",
}
_SPENT: Final[dict[str, Any]] = {
    "runs": _COUNT,
    "input_tokens": _COUNT,
    "output_tokens": _COUNT,
    "unpriced_tokens": _COUNT | {"description": "Among both: those whose price is unknown."},
    "cost_usd": _USD,
}
_PERIOD: Final = {"enum": ["day", "month"]}
_UNIT: Final = {"enum": ["usd", "tokens"]}
_AMOUNT: Final = {"type": ["string", "integer"], "description": "Dollars as text, or tokens."}
_LIMIT: Final = {
    "type": "object",
    "required": ["period", "unit", "limit", "used", "left", "resets_in_s"],
    "properties": {
        "period": _PERIOD,
        "unit": _UNIT,
        "limit": _AMOUNT,
        "used": _AMOUNT,
        "left": _AMOUNT,
        "resets_in_s": _COUNT,
    },
}
_EXCEEDED: Final = {
    "type": ["object", "null"],
    "description": "The limit that refuses a run now, of the account or of the installation.",
    "required": ["scope", "period", "unit", "resets_in_s"],
    "properties": {
        "scope": {"enum": ["account", "installation"]},
        "period": _PERIOD,
        "unit": _UNIT,
        "resets_in_s": _COUNT,
    },
}


def _of(name: str) -> dict[str, Any]:
    text = {"type": "string"}
    return {
        "type": "object",
        "required": [name, *_SPENT],
        "properties": {name: text} | _SPENT,
    }


_USAGE: Final = {
    "type": "object",
    "required": ["time_zone", "today", "month", "budget", "exceeded"],
    "properties": {
        "time_zone": {"type": "string"},
        "today": _of("date"),
        "month": _of("month"),
        "budget": {"type": "array", "items": _LIMIT, "description": "Empty: no limit of its own."},
        "exceeded": _EXCEEDED,
    },
}


def usage_operations() -> dict[str, dict[str, Operation]]:
    """By path."""
    described = operation(
        "agent_usage",
        "What the caller's ended runs used and cost today and this month, and the budget left",
        {"200": answer("The caller's own.", _USAGE)},
        (401, 403, 405, 429),
    )
    return {"/api/v1/agent/usage": {"get": described}}
