"""Reasoning put back among a thread's messages: the log has it, the stored messages do not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agents.dialects.ag_ui import message_ids
from agents.dialects.ag_ui.message_types import (
    AgUiMessage,
    AgUiMessageFacts,
    AgUiMetadata,
    AgUiReasoningFacts,
    AgUiStreamedMessage,
    StoredMessage,
)
from agents.dialects.base import id_in_run
from conversations import events, identifiers
from conversations.events import RunEvent


def outline(run: str, some: Iterable[RunEvent]) -> list[AgUiMessage]:
    """Return a run's reasoning in AG-UI's shape, and the ids of its messages and calls, in order."""
    known: dict[str, AgUiMessage] = {}
    reasoned: dict[str, AgUiStreamedMessage] = {}
    begun: dict[str, int] = {}
    open_id = ""
    for event in some:
        fact = event.fact
        thinks = isinstance(fact, events.ReasoningDelta)
        if open_id and not thinks:
            facts = AgUiReasoningFacts(run, event.at - begun[open_id])
            reasoned[open_id].metadata = AgUiMetadata(facts)
            open_id = ""
        match fact:
            case events.ReasoningDelta(message_id, text):
                open_id = message_ids.reasoning_id(message_id, run)
                begun.setdefault(open_id, event.at)
                message = reasoned.setdefault(open_id, _reasoning(open_id, run))
                message.content += text
                known.setdefault(open_id, message)
            case events.MessageDelta(message_id) | events.MessageCompleted(
                events.MessageBody(message_id=message_id)
            ):
                wire_id = id_in_run(message_id, run)
                known.setdefault(wire_id, AgUiMessage(wire_id))
            case events.ToolCallStarted() as started:
                wire_id = identifiers.call_message_id(message_ids.call_id(started, run))
                known.setdefault(wire_id, AgUiMessage(wire_id))
    return list(known.values())


def _reasoning(wire_id: str, run: str) -> AgUiStreamedMessage:
    return AgUiStreamedMessage(wire_id, "reasoning", "", AgUiMetadata(AgUiReasoningFacts(run)))


def with_thoughts(
    messages: list[AgUiMessage], outlines: dict[str, list[AgUiMessage]]
) -> list[AgUiMessage]:
    """Return the messages, each stretch of reasoning before the next of them, else at its run's end."""
    here = {message.id for message in messages}
    before: dict[str, list[AgUiMessage]] = {}
    after: dict[str, list[AgUiMessage]] = {}
    for run, known in outlines.items():
        places, key = after, run
        for one in reversed(known):
            if isinstance(one, AgUiStreamedMessage):
                places.setdefault(key, []).insert(0, one)
            elif one.id in here:
                places, key = before, one.id
    return list(_merged(messages, before, after))


def _merged(
    messages: list[AgUiMessage],
    before: dict[str, list[AgUiMessage]],
    after: dict[str, list[AgUiMessage]],
) -> Iterator[AgUiMessage]:
    last = {_run_of(message): place for place, message in enumerate(messages)}
    for place, message in enumerate(messages):
        yield from before.get(message.id, ())
        yield message
        run = _run_of(message)
        if last[run] == place:
            yield from after.get(run, ())


def _run_of(message: AgUiMessage) -> str:
    match message:
        case StoredMessage(metadata=AgUiMetadata(parley=AgUiMessageFacts(run_id=str(run)))):
            return run
    return ""
