"""Many requests at once over one pipe, in both directions; no reply waits for another.

One task reads, and never waits for a consumer. Parts that a run does not take in time wait in the run's
own queue, and a queue that grows too large fails only its run (specs/runner-host.md, Envelope).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

from agents.runtimes.plugins.envelopes import (
    Reply,
    Request,
    TooManyValues,
    read_without_blocking,
    write_without_blocking,
)
from agents.runtimes.plugins.framing import FramingError
from agents.runtimes.plugins.responder import Responder
from agents.runtimes.plugins.transports import Pipe, PipeClosed
from agents.runtimes.plugins.wire_protocol import WireProtocol

Answer = Callable[
    [Request, WireProtocol | None], Awaitable[dict[str, Any]] | AsyncGenerator[dict[str, Any]]
]
_LARGEST_QUEUE: Final = 32 * 1024 * 1024
_ACKNOWLEDGE_EVERY: Final = 4
_RUBBISH: Final = 1_000


class Refused(Exception):
    """The other side refuses or fails a request; the message is its own."""


class Overrun(Exception):
    """A stream arrived faster than it was taken, or out of order."""


class Channel:
    """One connection; `run` reads until it breaks, and then every request fails with PipeClosed.

    `answer` returns the reply to a request of the other side; the protocol is None until it is known.
    """

    def __init__(self, pipe: Pipe, answer: Answer) -> None:
        self.protocol: WireProtocol | None = None
        self._pipe = pipe
        self._responder = Responder(self._send, lambda request: answer(request, self.protocol))
        self._last = random.randrange(100_000)
        self._reply_queues: dict[int, _ReplyQueue] = {}
        self._streams: dict[str, _ReplyQueue] = {}
        self._closed: PipeClosed | None = None
        self._notifying: set[asyncio.Task[None]] = set()

    def use(self, protocol: WireProtocol) -> None:
        """Speak this protocol from now on."""
        self.protocol, self._pipe.cut = protocol, protocol.cut

    async def run(self) -> None:
        """Read until the connection ends; raise PipeClosed, also in every request under way."""
        closed = PipeClosed("The connection to the plugin runtime broke.")
        try:
            closed = await self._read()
        finally:
            self._closed = closed
            for replies in self._reply_queues.values():
                replies.put(closed, 0)
            await self._responder.end()
            for task in self._notifying:
                task.cancel()
        raise closed

    async def _read(self) -> PipeClosed:
        """Return why the connection ended, in an error that keeps no reference to data that was read."""
        rubbish = 0
        try:
            while rubbish <= _RUBBISH:
                match await read_without_blocking(await self._pipe.receive()):
                    case Reply() as reply:
                        self._deliver(reply)
                    case Request() as request:
                        self._responder.begin_reply(request)
                    case None:
                        rubbish += 1
        except PipeClosed as why:
            return PipeClosed(*why.args)
        except FramingError as why:
            return PipeClosed(f"The runtime does not keep to the framing: {why}.")
        except TooManyValues:
            return PipeClosed("A document of the runtime holds too many values.")
        return PipeClosed("The runtime sends nothing but rubbish.")

    async def request(
        self,
        action: str,
        payload: dict[str, Any],
        *,
        context: dict[str, Any] | None = None,
        timeout_s: float = 15.0,
    ) -> dict[str, Any]:
        """Return the reply to a request; raise Refused, TimeoutError, PipeClosed or TooLarge."""
        number, replies = self._open()
        try:
            async with asyncio.timeout(timeout_s):
                await self._send(_request(number, action, payload, context))
                return (await replies.get()).payload
        finally:
            self._reply_queues.pop(number, None)

    async def stream(
        self,
        action: str,
        payload: dict[str, Any],
        *,
        context: dict[str, Any] | None = None,
        idle_s: float,
        heavy: bool = False,
        name: str = "",
    ) -> AsyncGenerator[dict[str, Any]]:
        """Yield the parts of the reply to a request; cancel it if the caller stops early.

        The cancellation is sent to a side that supports it. `name` identifies the stream for
        `wait_until_processed`. Raise Refused, TimeoutError after `idle_s` without a part, PipeClosed,
        Overrun or TooLarge.
        """
        number, replies = self._open()
        self._streams[name] = replies
        taken, ended = 0, False
        try:
            paced = {"stream_flow_control": 1} if self.protocol and self.protocol.paced else {}
            await self._send(_request(number, action, payload, context) | paced, heavy=heavy)
            while True:
                async with asyncio.timeout(idle_s):
                    part = await replies.get()
                if part.ended:
                    ended = True
                    return
                taken += 1
                if part.index not in (None, taken):
                    raise Overrun("out of order")
                yield part.payload
                replies.mark_processed()
                if part.index is not None and taken % _ACKNOWLEDGE_EVERY == 0:
                    self.notify("__stream_ack", {"seq_id": number, "index": taken}, context)
        except Refused:
            ended = True
            raise
        finally:
            self._reply_queues.pop(number, None)
            self._streams.pop(name, None)
            replies.end()
            if self.protocol and self.protocol.cancels and not ended:
                self.notify("__cancel_action", {"seq_id": number}, context)

    async def wait_until_processed(self, name: str) -> None:
        """Wait until the parts that this stream has received are processed, or until it is over."""
        if replies := self._streams.get(name):
            await replies.wait_until_processed()

    def cancel_run(self, run_id: str) -> None:
        """Cancel the replies to the requests of a run that is over."""
        self._responder.cancel_run(run_id)

    def notify(
        self, action: str, payload: dict[str, Any], context: dict[str, Any] | None = None
    ) -> None:
        """Send a request that needs no reply, without waiting."""
        if self._closed is not None:
            return
        self._last += 1
        request = _request(self._last, action, payload, context)
        task = asyncio.create_task(self._send_notification(request))
        self._notifying.add(task)
        task.add_done_callback(self._notifying.discard)

    async def _send_notification(self, request: dict[str, Any]) -> None:
        with suppress(PipeClosed):
            await self._send(request)

    def _open(self) -> tuple[int, _ReplyQueue]:
        if self._closed is not None:
            raise self._closed
        self._last += 1
        replies = self._reply_queues[self._last] = _ReplyQueue()
        return self._last, replies

    async def _send(self, document: dict[str, Any], *, heavy: bool = False) -> None:
        await self._pipe.send(await write_without_blocking(document, heavy=heavy))

    def _deliver(self, reply: Reply) -> None:
        replies = self._reply_queues.get(reply.number)
        if replies is not None:  # otherwise no caller waits for the reply any more
            replies.put(reply if reply.ok else Refused(reply.message), reply.size)


class _ReplyQueue:
    """The received parts of one reply that are not taken yet."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[tuple[Reply | Exception, int]] = asyncio.Queue()
        self._size = 0
        self._full = False
        self._received = self._taken = 0
        self._ended = False
        self._moved = asyncio.Event()

    async def wait_until_processed(self) -> None:
        received = self._received
        while self._taken < received and not self._ended:
            self._moved.clear()
            await self._moved.wait()

    def mark_processed(self) -> None:
        self._taken += 1
        self._moved.set()

    def end(self) -> None:
        self._ended = True
        self._moved.set()

    def put(self, received: Reply | Exception, size: int) -> None:
        if self._full:
            return
        self._size += size
        if self._size > _LARGEST_QUEUE:
            self._full, received, size = True, Overrun("not taken in time"), 0
        self._received += 1
        self._queue.put_nowait((received, size))

    async def get(self) -> Reply:
        received, size = await self._queue.get()
        self._size -= size
        if isinstance(received, Exception):
            raise received
        return received


def _request(
    number: int, action: str, payload: dict[str, Any], context: dict[str, Any] | None
) -> dict[str, Any]:
    request: dict[str, Any] = {"seq_id": number, "action": action, "data": payload}
    return request | {"context": context} if context else request
