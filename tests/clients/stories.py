"""A client's story: what it does, in its own program; what the model was sent; what the client got.

A heavy client's story is played from the requests recorded from it, unless every client is asked for.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.clients.environments import RECORDS
from tests.clients.process import Program
from tests.clients.recording import Recorder, Recording, is_uuid, replay
from tests.support.client import Client

Body = dict[str, Any]


@dataclass(frozen=True)
class Seen:
    """What came of a story: the bodies that the model was sent, and what the client made of it all."""

    sent: list[Body]
    got: Any

    @property
    def lines(self) -> list[list[str]]:
        """Each request's messages without the system's."""
        return [said(body) for body in self.sent]

    @property
    def systems(self) -> list[str]:
        return [system(body) for body in self.sent]

    @property
    def tools(self) -> list[list[str]]:
        """The names of the tools of each request."""
        return [[tool["function"]["name"] for tool in body.get("tools", ())] for body in self.sent]


def said(body: Body) -> list[str]:
    """The messages of a provider request as `role: text`; calls, images and files show as such."""
    return [line for message in body["messages"] for line in _lines(message)]


def system(body: Body) -> str:
    """All that the model was told as instructions, Parley's own prompt first."""
    told = [m for m in body["messages"] if m["role"] in {"system", "developer"}]
    return "\n\n".join(_text(message["content"]) for message in told)


def _lines(message: Body) -> Iterator[str]:
    role = message["role"]
    if role in {"system", "developer"}:
        return
    if message.get("content"):
        yield f"{role}: {_text(message['content'])}"
    for call in message.get("tool_calls", ()):
        arguments = json.dumps(json.loads(call["function"]["arguments"]), ensure_ascii=False)
        yield f"{role} calls {call['function']['name']} {arguments}"


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return " ".join(part["text"] if part["type"] == "text" else f"[{part['type']}]" for part in content)


@dataclass(frozen=True)
class Stage:
    """Where stories are played: Parley's client, the program if it may run, and what it sent once."""

    client: Client
    program: Program | None
    recording: Recording

    def play(self, story: str, model: str, given: dict[str, Any], *, name: str) -> Any:
        """What the client got of a story with this model; `name` is the recording's."""
        known = {"model": model} | {key: said for key, said in given.items() if is_uuid(said)}
        if self.program is None:
            return replay(self.recording.story(name), self.client, known)
        asked = {"story": story, "model": model, "token": self.client.token} | given
        if not (RECORDS and self.recording.is_kept):
            return self.program.ask(asked | {"url": self.client.url})["got"]
        with Recorder(self.client.url) as recorder:
            got = self.program.ask(asked | {"url": recorder.url})["got"]
        self.recording.keep(name, recorder.exchanges, got, known)
        return got
