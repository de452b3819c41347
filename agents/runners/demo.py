"""The offline runner behind the model `demo`: deterministic, no key, really uses what tools found.

It answers in the language of the question (Chinese if there is a Chinese character, else English)
and streams its answer token by token, so that every part of Parley can be tried without a provider.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from typing import Any, Final

from django.conf import settings

from agents.runners.base import Host, RunContext
from conversations import events
from conversations.events import Fact

_CHINESE: Final = re.compile(r"[\u3400-\u9fff]")
_ENGLISH_PART: Final = re.compile(
    r"(?P<name>(?<![\w-])[A-Z0-9][^\u3000-\u9fff:]*): (?P<told>[^\u3000-\u9fff]+)$"
)
_TOKEN: Final = re.compile(r"\s*(?:[\u3000-\u9fff\uff00-\uffef]|[^\s\u3000-\u9fff\uff00-\uffef]+)\s*")


class DemoRunner:
    """Says what the exercise search found, or what it would need to say more."""

    async def run(self, context: RunContext, host: Host) -> AsyncGenerator[Fact]:
        yield events.ModelRouted("demo", "demo-1", None)
        answer = compose(context.question, _found(context))
        count = 0
        for token in tokens(answer):
            await asyncio.sleep(settings.DEMO_TOKEN_S)
            count += 1
            yield events.MessageDelta(context.message_id, token)
        usage = events.Usage(input_tokens=len(tokens(context.question)), output_tokens=count)
        yield events.RunCompleted("stop", usage)


def tokens(text: str) -> list[str]:
    """The text in pieces as a model would stream it; joined they give the text again."""
    if not text.strip():  # a long blank has no token to find, and looking for one is quadratic
        return [text] if text else []
    return _TOKEN.findall(text)


def compose(question: str, exercises: list[dict[str, Any]]) -> str:
    """A short, useful answer from what was found."""
    chinese = bool(_CHINESE.search(question))
    if not exercises:
        return _NOTHING_ZH if chinese else _NOTHING_EN
    write = _in_chinese if chinese else _in_english
    return write(question.strip(), exercises)


def _found(context: RunContext) -> list[dict[str, Any]]:
    return [item for finding in context.findings for item in (finding.result or {}).get("results", [])]


def _in_chinese(question: str, exercises: list[dict[str, Any]]) -> str:
    lines = [f"关于“{_brief(question)}”，动作库里最合适的有：", ""]
    for number, item in enumerate(exercises, 1):
        volume = _volume(item, "（{sets} 组 × {reps} 次）")
        lines.append(f"{number}. **{item['name']}**{volume}：{_both(item)[0]}")
    if tip := _first(exercises[0], "tips"):
        lines += ["", f"先从“{exercises[0]['name']}”开始。要点：{tip}。"]
    lines += ["", "组间休息 60–120 秒，动作变形就减重。（离线演示模型的回答）"]
    return "\n".join(lines)


def _in_english(question: str, exercises: list[dict[str, Any]]) -> str:
    lines = [f"For “{_brief(question)}” the exercise library suggests:", ""]
    for number, item in enumerate(exercises, 1):
        _, name, told = _both(item)
        volume = _volume(item, " ({sets} × {reps})")
        lines.append(f"{number}. **{name}**{volume}{f': {told}' if told else ''}")
    lines += [
        "",
        f"Start with the {_both(exercises[0])[1]}; rest one to two minutes between sets and lower the "
        "weight when your form breaks. (An answer of the offline demo model.)",
    ]
    return "\n".join(lines)


def _both(item: dict[str, Any]) -> tuple[str, str, str]:
    """(Chinese description, English name, English description) of an exercise, as far as there are any.

    The library writes both languages into one description: 中文 English Name: English.
    """
    whole = str(item.get("description") or "")
    found = _ENGLISH_PART.search(whole)
    if found is None or not _CHINESE.search(whole[: found.start()]):
        return whole, str(item["name"]), "" if _CHINESE.search(whole) else whole
    return whole[: found.start()].strip(), found["name"].strip(), found["told"].strip()


def _volume(item: dict[str, Any], form: str) -> str:
    sets, reps = item.get("defaultSets"), item.get("defaultReps")
    return form.format(sets=sets, reps=reps) if sets and reps else ""


def _first(item: dict[str, Any], key: str) -> str:
    return str((item.get(key) or [""])[0]).rstrip("。.")


def _brief(question: str) -> str:
    whole = " ".join(question.split())
    return whole if len(whole) <= 60 else whole[:59] + "…"


_NOTHING_ZH: Final = (
    "这是 Parley 的离线演示模型。它会用动作库回答健身问题，比如“练胸有什么动作？”。"
    "这个问题在动作库里没有找到相关内容；在管理后台添加一个模型端点，就能得到真正模型的回答。"
)
_NOTHING_EN: Final = (
    "This is Parley's offline demo model. It answers from the exercise library: try “Which exercises "
    "train my chest?”. Nothing there matches this question; add a model endpoint in the admin to have "
    "a real model answer it."
)
