"""A run that ends with its client ends whenever the client leaves, also before its stream has begun."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable
from threading import Event
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest

from agents.dialects import text_run
from agents.intake import start as starting
from agents.intake import stream_slots, submit
from config.auth import bearer
from conversations.models import Run
from conversations.runs import client_queries, recent_starts
from tests.conftest import Server
from tests.support.client import Client, ScriptedModel


class Gate:
    """A coroutine function that waits, once it is called, until it is let through."""

    def __init__(self, original: Callable[..., Any], *, before: bool) -> None:
        self._original = original
        self._before = before
        self.reached, self.passed = Event(), Event()

    async def __call__(self, *args: Any, **more: Any) -> Any:
        if not self._before:
            found = await self._original(*args, **more)
        self.reached.set()
        await asyncio.to_thread(self.passed.wait, 10)
        return await self._original(*args, **more) if self._before else found


def post_and_leave(client: Client, body: dict[str, Any], gate: Gate) -> None:
    """Ask for a run's stream, and hang up as soon as the server has come to the gate."""
    address, data = urlsplit(client.url), json.dumps(body).encode()
    head = (
        "POST /api/v1/agent/runs?on_disconnect=cancel HTTP/1.1\r\nHost: localhost\r\n"
        f"Authorization: Bearer {client.token}\r\nAccept: text/event-stream\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
    )
    with socket.create_connection((address.hostname or "", address.port or 0)) as connection:
        connection.sendall(head.encode() + data)
        assert gate.reached.wait(10)


@pytest.mark.parametrize(
    ("module", "name", "before"),
    [
        (submit, "start_run", True),  # nothing is written yet when it leaves
        (submit, "start_run", False),
        (client_queries, "fetch_started_run", True),
    ],
)
def test_a_client_that_leaves_while_its_run_is_started_ends_it(
    client: Client,
    scripted: Callable[..., ScriptedModel],
    monkeypatch: pytest.MonkeyPatch,
    module: Any,
    name: str,
    before: bool,
) -> None:
    gate = Gate(getattr(module, name), before=before)
    with monkeypatch.context() as patched:
        patched.setattr(module, name, gate)
        patched.setattr(recent_starts, "recall", lambda *_, **__: None)  # as if it had been long ago
        post_and_leave(client, {"model": scripted("hang-midway").name, "text": "stay"}, gate)
    gate.passed.set()
    assert client.wait_for(the_run_of(client), "cancelled", "completed")["status"] == "cancelled"


@pytest.mark.parametrize("unused_s", [0.1, 0.0])  # the place may be given back before the run is written
def test_a_stream_that_never_begins_ends_its_run(
    client: Client,
    scripted: Callable[..., ScriptedModel],
    server: Server,
    monkeypatch: pytest.MonkeyPatch,
    unused_s: float,
) -> None:
    monkeypatch.setattr(stream_slots, "_UNUSED_S", unused_s)
    body = {"model": scripted("hang-midway").name, "text": "stay"}

    async def start() -> None:
        caller = await bearer.authenticate(f"Bearer {client.token}")
        asked = text_run.parse(body, request_id="r")
        await starting.start_for_reader(caller, msgspec.structs.replace(asked, on_disconnect="cancel"))

    asyncio.run_coroutine_threadsafe(start(), server.loop).result(10)
    assert client.wait_for(the_run_of(client), "cancelled", "completed")["status"] == "cancelled"


def the_run_of(client: Client) -> str:
    """The user's only run, once it is there."""
    for _ in range(1_000):
        if (run := Run.objects.filter(owner=client.user).first()) is not None:
            return str(run.pk.hex)
        Event().wait(0.01)
    raise AssertionError("no run was written")
