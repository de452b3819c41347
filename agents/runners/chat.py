"""The model-driven runner: it asks the run's model, runs the tools it calls, and yields its text."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import aclosing
from itertools import chain, groupby
from typing import Any, Final

import msgspec
from django.conf import settings

from agents.providers.base import (
    ChatMessage,
    Finished,
    ModelEvent,
    Opened,
    RawChunk,
    ReasoningText,
    TextDelta,
    ToolCall,
)
from agents.providers.decoding import parse_object
from agents.requests import ToolUse
from agents.runners.base import CHINESE, Approval, Host, RunContext, RunFailure
from agents.runners.cards import Cards
from agents.runners.injection import injected_context
from agents.runners.tool_choice import OfferedTools
from agents.runners.tool_loop import StepCalls
from conversations import events
from conversations.events import Fact, Usage
from conversations.log.deltas import Deltas
from conversations.log.growing_text import GrowingText


class ChatRunner:
    """Send system message, conversation and findings to the model; turn its stream into facts.

    While the model calls tools of ours, run them and ask it again; the run ends when it calls none, or
    one of the client's, or one that needs an approval.
    Raise RunFailure `tool_limit_exceeded` past TOOL_STEPS or TOOL_CALLS.
    """

    async def run(self, context: RunContext, host: Host) -> AsyncGenerator[Fact | Deltas]:
        opening = no_vision_notice(context.question) if context.images and not host.sees else ""
        if opening:
            yield events.MessageDelta(context.message_id, opening)
        talk, usage, made = list(_messages(context)), Usage(), 0
        offer = OfferedTools(context, host)
        clients = frozenset(tool.name for tool in context.request.tools)  # mostly the one empty one
        cards = Cards(visible=context.shows_calls)
        message_id, spoken = context.message_id, 1
        for _ in range(settings.TOOL_STEPS):
            step, (offered, must_call) = _Step(message_id, opening), offer.step()
            stream = host.stream_model(
                tuple(talk),
                offered,
                raw=context.request.result_mode == "auto",
                message_id=message_id,
                must_call=must_call,
                one_by_one=context.request.tool_choice.one_by_one,
            )
            async with aclosing(stream) as answer:
                async for group in answer:
                    for said in step.take(group):
                        yield said
            usage, step.finished = usage.plus(step.finished.usage), offer.take(step.finished)
            shows, calls = cards.split_calls(step.finished.tool_calls, offered, clients)
            if not calls and not shows:
                for fact in cards.last_messages(step.message_id, step.delivered):
                    yield fact
                yield events.RunCompleted(step.finished.finish_reason, usage)
                return
            shown, answered = cards.take(shows)
            for fact in chain(shown, cards.message_with_card(step.message_id, step.delivered)):
                yield fact
            if step.delivered:
                spoken, opening = spoken + 1, ""
                message_id = f"{context.message_id}-{spoken}"
            made += len(shows) + len(calls)
            if made > settings.TOOL_CALLS:
                break
            ours = [call for call in calls if call.name not in clients]
            approvals = await _approvals(ours, host)
            waiting = {approval.call_id for approval in approvals}
            answers = StepCalls([call for call in ours if call.id not in waiting], host)
            async with aclosing(answers.run()) as facts:
                async for fact in facts:
                    yield step.with_thoughts(fact)
            theirs = [call for call in calls if call.name in clients]
            unfit = await offer.refuse_unfit(theirs)
            if unfit and not approvals:
                talk += [step.message(), *answered, *answers.messages(), *unfit]
                continue
            theirs = [] if unfit else theirs
            for fact in chain(map(_client_call, theirs), *(approval.facts for approval in approvals)):
                yield step.with_thoughts(fact)
            if approvals or theirs or not offered:  # without tools the model is not asked again
                for fact in cards.last_messages(message_id, ""):
                    yield fact
                yield _stopped(approvals, theirs, step, usage)
                return
            talk += [step.message(), *answered, *answers.messages()]
        raise RunFailure(
            "tool_limit_exceeded", "The model called more tools than a run may: TOOL_STEPS, TOOL_CALLS."
        )


class _Step:
    """One answer of the model, as facts, and as the message that it reads again later."""

    def __init__(self, message_id: str, opening: str = "") -> None:
        self.message_id = message_id
        self.finished = Finished("stop", Usage())
        self._opening = opening
        self._text = GrowingText()
        self._thoughts_told = False

    @property
    def delivered(self) -> str:
        """The part of its message that the user has read, including our own text before the model's."""
        return f"{self._opening}{self._text}"

    def with_thoughts(self, fact: Fact) -> Fact:
        """Return the fact; the step's first call gets the reasoning that its provider wants back."""
        thoughts = self.finished.reasoning
        if self._thoughts_told or not thoughts or not isinstance(fact, events.ToolCallStarted):
            return fact
        self._thoughts_told = True
        return msgspec.structs.replace(fact, reasoning=msgspec.to_builtins(thoughts))

    def take(self, group: Iterable[ModelEvent]) -> Iterator[Fact | Deltas]:
        """Yield what the run says of events that arrived together."""
        for kind, some in groupby(group, type):
            if kind is TextDelta:
                said = Deltas.of(events.MessageDelta, self.message_id, _texts(some))
                self._text.add(said.text)
                yield said
            elif kind is ReasoningText:
                yield Deltas.of(events.ReasoningDelta, self.message_id, _texts(some))
            else:
                for event in some:
                    yield from self._facts(event)

    def _facts(self, event: ModelEvent) -> Iterable[Fact]:
        match event:
            case RawChunk(wire, raw, upstream_event):
                cut = len(raw) > _LONGEST_RAW
                return (events.UpstreamRaw(wire, raw[:_LONGEST_RAW], upstream_event, cut),)
            case Opened(endpoint_id, provider, model, upstream_request_id):
                return (events.ModelRouted(provider, model, endpoint_id, upstream_request_id),)
            case Finished():
                self.finished = event
        return ()

    def message(self) -> ChatMessage:
        text, finished = str(self._text), self.finished
        return ChatMessage(
            "assistant", text, tool_calls=finished.tool_calls, reasoning=finished.reasoning
        )


