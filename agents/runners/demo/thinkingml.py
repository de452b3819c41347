"""The offline model's answer in ThinkingML, so that `xml_plaintext` streams without a key (seed 002)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from agents.runners.demo import shows
from agents.runners.thinkingml import escape, queries

_NEXT: Final = 3


def reply(answer: str, question: str, exercises: Sequence[dict[str, Any]], *, chinese: bool) -> str:
    """Return the answer with two phases before it, and with the next searches after it."""
    topic = " ".join(shows.strip_control_words(question).split())[:60]
    steps = _in_chinese(topic, len(exercises)) if chinese else _in_english(topic, len(exercises))
    phases = (
        f'<phase id="{number}">\n<title>{title}</title>\n{escape(text)}\n</phase>\n'
        for number, (title, text) in enumerate(steps, 1)
    )
    searched = queries.render_block(json.dumps(_next(exercises, chinese=chinese)))
    return f"<thinking>\n{''.join(phases)}</thinking>\n<final>\n{escape(answer)}\n{searched}\n</final>"


def _in_chinese(topic: str, count: int) -> tuple[tuple[str, str], ...]:
    found = f"动作库里找到 {count} 个动作，按相关程度排列。" if count else "动作库里不需要再查找。"
    return ("理解问题", f"用户问的是“{topic}”。"), ("整理回答", found)


def _in_english(topic: str, count: int) -> tuple[tuple[str, str], ...]:
    found = f"The exercise library has {count} for it, the best first."
    found = found if count else "Nothing of the exercise library is needed."
    return ("Understand the question", f"It is “{topic}”."), ("Put the answer together", found)


def _next(exercises: Sequence[dict[str, Any]], *, chinese: bool) -> list[str]:
    if chinese:
        return [f"{item['name']} 动作要领" for item in exercises[:_NEXT]]
    return [f"how to do a {shows.split_languages(item)[1]}" for item in exercises[:_NEXT]]
