"""The offline model: deterministic, in the language of the question, and joined again from tokens."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pytest_django import Settings

from agents.requests import InputMessage, RunRequest, ToolUse
from agents.runners.base import RunContext, ToolOutcome
from agents.runners.conversation import chat_messages
from agents.runners.demo import tool_use
from agents.runners.demo.runner import DemoRunner, compose_answer, split_tokens
from conversations import events
from conversations.events import Fact, Problem
from tests.support.properties.strategies import texts

RUN_ID = UUID("0199c3c0-1111-7222-8333-444455556666")
BENCH = {
    "name": "杠铃卧推",
    "description": "躺在平板凳上推起杠铃。 Barbell Bench Press: Push the bar up: slowly.",
    "defaultSets": 4,
    "defaultReps": 8,
    "tips": ["肩胛收紧。", "脚踩实"],
}
FLY = {"name": "飞鸟", "description": "张开双臂。"}


class NoHost:
    """The demo asks nobody."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"the demo called {name}")


def context(question: str, *findings: ToolOutcome, tools: tuple[str, ...] | None = ()) -> RunContext:
    said = InputMessage("user", question)
    request = RunRequest("text", "demo", (said,), "req-1", server_tools=tools)
    return RunContext(RUN_ID, RUN_ID, RUN_ID, 1, 0, request, "", chat_messages([said]), findings)


def found(*items: dict[str, Any]) -> ToolOutcome:
    return ToolOutcome(ToolUse("search", {}), 1, {"total": len(items), "results": list(items)})


def facts(asked: RunContext) -> list[Fact]:
    async def collect() -> list[Fact]:
        return [fact async for fact in DemoRunner().run(asked, NoHost())]

    return asyncio.run(collect())


# --- answers -------------------------------------------------------------------------------------


def test_a_chinese_question_is_answered_in_chinese() -> None:
    assert compose_answer(" 练胸 有什么动作？ ", [BENCH, FLY]) == (
        "关于“练胸 有什么动作？”，动作库里最合适的有：\n"
        "\n"
        "1. **杠铃卧推**（4 组 × 8 次）：躺在平板凳上推起杠铃。\n"
        "2. **飞鸟**：张开双臂。\n"
        "\n"
        "先从“杠铃卧推”开始。要点：肩胛收紧。\n"
        "\n"
        "组间休息 60–120 秒，动作变形就减重。（离线演示模型的回答）"
    )


def test_any_other_question_is_answered_in_english() -> None:
    assert compose_answer("How do I train my chest?", [BENCH, FLY]) == (
        "For “How do I train my chest?” the exercise library suggests:\n"
        "\n"
        "1. **Barbell Bench Press** (4 × 8): Push the bar up: slowly.\n"
        "2. **飞鸟**\n"
        "\n"
        "Start with the Barbell Bench Press; rest one to two minutes between sets and lower the weight "
        "when your form breaks. (An answer of the offline demo model.)"
    )


@pytest.mark.parametrize(
    ("question", "language"),
    [
        ("卧推", "zh"),
        ("bench 卧推 press", "zh"),
        ("㐀", "zh"),
        ("bench press", "en"),
        ("", "en"),
        ("🏋️", "en"),
        ("жим лёжа", "en"),
        ("ベンチプレス", "en"),
    ],
)
def test_the_language_is_that_of_the_question(question: str, language: str) -> None:
    opening = (
        "这是 Parley 的离线演示模型。" if language == "zh" else "This is Parley's offline demo model."
    )
    assert compose_answer(question, []).startswith(opening)


def test_an_exercise_without_details_is_only_named() -> None:
    bare = {"name": "深蹲", "description": "蹲下。", "tips": [], "defaultSets": 0, "defaultReps": 5}
    assert compose_answer("腿", [bare]) == (
        "关于“腿”，动作库里最合适的有：\n\n1. **深蹲**：蹲下。\n\n"
        "组间休息 60–120 秒，动作变形就减重。（离线演示模型的回答）"
    )
    assert "1. **深蹲**\n" in compose_answer("legs", [bare])


def test_a_colon_in_an_english_description_makes_no_name_of_what_is_before_it() -> None:
    plain = {"name": "Squat", "description": "Stand. Note: keep your heels down."}
    assert "1. **Squat**: Stand. Note: keep your heels down.\n" in compose_answer("legs", [plain])
    assert "Start with the Squat;" in compose_answer("legs", [plain])
    assert "1. **Squat**：Stand. Note: keep your heels down.\n" in compose_answer("腿", [plain])


def test_a_long_question_is_repeated_in_brief() -> None:
    assert compose_answer("x" * 60, [BENCH]).startswith(f"For “{'x' * 60}” the")
    assert compose_answer("x" * 61, [BENCH]).startswith(f"For “{'x' * 59}…” the")
    assert compose_answer("a \n\t b", [BENCH]).startswith("For “a b” the")


