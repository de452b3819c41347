"""The messages of a run as an AG-UI client has them after the events so far.

It does the same as `defaultApplyEvents` of `@ag-ui/client` with the same events, so that a client
which lost its connection can get them as snapshots (specs/ag-ui.md, "Resume without any change to
the client"). The tests compare it with the real client.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from agents.dialects.wire import Wire


class Fold:
    """A fold of the run's own wire events, one by one; its texts come by `add_text`."""

    def __init__(self) -> None:
        self._messages: list[Wire] = []
        self._by_id: dict[str, Wire] = {}
        self._chunks: dict[str, list[str]] = {}
        self._calls: dict[str, Wire] = {}
        self._strays: set[str] = set()

    def after(self, before: Iterable[Wire]) -> list[Wire]:
        """Return these messages and the run's, in the client's order.

        The answer to a call of an earlier run is after the message of that call.
        """
        whole = list(before)
        for message in self.messages:
            if message["id"] in self._strays:
                put_beside_call(whole, message)
            else:
                whole.append(message)
        return whole

    @property
    def messages(self) -> list[Wire]:
        """The messages in the client's order; activities are where the client has them."""
        for message_id, chunks in self._chunks.items():
            message = self._by_id[message_id]
            message["content"] += "".join(chunks)
            chunks.clear()
        return self._messages

    def feed(self, event: Wire) -> None:
        """Take the next event; events that do not change messages or state are ignored."""
        apply = _APPLY.get(event["type"])
        if apply is not None:
            apply(self, event)

    def add_text(self, message_id: str, text: str) -> None:
        """Add text to a message that has been started."""
        self._chunks[message_id].append(text)

    def start(self, event: Wire) -> None:
        message_id = event["messageId"]
        if message_id not in self._by_id:
            self._add({"id": message_id, "role": event["role"], "content": ""})
            self._chunks[message_id] = []
        _merge(self._by_id[message_id], event)

    def end(self, event: Wire) -> None:
        _merge(self._by_id[event["messageId"]], event)

    def start_call(self, event: Wire) -> None:
        called = {"name": event["toolCallName"], "arguments": ""}
        call = {"id": event["toolCallId"], "type": "function", "function": called}
        self._calls[event["toolCallId"]] = call
        self._add({"id": event["parentMessageId"], "role": "assistant", "toolCalls": [call]})
        _merge(call, event)

    def call_arguments(self, event: Wire) -> None:
        self._calls[event["toolCallId"]]["function"]["arguments"] += event["delta"]

    def end_call(self, event: Wire) -> None:
        _merge(self._calls[event["toolCallId"]], event)

    def result(self, event: Wire) -> None:
        """Insert the answer after the message with its call, whatever came between."""
        answer = {key: event[key] for key in ("toolCallId", "role", "content")}
        message = {"id": event["messageId"]} | answer
        _merge(message, event)
        if event["toolCallId"] in self._calls:
            put_beside_call(self._messages, message)
            self._by_id[message["id"]] = message
        else:
            self._strays.add(message["id"])
            self._add(message)

    def activity(self, event: Wire) -> None:
        message = {"id": event["messageId"], "role": "activity"}
        message |= {key: event[key] for key in ("activityType", "content")}
        _merge(message, event)
        known = self._by_id.get(event["messageId"])
        if known is None:
            self._add(message)
        else:
            known |= message

    def _add(self, message: Wire) -> None:
        self._messages.append(message)
        self._by_id[message["id"]] = message


def put_beside_call(messages: list[Wire], answer: Wire) -> None:
    """Insert a tool's answer after the message with its call, and after the answers there already."""
    place = next(
        (place for place, message in enumerate(messages, 1) if _holds(message, answer["toolCallId"])),
        len(messages),
    )
    while place < len(messages) and messages[place]["role"] == "tool":
        place += 1
    messages.insert(place, answer)


def _holds(message: Wire, call_id: str) -> bool:
    return any(call["id"] == call_id for call in message.get("toolCalls", ()))


def _merge(target: Wire, event: Wire) -> None:
    """Merge an event's metadata into its target, key by key; the last one wins."""
    if "metadata" in event:
        target["metadata"] = target.get("metadata", {}) | event["metadata"]


_APPLY: Final[dict[str, Callable[[Fold, Wire], None]]] = {
    "TEXT_MESSAGE_START": Fold.start,
    "TEXT_MESSAGE_END": Fold.end,
    "REASONING_MESSAGE_START": lambda fold, event: fold.start(event | {"role": "reasoning"}),
    "REASONING_MESSAGE_END": Fold.end,
    "TOOL_CALL_START": Fold.start_call,
    "TOOL_CALL_ARGS": Fold.call_arguments,
    "TOOL_CALL_END": Fold.end_call,
    "TOOL_CALL_RESULT": Fold.result,
    "ACTIVITY_SNAPSHOT": Fold.activity,
}
