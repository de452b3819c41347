"""Reasoning put back among a thread's messages: the log has it, the stored messages do not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agents.dialects.ag_ui import message_ids
from agents.dialects.base import id_in_run
from agents.dialects.wire import Wire
from conversations import events
from conversations.events import RunEvent


def outline(run: str, some: Iterable[RunEvent]) -> list[Wire]:
    """Return a run's reasoning in AG-UI's shape, and `{id}` of its messages and calls, in order."""
    known: dict[str, Wire] = {}
    begun: dict[str, int] = {}
    open_id = ""
    for event in some:
        fact = event.fact
        thinks = isinstance(fact, events.ReasoningDelta)
        if open_id and not thinks:
            known[open_id]["metadata"]["parley"]["latency_ms"] = event.at - begun[open_id]
            open_id = ""
        match fact:
            case events.ReasoningDelta(message_id, text):
                open_id = message_ids.reasoning_id(message_id, run)
                begun.setdefault(open_id, event.at)
                known.setdefault(open_id, _reasoning(open_id, run))["content"] += text
            case events.MessageDelta(message_id) | events.MessageCompleted(
                events.MessageBody(message_id=message_id)
            ):
                wire_id = id_in_run(message_id, run)
                known.setdefault(wire_id, {"id": wire_id})
            case events.ToolCallStarted() as started:
                wire_id = events.call_message_id(message_ids.call_id(started, run))
                known.setdefault(wire_id, {"id": wire_id})
    return list(known.values())


def _reasoning(wire_id: str, run: str) -> Wire:
    return {
        "id": wire_id,
        "role": "reasoning",
        "content": "",
        "metadata": {"parley": {"run_id": run}},
    }


def with_thoughts(messages: list[Wire], outlines: dict[str, list[Wire]]) -> list[Wire]:
    """Return the messages, each stretch of reasoning before the next of them, else at its run's end."""
    here = {message["id"] for message in messages}
    before: dict[str, list[Wire]] = {}
    after: dict[str, list[Wire]] = {}
    for run, known in outlines.items():
        places, key = after, run
        for one in reversed(known):
            if one.get("role") == "reasoning":
                places.setdefault(key, []).insert(0, one)
            elif one["id"] in here:
                places, key = before, one["id"]
    return list(_merged(messages, before, after))


def _merged(
    messages: list[Wire], before: dict[str, list[Wire]], after: dict[str, list[Wire]]
) -> Iterator[Wire]:
    last = {_run_of(message): place for place, message in enumerate(messages)}
    for place, message in enumerate(messages):
        yield from before.get(message["id"], ())
        yield message
        run = _run_of(message)
        if last[run] == place:
            yield from after.get(run, ())


def _run_of(message: Wire) -> str:
    return str(message.get("metadata", {}).get("parley", {}).get("run_id", ""))
