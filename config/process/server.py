"""Serving of HTTP and WebSockets on the running loop, by uvicorn or Daphne, until a stop event.

On shutdown no new connections are accepted, requests have a moment to finish, and open streams are
then ended cleanly: their clients reconnect with Last-Event-ID to another process or a new one.
"""

from __future__ import annotations

import asyncio
import math
import resource
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import Any, Final, Literal, TypeAlias, cast

import uvicorn
import uvloop
from uvicorn.lifespan.on import LifespanOn

from config import env, errors
from config.process import cancellation, installation, watchdog
from config.process.accepting import Acceptor
from config.process.server_protocols import SocketProtocol, TurnAway, let_in

Scope: TypeAlias = Any
Receive: TypeAlias = Any
Send: TypeAlias = Any
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
ServerName = Literal["uvicorn", "daphne"]
SERVERS: Final[tuple[ServerName, ...]] = ("uvicorn", "daphne")
_GRACE_S: Final = 2.0
_SAME_SIGNAL_S: Final = 1.0
_KEEP_ALIVE_S: Final = 65
_SOCKET_MESSAGE: Final = 65_536  # bytes; clients send little on these sockets


def run(main: Callable[[asyncio.Event], Coroutine[Any, Any, None]]) -> None:
    """Run `main(stop)` on a fast loop; SIGTERM and SIGINT set `stop`, a later one ends it at once.

    One within a second is the same one: a supervisor sends it to the group and a parent sends it on.
    """
    allow_many_files()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_until_signalled(main))


def allow_many_files() -> None:
    """Raise the limit of open files to its maximum: every stream is a file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        with suppress(ValueError, OSError):  # macOS reports a hard limit that it does not grant
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def _until_signalled(main: Callable[[asyncio.Event], Coroutine[Any, Any, None]]) -> None:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    work, at_once_from = loop.create_task(main(stop)), math.inf

    def ask() -> None:
        nonlocal at_once_from
        if loop.time() >= at_once_from:
            work.cancel()
        elif not stop.is_set():
            stop.set()
            at_once_from = loop.time() + _SAME_SIGNAL_S

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ask)
    try:
        with suppress(asyncio.CancelledError):
            await work
    finally:
        await cancellation.cancel_all(asyncio.all_tasks() - {asyncio.current_task()})


def get_server_name() -> ServerName:
    """Return the ASGI server of the setting ASGI_SERVER."""
    return cast("ServerName", env.choice("ASGI_SERVER", SERVERS[0], SERVERS))


def require_server(server: ServerName) -> None:
    """Raise ImproperlyConfigured if this ASGI server is not installed."""
    if server == "daphne":
        installation.require_extra("daphne", "daphne", setting="ASGI_SERVER=daphne")


async def serve(
    application: Application,
    *,
    listener: socket.socket,
    server: ServerName,
    stop: asyncio.Event,
    turn_away: TurnAway = let_in,
    linger: Callable[[], Awaitable[object]] | None = None,
) -> None:
    """Serve on a bound socket until `stop`; open streams may continue until `linger()` returns.

    uvicorn asks `turn_away` before it begins with a request, Daphne leaves that to the application.
    """
    open_requests = _Requests(application)
    running = partial(_uvicorn, turn_away=turn_away) if server == "uvicorn" else _daphne
    with watchdog.watch():
        async with running(open_requests, listener, stop) as close:
            await stop.wait()
            close()
            if linger is not None:
                await linger()
            await open_requests.finish(_GRACE_S)


@asynccontextmanager
async def lifespan(application: Application) -> AsyncIterator[None]:
    """Send the application its lifespan events, independent of the server; uvicorn logs its errors.

    Raise RuntimeError if the application cannot start or stop.
    """
    config = uvicorn.Config(application, lifespan="on", log_config=None, log_level="warning")
    events = LifespanOn(config)
    await events.startup()
    _require_success(events, "start")
    try:
        yield
    finally:
        await events.shutdown()
        _require_success(events, "stop")


def _require_success(events: LifespanOn, moment: str) -> None:
    if events.should_exit:
        raise RuntimeError(f"the application could not {moment}: see the log")


class _Requests:
    """The application, with a way to end open requests."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._open: set[asyncio.Task[Any]] = set()
        self._ending = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._ending.is_set():
            await _end_response(scope, send)
            return
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            await self._application(scope, receive, send)
        except asyncio.CancelledError:
            if not self._ending.is_set():
                raise
            await _end_response(scope, send)
        finally:
            self._open.discard(task)

    async def finish(self, grace_s: float) -> None:
        """Wait for open requests for `grace_s`, then end them and all later ones."""
        loop = asyncio.get_running_loop()
        until = loop.time() + grace_s
        while self._open and loop.time() < until:
            await asyncio.wait(self._open, timeout=until - loop.time())
        self._ending.set()
        for task in self._open:
            task.cancel()
        if self._open:
            await asyncio.wait(self._open, timeout=grace_s)


