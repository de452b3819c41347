"""How deeply JSON may be nested: what is kept of a body is walked by recursion many times."""

from __future__ import annotations

from typing import Any, Final

from config.errors import InvalidRequest

DEEPEST: Final = 100


def check(value: Any) -> None:
    """InvalidRequest when JSON has more than DEEPEST levels of objects and lists."""
    level = [value]
    for _ in range(DEEPEST + 1):
        lists = [item.values() if isinstance(item, dict) else item for item in level if _is_nest(item)]
        if not lists:
            return
        level = [inner for items in lists for inner in items]
    raise InvalidRequest(
        f"The body is nested too deeply: at most {DEEPEST} levels are taken.", code="invalid_json"
    )


def _is_nest(value: Any) -> bool:
    return isinstance(value, dict | list)
