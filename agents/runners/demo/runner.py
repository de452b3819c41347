"""The offline runner behind the model `demo`: deterministic, no key, really uses the tools' results.

It answers in the language of the question (Chinese if there is a Chinese character, else English)
and streams its answer token by token, so that every part of Parley can be tried without a provider.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from typing import Any, Final

from django.conf import settings

from agents.requests import ToolUse
from agents.runners import thinkingml
from agents.runners.base import CHINESE, Host, RunContext, ToolOutcome
from agents.runners.demo import image_facts, shows, tool_use
from agents.runners.demo import thinkingml as demo_thinkingml
from agents.runners.demo.form_answers import fill_schema
from agents.runners.injection import shorten
from agents.runners.tool_loop import completion_fact, outcome_facts, outcome_text
from conversations import events
from conversations.events import Fact

_LONGEST_TOPIC: Final = 60
_TOKEN: Final = re.compile(
    r"\s*(?:[\u3000-\u9fff\uff00-\uffef]|[^\s\u3000-\u9fff\uff00-\uffef]+)\s*|\s+"  # or all blank
)


class DemoRunner:
    """A simulated model that sees, calls tools and reads context: every path works without a key."""

    async def run(self, context: RunContext, host: Host) -> AsyncGenerator[Fact]:
        yield events.ModelRouted("demo", "demo-1", None)
        call = tool_use.requested_call(context)
        if call is not None:
            yield call
            yield events.RunCompleted("tool_calls", _usage(context, 0))
            return
        note = tool_use.requested_note(context)
        approval = note and await host.approval_for(note, call_id=f"call_{context.run_id.hex}")
        if approval:
            for fact in approval.facts:
                yield fact
            yield events.RunCompleted("interrupt", _usage(context, 0), [approval.interrupt])
            return
        if schema := context.request.generation.json_schema:
            yield events.MessageDelta(context.message_id, fill_schema(schema, context.question))
            yield events.RunCompleted("stop", _usage(context, 1))
            return
        if (use := tool_use.written_call(context)) is not None:
            async for fact in _call(context, host, use):
                yield fact
            return
        for token in split_tokens(shows.thoughts(context.question)):
            await asyncio.sleep(settings.DEMO_TOKEN_S)
            yield events.ReasoningDelta(context.message_id, token)
        exercises: list[dict[str, Any]] = []
        answers = [await _seen(context, host), tool_use.answers_text(context), _known(context)]
        if not any(answers):
            exercises = _found(context)
            if not context.findings and _may_search(context):
                outcome = await host.call_tool(_search(context))
                made = outcome.use
                yield events.ToolCallStarted("demo-1", made.name, made.arguments)
                yield completion_fact("demo-1", outcome)
                exercises = _results(outcome)
            answers = [compose_answer(shows.strip_control_words(context.question), exercises)]
        count, answer = 0, _written("\n\n".join(filter(None, answers)), context, exercises)
        for token in split_tokens(answer):
            await asyncio.sleep(settings.DEMO_TOKEN_S)
            count += 1
            yield events.MessageDelta(context.message_id, token)
        if hints := await _card(context, host, exercises):
            body = events.MessageBody(context.message_id, "assistant", answer, ui_hints=hints)
            yield events.MessageCompleted(body)
        yield events.RunCompleted("stop", _usage(context, count))


async def _call(context: RunContext, host: Host, use: ToolUse) -> AsyncGenerator[Fact]:
    """Yield the call of a tool and its answer, so that a tool can be tried without a provider."""
    call_id = f"call_{context.run_id.hex}"
    yield events.ToolCallStarted(call_id, use.name, use.arguments)
    outcome = await host.call_tool(use, call_id=call_id)
    for fact in outcome_facts(call_id, outcome):
        yield fact
    answer = _written(tool_use.tell(context, outcome_text(outcome)), context, [])
    yield events.MessageDelta(context.message_id, answer)
    yield events.RunCompleted("stop", _usage(context, 1))


def _written(answer: str, context: RunContext, exercises: list[dict[str, Any]]) -> str:
    """Return the answer in the form of the run's mode."""
    if not thinkingml.is_thinkingml(context.request.result_mode):
        return answer
    chinese = bool(CHINESE.search(context.question))
    return demo_thinkingml.reply(answer, context.question, exercises, chinese=chinese)


async def _card(
    context: RunContext, host: Host, exercises: list[dict[str, Any]]
) -> dict[str, Any] | None:
    """Return the card that the question wants, unless no card may be shown."""
    hints = shows.card_hints(context.question, exercises)
    return hints if hints and await host.may_show() else None


