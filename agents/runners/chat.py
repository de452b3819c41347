"""The model-driven runner: it asks the run's model and passes its words on."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing

from agents.providers.base import Finished, ModelEvent, Opened, ReasoningText, TextDelta, ToolCall
from agents.runners.base import ChatMessage, Host, RunContext
from agents.runners.injection import injected_context
from conversations import events
from conversations.events import Fact


class ChatRunner:
    """System message, history, findings and question go to the model; its stream becomes facts."""

    async def run(self, context: RunContext, host: Host) -> AsyncGenerator[Fact]:
        async with aclosing(host.stream_model(_messages(context))) as stream:
            async for said in stream:
                for fact in _facts(context, said):
                    yield fact


def _facts(context: RunContext, said: ModelEvent) -> Iterable[Fact]:
    match said:
        case TextDelta(text):
            yield events.MessageDelta(context.message_id, text)
        case ReasoningText(text):
            yield events.ReasoningDelta(context.message_id, text)
        case Opened(endpoint_id, provider, model, upstream_request_id):
            yield events.ModelRouted(provider, model, endpoint_id, upstream_request_id)
        case Finished(finish_reason, usage, calls):
            for call in calls:
                yield from _unasked(call)
            yield events.RunCompleted(finish_reason, usage)


def _messages(context: RunContext) -> tuple[ChatMessage, ...]:
    injected = injected_context(context.findings, source="agent_run")
    return (
        *([ChatMessage("system", context.system)] if context.system else []),
        *context.history,
        *([ChatMessage("user", injected)] if injected else []),
        ChatMessage("user", context.question),
    )


def _unasked(call: ToolCall) -> tuple[Fact, Fact]:
    """A call for a tool that this run did not offer: visible, and refused."""
    problem = events.Problem(
        "tool_not_offered", "The model asked for a tool that this run does not offer."
    )
    return (
        events.ToolCallStarted(call.id, call.name, {"arguments": call.arguments}),
        events.ToolCallCompleted(call.id, call.name, False, 0, error=problem),
    )
