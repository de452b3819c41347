"""What of a conversation a model reads: the newest that fits, never half of a tool call."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.providers.base import ChatMessage, ImagePart, ToolCall
from agents.runners.tokens import of_message, of_messages
from agents.runners.window import fit_window, history_budget, split_units
from prompts.wordings.token_estimate import estimate

WORDS = st.text(st.characters(codec="utf-8"), max_size=200) | st.sampled_from(
    ["", "x" * 4_000, "练" * 900]
)


@st.composite
def turns(draw: st.DrawFn) -> list[ChatMessage]:
    """A conversation as `chat_messages` gives it: calls have their answers right behind them."""
    said: list[ChatMessage] = []
    for number in range(draw(st.integers(0, 12))):
        kind = draw(st.sampled_from(["user", "assistant", "calls", "system"]))
        words = draw(WORDS)
        if kind != "calls":
            said.append(ChatMessage(kind, words))  # type: ignore[arg-type]
            continue
        ids = [f"{number}-{place}" for place in range(draw(st.integers(1, 3)))]
        calls = tuple(ToolCall(call_id, "look", '{"a": 1}') for call_id in ids)
        said.append(ChatMessage("assistant", words, tool_calls=calls))
        said += [ChatMessage("tool", draw(WORDS), tool_call_id=call_id) for call_id in ids]
    return said


@given(turns(), st.integers(0, 3_000), st.integers(1, 4))
def test_pairs_are_kept_together_the_newest_is_in_and_the_budget_holds(
    said: list[ChatMessage], budget: int, needed: int
) -> None:
    made = fit_window(said, budget, needed=needed)
    kept = list(made.messages)
    assert made.cut == len(said) - len(kept)
    called = [call.id for one in kept for call in one.tool_calls]
    assert called == [one.tool_call_id for one in kept if one.role == "tool"]
    assert [one for one in said if one.role == "system"] == [one for one in kept if one.role == "system"]
    rest = [one for one in said if one.role != "system"]
    shown = [one for one in kept if one.role != "system"]
    assert shown == rest[len(rest) - len(shown) :]
    assert len(shown) >= min(needed, len(rest))
    must: list[ChatMessage] = []
    for unit in reversed(list(split_units(rest))):
        if len(must) >= needed:
            break
        must = [*unit, *must]
    systems = [one for one in kept if one.role == "system"]
    assert of_messages(kept) <= max(budget, of_messages([*systems, *must]))


@given(turns())
def test_what_fits_is_not_touched(said: list[ChatMessage]) -> None:
    assert fit_window(said, of_messages(said)).messages == tuple(said)


def test_nothing_older_than_what_does_not_fit_is_kept() -> None:
    said = [ChatMessage("user", "a"), ChatMessage("assistant", "b" * 9_000), ChatMessage("user", "c")]
    assert fit_window(said, 100).messages == (said[2],)


@pytest.mark.parametrize(
    ("size", "answer", "fixed", "left"),
    [
        (32_000, None, 0, 24_000),
        (32_000, 1_000, 2_000, 29_000),
        (32_000, 30_000, 0, 16_000),  # half of a context is for what was said, whatever is asked
        (4_000, 10, 0, 3_744),
        (4_000, None, 9_000, 0),
    ],
)
def test_the_budget_leaves_room_for_the_answer(
    size: int, answer: int | None, fixed: int, left: int
) -> None:
    assert history_budget(size, answer=answer, fixed=fixed) == left


ENGLISH = (
    "You should rest one to two minutes between the sets and lower the weight when your form breaks. "
    "Squats train the whole leg, and the deadlift trains the back as well. How often do you train in a "
    "week, and what would you like to reach?"
)
CHINESE = (
    "练胸最好的动作是杠铃卧推、上斜哑铃卧推和双杠臂屈伸。每个动作做四组，每组八到十二次，组间休息六十到一百二十秒。"
    "动作变形时要减轻重量，先掌握正确的姿势，再慢慢增加负荷。你每周训练几次？想达到什么目标？"
)
MIXED = (
    "关于“bench press”，动作库里最合适的有：1. **杠铃卧推** (4 × 8 次): Push the bar up slowly. "
    "2. 飞鸟 fly，用 cable 也可以。"
)
FOUND = (
    '{"name":"杠铃卧推","muscleGroup":"CHEST","description":"躺在平板凳上推起杠铃。","sets":4,"reps":8}'
)
CODE = (
    "function load(kg){const plates=[25,20,15,10,5,2.5,1.25];let rest=(kg-20)/2;const out=[];"
    "for(const p of plates){while(rest>=p){out.push(p);rest-=p}}return out}"
)


@pytest.mark.parametrize(
    ("said", "o200k", "cl100k"),
    [
        (ENGLISH, 53, 53),
        (CHINESE, 91, 134),
        (MIXED, 48, 60),
        (FOUND, 42, 46),
        (CODE, 61, 61),
    ],
)
def test_the_guess_is_near_what_tokenizers_count(said: str, o200k: int, cl100k: int) -> None:
    """Both counts were taken with bpe-openai 0.1.4."""
    guessed = estimate(said)
    assert 0.85 * o200k <= guessed <= 1.4 * o200k
    assert guessed >= 0.8 * cl100k


def test_images_and_calls_count() -> None:
    plain = of_message(ChatMessage("user", "Hi."))
    assert of_message(ChatMessage("user", "Hi.", images=(ImagePart("image/png"),))) > plain + 1_000
    call = ToolCall("c", "search", '{"query": "' + "x" * 400 + '"}')
    assert of_message(ChatMessage("assistant", "", tool_calls=(call,))) > 90
