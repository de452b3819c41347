"""Plugin runtimes as attackers, over WebSocket: each behaviour is a function of one request of the Host.

A runtime's name is its behaviour's with `-` for `_`, its one runner `plugin:evil/NAME/default`, and
`ends` says how a run of it ends: `completed`, or the failure's code. A runtime that never gets as far as
a runner has `none`.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Self

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from tests.agents.runtimes.plugins.frames import recorded

MIB: Final = 1024 * 1024
NONE: Final = "none"
GENERATION: Final = "v1-ba12a8b"
"""The one that these runtimes speak."""
_STARTED_WITHIN_S: Final = 10.0
_listing: Final = "list_agent_runners"
_running: Final = "run_agent"


@dataclass(frozen=True)
class To:
    """A request of the Host, and the means to answer it."""

    name: str
    request: dict[str, Any]
    socket: ServerConnection

    @property
    def run_id(self) -> str:
        return str(self.request["data"]["context"]["run_id"])

    async def raw(self, *messages: str) -> None:
        for message in messages:
            await self.socket.send(message)

    async def reply(self, data: Any, **more: Any) -> None:
        await self.raw(json.dumps(self._reply(data) | more))

    def _reply(self, data: Any) -> dict[str, Any]:
        told = {"seq_id": self.request["seq_id"], "code": 0, "message": "success"}
        return told | {"data": data, "chunk_status": "continue"}

    async def said(self, kind: str, **data: Any) -> None:
        """A result of the run."""
        told = {"run_id": self.run_id, "type": kind, "data": data}
        await self.reply(told | {"sequence": None, "timestamp": None})

    async def ended(self) -> None:
        await self.said("run.completed", finish_reason="stop")
        await self.reply({}, chunk_status="end")

    def runner(self, **more: Any) -> dict[str, Any]:
        """One that a real runtime listed, under a name of its own and without settings."""
        named = {"plugin_author": "evil", "plugin_name": self.name, "runner_name": "default"}
        return _listed() | named | {"config": []} | more

    async def pieces(self, document: str, size: int) -> None:
        await self.raw(*(document[at : at + size] for at in range(0, len(document), size)))

    async def well(self) -> None:
        """As a runtime answers that means no harm."""
        match self.request.get("action"):
            case "__ping":
                await self.reply({"message": "pong"})
            case "list_agent_runners":
                await self.reply({"runners": [self.runner()]})
            case "run_agent":
                await self.ended()


@cache
def _listed() -> dict[str, Any]:
    listings = (
        one["frame"]["data"] for one in recorded(GENERATION) if one["kind"] == f"answers {_listing}"
    )
    runners = [runner for listing in listings for runner in listing["runners"]]
    found: dict[str, Any] = min(runners, key=lambda one: len(json.dumps(one)))
    return found


Behave = Callable[[To], Awaitable[None]]


@dataclass(frozen=True)
class Behaviour:
    when: str
    behave: Behave
    ends: str


BEHAVIOURS: Final[dict[str, Behaviour]] = {}
asked: Final[dict[str, int]] = {}
"""How often each runtime was asked for what it answers in its own way."""
connected: Final = Counter[str]()
"""How many connections each runtime has now."""


class Runtimes:
    """The server of them all, on a thread of its own until the block is left."""

    def __init__(self) -> None:
        self.port = 0
        self._started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._started.wait(_STARTED_WITHIN_S)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join(_STARTED_WITHIN_S)

    @property
    def urls(self) -> dict[str, str]:
        """The address of each by its name."""
        return {name: f"ws://127.0.0.1:{self.port}/{name}" for name in BEHAVIOURS}

    async def _serve(self) -> None:
        self._loop, self._stopped = asyncio.get_running_loop(), asyncio.Event()
        options: dict[str, Any] = {"max_size": None, "compression": None, "close_timeout": 0.1}
        async with serve(_connected, "127.0.0.1", 0, **options) as server:
            self.port = next(iter(server.sockets)).getsockname()[1]
            self._started.set()
            await self._stopped.wait()


async def _connected(socket: ServerConnection) -> None:
    assert socket.request is not None
    name, tasks, held = socket.request.path.strip("/"), set[asyncio.Task[None]](), ""
    connected[name] += 1
    with suppress(ConnectionClosed):
        async for message in socket:
            held += str(message)
            with suppress(ValueError):
                request, held = json.loads(held), ""
                tasks.add(asyncio.create_task(_answer(To(name, request, socket))))
    connected[name] -= 1
    for task in tasks:
        task.cancel()


async def _answer(to: To) -> None:
    behaviour = BEHAVIOURS[to.name]
    with suppress(ConnectionClosed):
        if to.request.get("action") != behaviour.when:
            await to.well()
            return
        asked[to.name] = asked.get(to.name, 0) + 1
        await behaviour.behave(to)


def _when(action: str, ends: str) -> Callable[[Behave], Behave]:
    def added(behave: Behave) -> Behave:
        name = behave.__name__.replace("_", "-")
        BEHAVIOURS[name] = Behaviour(action, behave, ends)
        return behave

    return added


# --- when it is asked for its runners -------------------------------------------------------------


@_when(_listing, NONE)
async def never_lists(to: To) -> None:
    await asyncio.sleep(3_600)


@_when(_listing, NONE)
async def a_hundred_thousand_pieces(to: To) -> None:
    """Each ends like a document, and all of them are none."""
    await to.raw('{"seq_id": 1, "code": 0, "data": {"x": [')
    for _ in range(100_000):
        await to.raw("{},{}")


@_when(_listing, NONE)
async def a_document_of_braces(to: To) -> None:
    await to.raw('{"a":' * (3 * MIB), "{" * (16 * MIB - 1))


@_when(_listing, NONE)
async def a_document_of_too_many_values(to: To) -> None:
    listed = "[]," * (4 * MIB) + "[]"
    await to.raw(f'{{"seq_id": {to.request["seq_id"]}, "code": 0, "data": {{"runners": [{listed}]}}}}')


@_when(_listing, NONE)
async def a_message_too_large(to: To) -> None:
    await to.raw("{" + "x" * (20 * MIB))


@_when(_listing, NONE)
async def nothing_but_rubbish(to: To) -> None:
    for _ in range(200_000):
        await to.raw('{"seq_id": null}')


@_when(_listing, NONE)
async def answers_to_others(to: To) -> None:
    for number in range(50_000):
        await to.reply({"runners": []}, seq_id=number * 10**12)
    await to.reply({"runners": []}, seq_id=10**400)


@_when(_listing, NONE)
async def questions_without_end(to: To) -> None:
    """More than anybody answers, and no answer is read."""
    for number in range(30_000):
        await to.raw(json.dumps({"seq_id": number, "action": "invoke_llm", "data": {"run_id": "x"}}))


@_when(_listing, "completed")
async def poisoned_runners(to: To) -> None:
    deep: Any = "x"
    for _ in range(300):
        deep = {"a": [deep]}
    evil = [
        to.runner(runner_name="n" * 100_000),
        to.runner(runner_name="../../etc"),
        to.runner(runner_name="\u202e\u0000<script>"),
        to.runner(runner_name="odd", runner_description={"en_US": "d" * 1_000_000}),
        to.runner(runner_name="odd", config=[{"name": "c", "type": "json", "default": deep}] * 20),
        to.runner(runner_name="odd", config=[{"name": "^(a+)+$" * 999, "type": "\ud800"}]),
        to.runner(runner_name="odd", manifest={"metadata": {"label": {"en_US": "\ud800\u0000"}}}),
        *({"plugin_author": number} for number in range(5_000)),
    ]
    await to.reply({"runners": [to.runner(), *evil]})


# --- when it is asked for a run -------------------------------------------------------------------


@_when(_running, "runner.protocol_error")
async def results_that_are_none(to: To) -> None:
    for number in range(2_000):
        await to.reply({"run_id": to.run_id, "type": number})


@_when(_running, "runner.protocol_error")
async def results_of_other_runs(to: To) -> None:
    for _ in range(2_000):
        await to.reply({"run_id": "0" * 32, "type": "run.completed", "data": {}})


@_when(_running, "answer_too_large")
async def talks_without_end(to: To) -> None:
    """A chunk holds all that was said before it, too."""
    said = ""
    while True:
        said += "word " * 20_000 * (len(said) < 4 * MIB)
        await to.said("message.delta", chunk={"role": "assistant", "content": said, "is_final": False})


@_when(_running, "runner.refused")
async def refuses_at_length(to: To) -> None:
    await to.reply({"why": "x" * MIB}, code=1, message="x" * MIB)


@_when(_running, "runner.unavailable")
async def leaves_in_the_middle(to: To) -> None:
    await to.raw('{"seq_id": 1')
    await to.socket.close()


@_when(_running, "runner.unavailable")
async def one_document_without_end(to: To) -> None:
    await to.raw('{"seq_id": 1, "code": 0, "data": {"x": "')
    while True:
        await to.raw('\\"}' * 10_000)


@_when(_running, "runner.protocol_error")
async def odd_results(to: To) -> None:
    deep: Any = "x"
    for _ in range(300):
        deep = [deep]
    await to.said("message.delta", chunk={"role": "assistant", "content": "\ud800\u0000\u202e"})
    await to.said(
        "tool.call.started", tool_call_id="c" * 100_000, tool_name="n" * 100_000, parameters=deep
    )
    await to.said("state.updated", scope="thread", key="k" * 100_000, value=deep)
    await to.said("no.such.type", deep=deep)
    await to.ended()
