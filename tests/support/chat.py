"""An AG-UI client as apps write one: it keeps the conversation that it shows, and sends all of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import uuid4

from tests.support.client import Client, ScriptedModel, read_sse
from tests.support.fakes.fake_model import Answer, FakeModel, text

UNSET = object()
"""For a member of the body that is left out."""
Wire = dict[str, Any]
Told = list[tuple[str, str]]


def user(content: Any, message_id: str | None = None) -> Wire:
    return {"id": message_id or str(uuid4()), "role": "user", "content": content}


def system(content: str, message_id: str | None = None) -> Wire:
    return {"id": message_id or str(uuid4()), "role": "system", "content": content}


class Chat:
    """One conversation with a scripted model; `messages` is what the client shows of it."""

    def __init__(
        self, client: Client, provider: FakeModel, scripted: Callable[..., ScriptedModel]
    ) -> None:
        self.client = client
        self.thread_id = str(uuid4())
        self.messages: list[Wire] = []
        self.runs: list[str] = []
        self.version: str | None = "1.0"
        self._provider = provider
        self._scripted = scripted

    def script(self, *answers: Answer) -> str:
        """A model that answers so, and nobody else's."""
        name = uuid4().hex
        self._provider.script(*answers, name=name)
        self._model = f"script:{name}"
        return self._scripted(self._model).name

    def told(self) -> Told:
        """What the model of the last script was sent last, without our own system message."""
        return self.all_told()[-1]

    def all_told(self) -> list[Told]:
        bodies = [asked.body["messages"] for asked in self._provider.requests_for(self._model)]
        return [[_told(one) for one in body[_own_system(body) :]] for body in bodies]

    def say(self, *new: Wire | str, answer: str = "", **more: Any) -> Told:
        """Show these behind what is shown, and run; what the model was sent."""
        return self.show([*self.messages, *map(_message, new)], answer=answer, **more)

    def show(self, messages: Sequence[Wire], *, answer: str = "", **more: Any) -> Told:
        """Show exactly these, and run; what the model was sent."""
        self.run(messages, text(answer or f"answer {len(self.runs) + 1}"), **more)
        return self.told()

    def run(self, messages: Sequence[Wire], *answers: Answer, **more: Any) -> list[Wire]:
        """Show these to a model that answers so; the events, which are folded into `messages`."""
        self.messages = [*messages]
        body = self.body(messages, self.script(*answers), **more)
        headers = {"Accept": "text/event-stream"}
        path = "/api/v1/agent/ag-ui"
        with self.client.http.stream("POST", path, json=body, headers=headers) as response:
            assert response.status_code == 200, response.read()
            events = [frame.data for frame in read_sse(response)]
        self._fold(events)
        return events

    def start(self, messages: Sequence[Wire], model: str, **more: Any) -> str:
        """The same without waiting; the run's id here."""
        response = self.client.http.post(
            "/api/v1/agent/ag-ui",
            json=self.body(messages, model, **more),
            headers={"Accept": "application/json"},
        )
        assert response.status_code == 202, response.text
        return str(response.json()["taskId"])

    def body(self, messages: Sequence[Wire], model: str, props: Wire | None = None, **more: Any) -> Wire:
        self.runs.append(uuid4().hex)
        whole = {
            "threadId": self.thread_id,
            "runId": self.runs[-1],
            "protocolVersion": self.version,
            "messages": [*messages],
            "state": {},
            "tools": [],
            "context": [],
            "forwardedProps": {"model": model} | (props or {}),
        } | more
        return {key: value for key, value in whole.items() if value is not UNSET}

    def up_to(self, place: int) -> list[Wire]:
        """The client's messages up to and with its user's message of this number, from 1."""
        places = [at for at, one in enumerate(self.messages, 1) if one["role"] == "user"]
        return self.messages[: places[place - 1]]

    def _fold(self, events: Sequence[Wire]) -> None:
        known = {one["id"]: one for one in self.messages}
        calls: dict[str, Wire] = {}
        for event in events:
            match event["type"]:
                case "TEXT_MESSAGE_START":
                    self._add(known, event["messageId"], role=event["role"], content="")
                case "TEXT_MESSAGE_CONTENT":
                    known[event["messageId"]]["content"] += event["delta"]
                case "TOOL_CALL_START":
                    function = {"name": event["toolCallName"], "arguments": ""}
                    call = {"id": event["toolCallId"], "type": "function", "function": function}
                    calls[event["toolCallId"]] = call
                    self._add(known, event["parentMessageId"], role="assistant", toolCalls=[call])
                case "TOOL_CALL_ARGS":
                    calls[event["toolCallId"]]["function"]["arguments"] += event["delta"]
                case "TOOL_CALL_RESULT":
                    answer = {"toolCallId": event["toolCallId"], "content": event["content"]}
                    self._add(known, event["messageId"], role="tool", **answer)

    def _add(self, known: dict[str, Wire], message_id: str, **fields: Any) -> None:
        known[message_id] = {"id": message_id, **fields}
        self.messages.append(known[message_id])


def _message(given: Wire | str) -> Wire:
    return user(given) if isinstance(given, str) else given


def _own_system(body: Sequence[Wire]) -> int:
    return 1 if body and body[0]["role"] == "system" else 0


def _told(message: Wire) -> tuple[str, str]:
    content = message.get("content") or ""
    if isinstance(content, list):
        content = " ".join(part.get("text", f"[{part['type']}]") for part in content)
    called = [f"{c['function']['name']}({c['id']})" for c in message.get("tool_calls") or ()]
    return message["role"], " ".join(filter(None, [content, *called]))