# --- tokens --------------------------------------------------------------------------------------


@given(texts())
@example("\u3000\u3000")
@example("　　卧推　　")
@example(" \x1c\x1d\x1e\x1f\x85\u2028 ")
def test_the_tokens_of_any_text_join_to_it(whole: str) -> None:
    pieces = split_tokens(whole)
    assert "".join(pieces) == whole
    assert all(pieces)


@pytest.mark.parametrize(
    ("whole", "pieces"),
    [
        ("", []),
        ("   ", ["   "]),
        ("Hello, my  friend", ["Hello, ", "my  ", "friend"]),
        (" a", [" a"]),
        ("卧推，好", ["卧", "推", "，", "好"]),
        ("做4组 x", ["做", "4", "组 ", "x"]),
        ("a\n\n1. **b**", ["a\n\n", "1. ", "**b**"]),
    ],
)
def test_these_texts_have_these_tokens(whole: str, pieces: list[str]) -> None:
    assert split_tokens(whole) == pieces


@pytest.mark.timeout(10)
@pytest.mark.parametrize("blank", [" ", "\n", "\x1c", "\u3000", "\u2028"])
def test_a_long_blank_is_cut_in_no_time(blank: str) -> None:
    assert "".join(split_tokens(blank * 200_000)) == blank * 200_000


# --- the runner ----------------------------------------------------------------------------------


def test_the_runner_streams_its_answer_token_by_token(settings: Settings) -> None:
    settings.DEMO_TOKEN_S = 0
    question = "练胸有什么动作？"
    said = facts(context(question, found(BENCH), found(FLY)))
    pieces = split_tokens(compose_answer(question, [BENCH, FLY]))
    assert said == [
        events.ModelRouted("demo", "demo-1", None),
        *[events.MessageDelta(f"execution-{RUN_ID.hex}", piece) for piece in pieces],
        events.RunCompleted("stop", events.Usage(input_tokens=8, output_tokens=len(pieces))),
    ]


def test_the_same_question_has_the_same_answer(settings: Settings) -> None:
    settings.DEMO_TOKEN_S = 0
    assert facts(context("squat", found(FLY))) == facts(context("squat", found(FLY)))


@pytest.mark.parametrize(
    "finding",
    [
        found(),
        ToolOutcome(ToolUse("search", {}), 1, {}),
        ToolOutcome(ToolUse("search", {}), 1, None, Problem("exercise_search_failed", "It failed.")),
    ],
)
def test_a_search_that_found_nothing_is_no_obstacle(finding: ToolOutcome, settings: Settings) -> None:
    settings.DEMO_TOKEN_S = 0
    said = facts(context("squat", finding))
    text = "".join(fact.text for fact in said if isinstance(fact, events.MessageDelta))
    assert text == compose_answer("squat", [])


# --- a tool by its name --------------------------------------------------------------------------


class ToolHost(NoHost):
    """It has one tool, which weighs."""

    async def call_tool(self, use: ToolUse, *, call_id: str = "") -> ToolOutcome:
        assert call_id == f"call_{RUN_ID.hex}"
        return ToolOutcome(use, 3, {"kg": 20})


@pytest.mark.parametrize("tools", [None, ("gym.weigh",)])
def test_a_question_that_is_a_tool_and_its_arguments_calls_it(
    tools: tuple[str, ...] | None, settings: Settings
) -> None:
    settings.DEMO_TOKEN_S = 0
    asked = context('gym.weigh {"what": "bar"}', tools=tools)

    async def collect() -> list[Fact]:
        return [fact async for fact in DemoRunner().run(asked, ToolHost())]

    call = f"call_{RUN_ID.hex}"
    assert asyncio.run(collect()) == [
        events.ModelRouted("demo", "demo-1", None),
        events.ToolCallStarted(call, "gym.weigh", {"what": "bar"}),
        events.ToolCallCompleted(call, "gym.weigh", True, 3, {"kg": 20}, None),
        events.MessageDelta(f"execution-{RUN_ID.hex}", 'The tool answered: {"kg":20}'),
        events.RunCompleted("stop", events.Usage(input_tokens=3, output_tokens=1)),
    ]


@pytest.mark.parametrize(
    ("question", "tools"),
    [
        ("gym.weigh the bar", None),
        ("gym.weigh {nonsense}", None),
        ("weigh", None),
        ("parley.read_artifact {}", None),
        ("demo.note", None),
        ("gym.weigh", ()),
        ("gym.weigh", ("gym.plates",)),
    ],
)
def test_nothing_else_calls_a_tool(question: str, tools: tuple[str, ...] | None) -> None:
    assert tool_use.written_call(context(question, tools=tools)) is None


@given(st.text(max_size=50))
def test_any_question_has_an_answer(question: str) -> None:
    assert compose_answer(question, [])
    assert compose_answer(question, [BENCH])
