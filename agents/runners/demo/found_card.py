"""The offline model's card of the exercises that it found, if the question wants one."""

from __future__ import annotations

import re
from typing import Any, Final

from agents.runners.base import CHINESE

_SHOW_ME: Final = re.compile(r"\bshow me\b|给我看|展示", re.IGNORECASE)
_MOST: Final = 5
_LONGEST: Final = 300


def card_hints(question: str, exercises: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the hints of a card with the exercises, if the question wants one and there are any."""
    if not exercises or not _SHOW_ME.search(question):
        return None
    chinese = bool(CHINESE.search(question))
    return {
        "title": "动作库里的动作" if chinese else "From the exercise library",
        "locale": "zh-CN" if chinese else "en",
        "ordered": True,
        "items": [_item(exercise) for exercise in exercises[:_MOST]],
    }


def _item(exercise: dict[str, Any]) -> dict[str, Any]:
    item: dict[str, Any] = {"title": str(exercise["name"])[:200]}
    if description := str(exercise.get("description") or "")[:_LONGEST]:
        item["description"] = description
    if group := exercise.get("muscleGroup"):
        item["badge"] = {"label": str(group)}
    return item