async def _end_response(scope: Scope, send: Send) -> None:
    """Send a 503 response in the path's format, or the end of a response that has begun."""
    if scope["type"] == "http":
        start, body = _unavailable_response(scope["path"])
        try:
            await send(start)
        except Exception:  # each server has its own error if the response has begun
            body = b""
        last = {"type": "http.response.body", "body": body, "more_body": False}
    else:
        last = {"type": "websocket.close", "code": 1012}
    with suppress(Exception):  # fails if it was sent before
        await send(last)


def _unavailable_response(path: str) -> tuple[dict[str, Any], bytes]:
    """Return head and body of the response to a request at the end of the process."""
    error = errors.Unavailable("This process is being restarted: try again.", retry_after=1)
    headers, body = errors.render(error, path)
    lines = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    return {"type": "http.response.start", "status": error.status, "headers": lines}, body


class _Uvicorn(uvicorn.Server):
    """uvicorn without its signal handlers."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def _uvicorn(
    application: Application, listener: socket.socket, stop: asyncio.Event, *, turn_away: TurnAway
) -> AsyncIterator[Callable[[], object]]:
    acceptor = Acceptor(listener, turn_away)
    server = _Uvicorn(
        uvicorn.Config(
            application,
            http=acceptor.make_protocol,  # type: ignore[arg-type]
            ws=SocketProtocol,
            lifespan="off",
            log_config=None,
            log_level="warning",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=_KEEP_ALIVE_S,
            ws_max_size=_SOCKET_MESSAGE,
        )
    )
    serving = asyncio.create_task(server.serve(sockets=acceptor.listeners))
    serving.add_done_callback(lambda _: stop.set())  # if it fails

    def close() -> None:
        acceptor.close()
        server.should_exit = True

    try:
        yield close
    finally:
        acceptor.close()
        server.should_exit = server.force_exit = True
        await asyncio.wait({serving}, timeout=_GRACE_S)  # longer only if a client does not read
        serving.cancel()
        with suppress(asyncio.CancelledError):
            await serving


@asynccontextmanager
async def _daphne(
    application: Application, listener: socket.socket, stop: asyncio.Event
) -> AsyncIterator[Callable[[], object]]:
    """Run Daphne, which expects to own the process, on a running loop and a bound socket."""
    from twisted.internet import asyncioreactor

    asyncioreactor.install(asyncio.get_running_loop())  # type: ignore[no-untyped-call]
    from daphne.server import Server  # type: ignore[import-untyped]
    from twisted.internet import reactor

    server = Server(application, endpoints=["unused"], signal_handlers=False, server_name="")
    server.endpoints = []
    reactor.run = reactor.startRunning  # type: ignore[method-assign, misc] # the loop runs already
    server.run()
    port = reactor.adoptStreamPort(listener.fileno(), listener.family, server.http_factory)
    listener.close()
    yield port.stopListening
