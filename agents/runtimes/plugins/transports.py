"""The transports to a plugin runtime: a WebSocket that Parley opens, or a program that it starts.

A pipe carries whole documents. `cut` is whether the other side is of the older kind, which takes and
sends large documents in pieces; while that is unknown (None), received messages are joined, and only
little is sent. A divided document is sent to its end even if its sender is cancelled: half a document
would spoil all that follow.
"""

from __future__ import annotations

import asyncio
import socket
from abc import ABC, abstractmethod
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from websockets.exceptions import ConnectionClosed

from agents.runtimes.plugins.envelopes import LARGEST
from agents.runtimes.plugins.framing import FramingError, LineJoiner, PieceJoiner, lines, pieces
from config.outgoing import proxy
from config.process import subprocesses
from prompts import outgoing_connections

if TYPE_CHECKING:
    from agents.runtimes.plugins.runtime import Runtime

TOKEN_HEADER: Final = "X-LangBot-Plugin-Runtime-Token"
_LONGEST_LINE: Final = LARGEST + 64 * 1024
_HEAVY: Final = 128 * 1024
_GOODBYE_S: Final = 3.0
_MAX_WAITING: Final = 4  # received messages that are not read yet, of at most 16 MiB each
_YIELD_EVERY: Final = 16


class PipeClosed(Exception):
    """The other side is gone; the message has the reason, without secrets."""


class ProgramRefused(Exception):
    """The installation does not allow this program; the message has the fix."""


class Pipe(ABC):
    """A pipe for whole documents, in order, in both directions."""

    def __init__(self) -> None:
        self.cut: bool | None = None
        self._sending = asyncio.Lock()
        self._received = 0

    @abstractmethod
    async def send(self, document: str) -> None:
        """Send a document; raise PipeClosed if the other side is gone."""

    async def receive(self) -> str | bytes:
        """Return the next document; raise PipeClosed at the end, FramingError for a wrong framing.

        Parts that have arrived are read without a pause, so control is yielded after every few.
        """
        while True:
            self._received += 1
            if self._received % _YIELD_EVERY == 0:
                await asyncio.sleep(0)
            whole = await self._receive_part()
            if whole is not None:
                return whole

    @abstractmethod
    async def _receive_part(self) -> str | bytes | None:
        """Return the document that the next part completes, or None."""

    async def _send_parts(self, parts: list[Any]) -> None:
        """Send the parts of one document; several are sent to the end, even after a cancellation."""
        if len(parts) == 1:
            await self._write_parts(parts)
        else:
            await asyncio.shield(self._write_parts(parts))

    async def _write_parts(self, parts: list[Any]) -> None:
        async with self._sending:
            for part in parts:
                await self._write(part)

    @abstractmethod
    async def _write(self, part: Any) -> None: ...


class WebSocketPipe(Pipe):
    """A WebSocket whose messages are documents or, from older runtimes, pieces of them."""

    def __init__(self, socket: Any) -> None:
        super().__init__()
        self._socket = socket
        self._joiner = PieceJoiner()

    async def send(self, document: str) -> None:
        try:
            await self._send_parts(await _divide(document, pieces) if self.cut else [document])
        except ConnectionClosed as closed:
            raise PipeClosed(_close_reason(closed)) from None

    async def _write(self, part: str) -> None:
        await self._socket.send(part)

    async def _receive_part(self) -> str | None:
        try:
            message = await self._socket.recv()
        except ConnectionClosed as closed:
            raise PipeClosed(_close_reason(closed)) from None
        if isinstance(message, bytes):
            message = message.decode(errors="replace")
        return message if self.cut is False else await self._join(message)

    async def _join(self, message: str) -> str | None:
        """Return the document that the message completes, or None; parse a large one in an OS thread."""
        if len(message) < _HEAVY:
            return self._joiner.feed(message)
        return await asyncio.to_thread(self._joiner.feed, message)