async def _seen(context: RunContext, host: Host) -> str:
    """Return format, pixels and bytes of the images of the newest question."""
    loaded = [await host.load_image(image) for image in context.images]
    chinese = bool(CHINESE.search(context.question))
    lines = [await asyncio.to_thread(image_facts.describe, data, chinese=chinese) for data in loaded]
    return "\n".join(lines)


def _known(context: RunContext) -> str:
    """Return the client's instructions and context as text; "" without any."""
    request = context.request
    items = [f"- {request.instructions}"] if request.instructions else []
    items += [f"- {item.description}: {item.value}" for item in request.context]
    if not items:
        return ""
    heading = "我知道的背景：" if CHINESE.search(context.question) else "What I was told:"
    return "\n".join([heading, *items])


def _may_search(context: RunContext) -> bool:
    """Return whether the request leaves the choice of our tools to us, and allows a call."""
    request = context.request
    return request.server_tools is None and request.tool_choice.most_calls != 0


def _search(context: RunContext) -> ToolUse:
    return ToolUse(
        "gymbro.exercise.search",
        {"query": shows.strip_control_words(context.question) or "-", "top_k": 5},
    )


def _usage(context: RunContext, count: int) -> events.Usage:
    return events.Usage(input_tokens=len(split_tokens(context.question)), output_tokens=count)


def split_tokens(text: str) -> list[str]:
    """Return the text in pieces as a model would stream it; joined they are the text again."""
    return _TOKEN.findall(text)


def compose_answer(question: str, exercises: list[dict[str, Any]]) -> str:
    """Return a short, useful answer from the exercises."""
    chinese = bool(CHINESE.search(question))
    if not exercises:
        return _NOTHING_ZH if chinese else _NOTHING_EN
    write = _in_chinese if chinese else _in_english
    return write(question.strip(), exercises)


def _found(context: RunContext) -> list[dict[str, Any]]:
    """Return the exercises found; results of the web search have a title and no name."""
    found = (item for finding in context.findings for item in _results(finding))
    return [item for item in found if "name" in item]


def _results(outcome: ToolOutcome) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (outcome.result or {}).get("results", [])
    return found


def _in_chinese(question: str, exercises: list[dict[str, Any]]) -> str:
    lines = [f"关于“{shorten(question, _LONGEST_TOPIC)}”，动作库里最合适的有：", ""]
    for number, item in enumerate(exercises, 1):
        volume = _volume(item, "（{sets} 组 × {reps} 次）")
        lines.append(f"{number}. **{item['name']}**{volume}：{shows.split_languages(item)[0]}")
    if tip := _first(exercises[0], "tips"):
        lines += ["", f"先从“{exercises[0]['name']}”开始。要点：{tip}。"]
    lines += ["", "组间休息 60–120 秒，动作变形就减重。（离线演示模型的回答）"]
    return "\n".join(lines)


def _in_english(question: str, exercises: list[dict[str, Any]]) -> str:
    lines = [f"For “{shorten(question, _LONGEST_TOPIC)}” the exercise library suggests:", ""]
    for number, item in enumerate(exercises, 1):
        _, name, description = shows.split_languages(item)
        volume = _volume(item, " ({sets} × {reps})")
        lines.append(f"{number}. **{name}**{volume}{f': {description}' if description else ''}")
    first = shows.split_languages(exercises[0])[1]
    lines += [
        "",
        f"Start with the {first}; rest one to two minutes between sets and lower the "
        "weight when your form breaks. (An answer of the offline demo model.)",
    ]
    return "\n".join(lines)


def _volume(item: dict[str, Any], form: str) -> str:
    sets, reps = item.get("defaultSets"), item.get("defaultReps")
    return form.format(sets=sets, reps=reps) if sets and reps else ""


def _first(item: dict[str, Any], key: str) -> str:
    return str((item.get(key) or [""])[0]).rstrip("。.")


_NOTHING_ZH: Final = (
    "这是 Parley 的离线演示模型。它会用动作库回答健身问题，比如“练胸有什么动作？”。"
    "这个问题在动作库里没有找到相关内容；在管理后台添加一个模型端点，就能得到真正模型的回答。"
)
_NOTHING_EN: Final = (
    "This is Parley's offline demo model. It answers from the exercise library: try “Which exercises "
    "train my chest?”. Nothing there matches this question; add a model endpoint in the admin to have "
    "a real model answer it."
)
