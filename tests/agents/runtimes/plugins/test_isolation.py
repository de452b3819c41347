"""One runtime's failure is that runtime's: the others go on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from uuid import uuid4

import pytest
import uvloop
from pytest_django import Settings
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection as SyncConnection
from websockets.sync.server import serve as threaded_server

from agents.host_protocol.runner import HostedRunner
from agents.models import PluginRuntime
from agents.runtimes.plugins.runtime import Runtime
from agents.runtimes.plugins.transports import open_pipe
from benchmarks.ports import free_port
from tests.agents.runtimes.plugins.bound import audited, bound, said
from tests.agents.runtimes.plugins.runs import context, heard, on_loop, texts, wait_for
from tests.agents.runtimes.plugins.runtime_rows import forget, old_runtime_process, wait_for_status
from tests.conftest import Server
from tests.support.client import Client

OLD = "plugin:old/probe/default"


@pytest.fixture
def old(server: Server, enter_runtime: Callable[..., PluginRuntime]) -> Iterator[HostedRunner]:
    """A runtime that works."""
    with old_runtime_process() as url:
        row = enter_runtime(url=url, profile="v1")
        yield wait_for(server, OLD)
        forget(server, row)


@pytest.fixture(params=["rubbish", "huge", "endless", "closes"])
def broken(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a runtime that does as it should not."""
    port = free_port()
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def connected(socket: ServerConnection) -> None:
        match request.param:
            case "rubbish":
                for number in range(2_000):
                    await socket.send(f"rubbish {number}")
            case "huge":
                await socket.send("{" + "x" * (17 * 1024 * 1024))
            case "endless":
                for _ in range(40):
                    await socket.send("{" + "x" * (1024 * 1024 - 1))
            case "closes":
                return
        await socket.wait_closed()

    async def main() -> None:
        stop = asyncio.Event()
        async with serve(connected, "127.0.0.1", port, close_timeout=1):
            started.set_result((asyncio.get_running_loop(), stop))
            await stop.wait()

    thread = threading.Thread(target=asyncio.run, args=(main(),), daemon=True)
    thread.start()
    loop, stop = started.result(10)
    yield f"ws://127.0.0.1:{port}"
    loop.call_soon_threadsafe(stop.set)
    thread.join(10)
    assert not thread.is_alive(), "the host still holds its connection"


def test_a_broken_runtime_disturbs_no_other(
    server: Server,
    settings: Settings,
    old: HostedRunner,
    broken: str,
    enter_runtime: Callable[..., PluginRuntime],
) -> None:
    settings.PLUGIN_CONNECT_S = 2
    row = enter_runtime(url=broken)
    assert texts(on_loop(server, heard(old, context("say a|b")))) == ["a", "ab"]
    wait_for_status(row, "failed")
    assert row.problem
    assert texts(on_loop(server, heard(old, context("x" * 100_000)))) == ["100000 characters"]
    forget(server, row)


def test_a_goodbye_that_is_cut_short_leaves_no_connection() -> None:
    """A runtime that floods the host reads no goodbye; the host may have no time to wait for it."""

    async def story() -> None:
        gone = asyncio.Event()

        async def flood(socket: ServerConnection) -> None:
            with suppress(ConnectionClosed):
                while True:
                    await socket.send("x" * 1024 * 1024)
            gone.set()

        async with serve(flood, "127.0.0.1", 0, close_timeout=1) as server:
            port = server.sockets[0].getsockname()[1]
            leaving = asyncio.create_task(_connect_and_leave(port))
            await asyncio.sleep(0.5)
            assert not leaving.done(), "the goodbye should wait for its answer"
            leaving.cancel()
            async with asyncio.timeout(2):
                await gone.wait()

    asyncio.run(story())


async def _connect_and_leave(port: int) -> None:
    async with open_pipe(_runtime(port)):
        await asyncio.sleep(0.2)


def _runtime(port: int) -> Runtime:
    return Runtime(
        id=0,
        name="flood",
        identity=uuid4(),
        transport="websocket",
        url=f"ws://127.0.0.1:{port}",
        command="",
        args=(),
        directory="",
        profile="v1",
    )


def test_others_have_their_turns_between_many_small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    pieces, sizes = 20_000, list[int]()
    read = ClientConnection.data_received

    def reads(self: ClientConnection, data: bytes) -> None:
        sizes.append(len(data))
        read(self, data)

    def flood(socket: SyncConnection) -> None:
        socket.send('{"x": [')
        for _ in range(pieces):
            socket.send("0,")
        socket.send("0]}")

    async def story(port: int) -> int:
        turns = 0

        async def take_turns() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        async with open_pipe(_runtime(port)) as pipe:
            await asyncio.sleep(0.5)  # now as much has arrived as the operating system keeps
            others = asyncio.create_task(take_turns())
            assert await pipe.receive() == f'{{"x": [{"0," * pieces}0]}}'
            others.cancel()
        return turns

    monkeypatch.setattr(ClientConnection, "data_received", reads)
    with threaded_server(flood, "127.0.0.1", 0, compression=None) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:  # the server's own
            turns = runner.run(story(server.socket.getsockname()[1]))
    assert max(sizes) <= 32 * 1024
    assert turns >= pieces // 16


def test_the_first_generation_asks_the_host_too(client: Client, old: HostedRunner) -> None:
    with bound(client, OLD, storage=["plugin"]):
        run_id, answer, detail = said(
            client, 'call state_set {"scope": "actor", "key": "k", "value": {"a": 1}}'
        )
        assert detail["status"] == "completed", detail
        assert '"success": true' in answer
        assert audited(run_id, 1) == [("state_set", "ok")]
        _, answer, _ = said(client, 'call state_get {"scope": "actor", "key": "k"}')
        assert '"value": {"a": 1}' in answer
        _, answer, _ = said(client, "call history_page {}")
        assert '"has_more": false' in answer
        _, answer, _ = said(client, 'call state_get {"caller_plugin_identity": "x/y", "scope": "actor"}')
        assert "mismatch" in answer
        assert '"code": "unauthorized"' in answer
        _, answer, _ = said(client, 'call artifact_read {"artifact_id": "nope"}')
        assert "not found" in answer
        _, answer, _ = said(client, 'call call_tool {"tool_name": "gymbro.exercise.search"}')
        assert "unauthorized" in answer