class StdioPipe(Pipe):
    """A pipe of a program's stdin and stdout."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        super().__init__()
        self._process = process
        self._in, self._out = process.stdin, process.stdout
        self._joiner = LineJoiner()

    async def send(self, document: str) -> None:
        try:
            await self._send_parts(await _divide(document, lines))
        except (ConnectionError, RuntimeError):
            raise PipeClosed("The program closed its input.") from None

    async def _write(self, part: bytes) -> None:
        self._in.write(part)
        await self._in.drain()

    async def _receive_part(self) -> bytes | None:
        try:
            line = await self._out.readline()
        except ValueError:
            raise FramingError("a line is longer than 16 MiB") from None
        if not line:
            raise PipeClosed(await self._end_reason())
        return self._joiner.feed(line.strip())

    async def _end_reason(self) -> str:
        with suppress(TimeoutError):
            async with asyncio.timeout(1):
                return f"The program ended with code {await self._process.wait()}."
        return "The program closed its output."


def open_pipe(runtime: Runtime) -> AbstractAsyncContextManager[Pipe]:
    """Open a pipe to the runtime, and end its program with it; raise ProgramRefused, OSError, …."""
    return _open_program_pipe(runtime) if runtime.transport == "stdio" else _open_socket_pipe(runtime)


@asynccontextmanager
async def _open_socket_pipe(runtime: Runtime) -> AsyncIterator[Pipe]:
    opened_socket = await _connect(runtime)
    try:
        yield WebSocketPipe(opened_socket)
    finally:
        try:
            await opened_socket.close()
        finally:  # closing may be interrupted; after a complete one there is nothing to abort
            opened_socket.transport.abort()


async def _connect(runtime: Runtime) -> Any:
    """Return the open WebSocket; do not follow redirects, which would send the token elsewhere."""
    from websockets.asyncio.client import connect
    from websockets.uri import parse_uri

    from agents.runtimes.plugins.websocket_reads import SmallReadsConnection

    token, at = runtime.token(), parse_uri(runtime.url)
    async with asyncio.timeout(settings.PLUGIN_CONNECT_S):
        connected = await outgoing_connections.connect(at.host, at.port)
        try:
            return await connect(
                runtime.url,
                sock=connected,
                additional_headers={TOKEN_HEADER: token} if token else None,
                open_timeout=None,
                close_timeout=_GOODBYE_S,
                max_size=LARGEST,
                max_queue=_MAX_WAITING,
                create_connection=SmallReadsConnection,
                compression=None,
                proxy=None,
                ssl=(proxy.tls_context() or True) if at.secure else None,
            )
        except ValueError as refused:
            raise refused.__cause__ or refused from None


@asynccontextmanager
async def _open_program_pipe(runtime: Runtime) -> AsyncIterator[Pipe]:
    line = [runtime.command, *runtime.args]
    if not subprocesses.is_allowed(line, settings.RUNNER_COMMANDS):
        raise ProgramRefused(
            "This command line is not allowed here: whoever runs Parley adds it to RUNNER_COMMANDS."
        )
    port = str(free_port()) if any("{port}" in part for part in line) else ""
    process = await asyncio.create_subprocess_exec(
        *(part.replace("{port}", port) for part in line),
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
        cwd=Path(runtime.directory) if runtime.directory else None,
        env=subprocesses.build_environment(settings.RUNNER_ENV),
        limit=_LONGEST_LINE,
        start_new_session=True,
    )
    try:
        yield StdioPipe(process)
    finally:
        await asyncio.shield(subprocesses.end_group(process, grace_s=_GOODBYE_S))


def free_port() -> int:
    """Return a free TCP port, for a program that requires one."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


async def _divide(document: str, divide: Any) -> list[Any]:
    """Return the parts of a document; divide a large one in an operating-system thread."""
    if len(document) < _HEAVY:
        return list(divide(document))
    return await asyncio.to_thread(lambda: list(divide(document)))


def _close_reason(closed: Any) -> str:
    code = closed.rcvd.code if closed.rcvd else None
    return f"The runtime closed the connection ({code})." if code else "The connection broke."
