"""Runners with a script: what a test wants said, said to the real execution."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any

from agents.runners.base import Host, RunContext, RunFailure
from conversations import events
from conversations.events import Fact

Script = Callable[[RunContext], AsyncGenerator[Fact]]
PAUSE_S = 0.01


class Scripted:
    """A runner that follows the script which the client names."""

    def run(self, context: RunContext, host: Host) -> AsyncGenerator[Fact]:
        return SCRIPTS[named(context)](context)


def named(context: RunContext) -> str:
    """The script in `forwardedProps.script`, or in a question such as `script everything`."""
    props = context.request.forwarded_props
    if isinstance(props, dict) and "script" in props:
        return str(props["script"])
    begun, _, name = context.question.partition(" ")
    return name if begun == "script" else ""


async def everything(context: RunContext) -> AsyncGenerator[Fact]:
    """One of each: reasoning, text, two tools at once, state, an artifact, a second message."""
    said = context.message_id
    yield events.ModelRouted("scripted", "script-1")
    for word in ("let ", "me ", "think"):
        yield events.ReasoningDelta(said, word)
        await asyncio.sleep(PAUSE_S)
    yield events.MessageDelta(said, "I look ")
    yield events.MessageDelta(said, "it up. 好的\u2028")
    yield events.ToolCallStarted("1", "search", {"q": "鸟"})
    yield events.ToolCallStarted("2", "search", {"q": "fish"})
    await asyncio.sleep(PAUSE_S)
    yield events.ToolCallCompleted("2", "search", True, 12, {"total": 1, "results": [{"name": "cod"}]})
    yield events.ToolCallCompleted("1", "search", False, 9, error=events.Problem("gone", "No birds."))
    yield events.StateUpdated("thread", "", {"count": 0, "items": ["a"]})
    yield events.StateUpdated("thread", "/count", 1)
    yield events.StateUpdated("thread", "/items/-", "b")
    yield events.StateUpdated("thread", "/deep/er", True)
    yield events.ArtifactCreated("chart", "image", "image/png", "chart.png", 10)
    await asyncio.sleep(PAUSE_S)
    for word in ("Here ", "it ", "is."):
        yield events.MessageDelta("second", word)
        await asyncio.sleep(PAUSE_S)
    hints = {"status": "success", "title": "Done"}
    yield events.MessageCompleted(
        events.MessageBody("second", "assistant", "Here it is.", ui_hints=hints)
    )
    yield events.RunCompleted("stop", events.Usage(12, 34, 5, 6))


async def asks(context: RunContext) -> AsyncGenerator[Fact]:
    """Wants an approval first; with the answer it goes on."""
    answers = context.request.answers
    if not answers:
        yield events.ToolCallStarted("pay", "transfer", {"amount": 10})
        interrupt = {
            "id": f"approve-{context.run_id.hex}",
            "reason": "tool_call",
            "message": "Transfer 10?",
            "toolCallId": "pay",
            "responseSchema": {"type": "object"},
        }
        yield events.RunCompleted("interrupt", interrupts=[interrupt])
        return
    yield events.MessageDelta(context.message_id, f"{answers[0].status}: {answers[0].payload}")


async def endless(context: RunContext) -> AsyncGenerator[Fact]:
    """Speaks until somebody stops it."""
    while True:
        yield events.MessageDelta(context.message_id, "on and ")
        await asyncio.sleep(0.02)


async def fails(context: RunContext) -> AsyncGenerator[Fact]:
    yield events.MessageDelta(context.message_id, "I am")
    raise RunFailure("provider_error", "The model is out of order.", retryable=True)


async def misbehaves(context: RunContext) -> AsyncGenerator[Fact]:
    """Everything in the wrong order, and speaking on after its last word."""
    yield events.ToolCallCompleted("ghost", "search", True, 1, {"total": 0})
    yield events.StageCompleted("never begun", 1)
    yield events.StageStarted("never ended")
    yield events.StageStarted("never ended")
    yield events.MessageDelta("a", "one")
    yield events.MessageCompleted(events.MessageBody("a", "assistant", "one two"))
    yield events.MessageDelta("a", "three")
    yield events.MessageCompleted(events.MessageBody("a", "assistant", "one two"))
    yield events.ToolCallStarted("x", "search")
    yield events.ToolCallStarted("x", "search")
    yield events.ReasoningDelta("a", "hm")
    yield events.RunCompleted("stop")
    yield events.MessageDelta("a", "after the end")


async def leaves_all_open(context: RunContext) -> AsyncGenerator[Fact]:
    """Begins much and ends nothing, not even itself."""
    yield events.StageStarted("one")
    yield events.StageStarted("two")
    yield events.MessageDelta("a", "begun")
    yield events.ToolCallStarted("x", "search", {"q": 1})
    yield events.ToolCallStarted("y", "search", {"q": 2})
    yield events.MessageDelta("b", ", too")
    yield events.ReasoningDelta("c", "and thought")


async def says_all_twice(context: RunContext) -> AsyncGenerator[Fact]:
    """Each thing again, after it has ended."""
    for turn in ("1", "2"):
        yield events.ReasoningDelta(turn, "so")
        yield events.MessageCompleted(events.MessageBody("r", "reasoning", "thus"))
        yield events.ToolCallStarted("x", "search", {"q": 1})
        yield events.ToolCallCompleted("x", "search", True, 1, {"total": 0})
        yield events.ToolCallCompleted("x", "search", False, 1, None, events.Problem("late", "Late."))
        yield events.MessageDelta("a", "once")
        yield events.MessageCompleted(events.MessageBody("a", "assistant", "once"))
        yield events.MessageCompleted(events.MessageBody("a", "assistant", "another"))
        yield events.StateUpdated("thread", "/n", 1)
        yield events.ArtifactCreated("z", "image", "image/png", "z.png", 1)
    yield events.RunCompleted("stop")
    yield events.RunFailed("provider_error", "The second end.")


async def says_what_nothing_can_hold(context: RunContext) -> AsyncGenerator[Fact]:
    """Empty ids and names, NUL, half a surrogate pair, line ends that are none."""
    yield events.ToolCallStarted("", "", {"\x00": "\ud800"})
    yield events.ToolCallCompleted("", "", True, -5, {"a\x00": ["\udfff", {"b": "\u2028"}]})
    yield events.MessageDelta("", "a\x00b\ud800c\u2028d\u2029e\x85f\r\n")
    yield events.MessageDelta("", "")
    yield events.StateUpdated("thread", "not/a/pointer", {"\ud800": 1})
    yield events.StateUpdated("thread", "/__proto__/x", 1)
    yield events.RunCompleted("")


async def says_no_fact(context: RunContext) -> AsyncGenerator[Fact]:
    yield events.MessageDelta("a", "well")
    yield events.ToolCallStarted("x", "search")
    yield {"type": "message.delta"}  # type: ignore[misc]


async def breaks(context: RunContext) -> AsyncGenerator[Fact]:
    yield events.ReasoningDelta("a", "hm")
    yield events.MessageDelta("a", "I am")
    yield events.ToolCallStarted("x", "search")
    raise ZeroDivisionError("secret")


async def waits_in_vain(context: RunContext) -> AsyncGenerator[Fact]:
    """It gives up waiting for something of its own: that is not the run's deadline."""
    yield events.MessageDelta("a", "well")
    raise TimeoutError("secret")