def _texts(deltas: Iterable[Any]) -> list[str]:
    return [delta.text for delta in deltas]


def no_vision_notice(question: str) -> str:
    """Return the first words of a model without vision that gets an image."""
    return _BLIND_ZH if CHINESE.search(question) else _BLIND_EN


def _messages(context: RunContext) -> tuple[ChatMessage, ...]:
    """Return the system message and the conversation, with the findings before the newest question."""
    messages = list(context.conversation)
    injected = injected_context(context.findings, source="agent_run")
    if injected:
        questions = [place for place, message in enumerate(messages) if message.role == "user"]
        messages.insert(questions[-1] if questions else len(messages), ChatMessage("user", injected))
    return (*([ChatMessage("system", context.system)] if context.system else []), *messages)


def _client_call(call: ToolCall) -> Fact:
    """Return a call of the client's own tool: the client runs it, and answers with the next run."""
    return events.ToolCallStarted(call.id, call.name, parse_object(call.arguments), "frontend")


def _stopped(
    approvals: Sequence[Approval], client_calls: Sequence[ToolCall], step: _Step, usage: Usage
) -> events.RunCompleted:
    """Return the end of a run whose calls wait: for an approval, or for the client."""
    if approvals:
        interrupts = [approval.interrupt for approval in approvals]
        return events.RunCompleted("interrupt", usage, interrupts)
    return events.RunCompleted("tool_calls" if client_calls else step.finished.finish_reason, usage)


async def _approvals(calls: Sequence[ToolCall], host: Host) -> list[Approval]:
    """Return the approvals that these calls need."""
    uses = [(call.id, ToolUse(call.name, parse_object(call.arguments))) for call in calls]
    needed = [await host.approval_for(use, call_id=call_id) for call_id, use in uses]
    return [approval for approval in needed if approval is not None]


_LONGEST_RAW: Final = 16_384
_BLIND_ZH: Final = "（这个模型看不到图片，下面只根据文字回答。）\n\n"
_BLIND_EN: Final = "(This model cannot see images; it answers from the text alone.)\n\n"
