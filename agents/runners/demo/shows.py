"""Special words in the question: `demo.think` shows reasoning, `demo.card` and "show me" a card."""

from __future__ import annotations

import re
from typing import Any, Final

from agents.runners.base import CHINESE

THINK: Final = "demo.think"
CARD: Final = "demo.card"
_UP_TO_CHINESE: Final = re.compile(r".*[\u3000-\u9fff]", re.DOTALL)
_ENGLISH_NAME: Final = re.compile(r"(?<![\w-])(?P<name>[A-Z0-9][^:]*)(?P<told>: )?")
# Spaces before a word are searched once, from their first, however many they are.
_WORDS: Final = re.compile(r"(?:(?<!\s)\s+)?\bdemo\.(?:think|card)\b[:：]?\s*", re.ASCII)
_SHOW_ME: Final = re.compile(r"\bshow me\b|给我看|展示", re.IGNORECASE)
_LONGEST: Final = 200


def strip_control_words(question: str) -> str:
    """Return the question without the words that only control the form of the answer."""
    return _WORDS.sub(" ", question).strip() or question


def thoughts(question: str) -> str:
    """Return the model's thoughts before its answer; "" unless the question wants them."""
    if THINK not in question:
        return ""
    topic = " ".join(strip_control_words(question).split())[:_LONGEST]
    if CHINESE.search(topic):
        return f"用户问的是“{topic}”。先在动作库里查找，再挑最合适的几个动作，最后提醒休息和动作质量。"
    return (
        f"The question is “{topic}”. I look into the exercise library first, take what fits best, and "
        "end with how long to rest."
    )


def card_hints(question: str, exercises: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return a card of the exercises, as `ui_hints`; None if there are none or none is wanted."""
    chinese, shown = bool(CHINESE.search(question)), exercises[:5]
    if shown and CARD in question:
        return _card_with_actions(shown, chinese=chinese)
    if not shown or not _SHOW_ME.search(question):
        return None
    title = "动作库里的动作" if chinese else "From the exercise library"
    return _card(title, [_item(one, chinese=chinese) for one in shown], chinese=chinese)


def _card_with_actions(shown: list[dict[str, Any]], *, chinese: bool) -> dict[str, Any]:
    again = "换几个别的动作" if chinese else "Which exercises train my back?"
    title = "推荐动作" if chinese else "Suggested exercises"
    card = _card(title, [_item(one, chinese=chinese) for one in shown], chinese=chinese)
    actions = [
        {
            "label": "换一批" if chinese else "Ask about my back",
            "style": "primary",
            "action": {"type": "send_message", "text": again},
        },
        {
            "label": "复制" if chinese else "Copy the names",
            "action": {"type": "copy", "text": ", ".join(_name(one, chinese) for one in shown)},
        },
    ]
    return {"status": "success"} | card | {"actions": actions}


def _card(title: str, items: list[dict[str, Any]], *, chinese: bool) -> dict[str, Any]:
    locale = "zh-CN" if chinese else "en"
    return {"title": title, "locale": locale, "ordered": True, "items": items}


def split_languages(item: dict[str, Any]) -> tuple[str, str, str]:
    """Return (Chinese description, English name, English description) of an exercise, each maybe "".

    The library writes both languages into one description: 中文 English Name: English.
    """
    whole = str(item.get("description") or "")
    found = _english_name(whole)
    if found is None or not CHINESE.search(whole, 0, found.start()):
        return whole, str(item["name"]), "" if CHINESE.search(whole) else whole
    return whole[: found.start()].strip(), found["name"].strip(), whole[found.end() :].strip()


def _english_name(whole: str) -> re.Match[str] | None:
    """Return the first name after all Chinese text, if a description follows the name."""
    chinese = _UP_TO_CHINESE.match(whole)
    names = _ENGLISH_NAME.finditer(whole, chinese.end() if chinese else 0)
    return next((name for name in names if name["told"] and name.end() < len(whole)), None)


def _name(exercise: dict[str, Any], chinese: bool) -> str:
    return str(exercise["name"] if chinese else split_languages(exercise)[1])[:_LONGEST]


def _item(exercise: dict[str, Any], *, chinese: bool) -> dict[str, Any]:
    sets, reps = exercise.get("defaultSets"), exercise.get("defaultReps")
    badge = {"badge": {"label": f"{sets} × {reps}"}} if sets and reps else {}
    described = split_languages(exercise)[0 if chinese else 2][:_LONGEST]
    return {"title": _name(exercise, chinese), "description": described} | badge