async def ends_with_nonsense(context: RunContext) -> AsyncGenerator[Fact]:
    yield events.MessageDelta("a", "well")
    yield events.RunCompleted(7, metadata={"x": object()})  # type: ignore[arg-type]


async def fails_in_odd_words(context: RunContext) -> AsyncGenerator[Fact]:
    yield events.MessageDelta("\ud800", "well")
    raise RunFailure("odd\ud800", "\x00")


async def answers_for_the_client(context: RunContext) -> AsyncGenerator[Fact]:
    """Answers a call that only the client may answer, and asks what nobody called."""
    yield events.ToolCallStarted("x", "theirs", {"a": 1}, "frontend")
    yield events.ToolCallCompleted("x", "theirs", True, 1, {"b": 2})
    odd: list[Any] = [{"id": "i", "toolCallId": "nobody's"}, {"id": 7, "toolCallId": ["x"]}, {}]
    yield events.RunCompleted("interrupt", interrupts=odd)


MISBEHAVING: tuple[Script, ...] = (
    misbehaves,
    leaves_all_open,
    says_all_twice,
    says_what_nothing_can_hold,
    says_no_fact,
    breaks,
    waits_in_vain,
    ends_with_nonsense,
    fails_in_odd_words,
    answers_for_the_client,
)
SCRIPTS: dict[str, Script] = {
    made.__name__: made for made in (everything, asks, endless, fails, *MISBEHAVING)
}
