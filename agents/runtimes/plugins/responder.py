"""Answer a runtime's requests: one task per request, streams at the pace of the caller.

A reply that fails, hangs or grows too large does not affect the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from contextvars import Context
from typing import Any, Final

import msgspec
import structlog

from agents.host_protocol.errors import HostRefusal, too_large
from agents.runtimes.plugins.envelopes import Request, TooLarge
from agents.runtimes.plugins.transports import PipeClosed

log = structlog.get_logger(__name__)

MAX_REPLIES_AT_ONCE: Final = 128
_WINDOW: Final = 8
_MAX_WAITING: Final = 1024
_PATIENCE_S: Final = 60.0
Answer = Callable[[Request], Awaitable[dict[str, Any]] | AsyncGenerator[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class Responder:
    """The requests under way on one connection."""

    def __init__(self, send: Send, answer: Answer) -> None:
        self._send = send
        self._answer = answer
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._runs: dict[int, str] = {}
        self._paces: dict[int, _Pace] = {}
        self._controls: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "__ping": lambda _: {"pong": "pong"},
            "__stream_ack": self._acknowledge,
            "__cancel_action": self._cancel,
        }

    def begin_reply(self, request: Request) -> None:
        """Begin a reply, without waiting; ignore requests of a caller that does not read its replies."""
        if len(self._tasks) >= _MAX_WAITING:
            return
        if control := self._controls.get(request.action):
            self._start_task(request, self._send_reply(request, control(request.payload)))
        elif len(self._tasks) >= MAX_REPLIES_AT_ONCE:
            busy = HostRefusal("rate_limited", f"At most {MAX_REPLIES_AT_ONCE} calls at once.")
            self._start_task(request, self._send_refusal(request, busy))
        else:
            self._start_task(request, self._serve(request), kept=True)

    def cancel_run(self, run_id: str) -> None:
        """Cancel the replies to requests of this run."""
        for key in [key for key, run_of_key in self._runs.items() if run_of_key == run_id]:
            self._tasks[key].cancel()

    async def end(self) -> None:
        """Cancel all replies; no caller receives them any more."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _start_task(self, request: Request, work: Any, *, kept: bool = False) -> None:
        task = asyncio.create_task(work, context=Context())
        key = request.number if kept else -1 - request.number
        self._tasks[key] = task
        if kept and isinstance(run_id := request.payload.get("run_id"), str):
            self._runs[key] = run_id
        task.add_done_callback(lambda _: self._remove(key))

    def _remove(self, key: int) -> None:
        self._tasks.pop(key, None)
        self._runs.pop(key, None)

    def _cancel(self, payload: dict[str, Any]) -> dict[str, Any]:
        number = payload.get("seq_id")
        task = self._tasks.get(number) if isinstance(number, int) else None
        return {"cancelled": task is not None and task.cancel()}

    def _acknowledge(self, payload: dict[str, Any]) -> dict[str, Any]:
        number, index = payload.get("seq_id"), payload.get("index")
        if isinstance(number, int) and isinstance(index, int) and (pace := self._paces.get(number)):
            pace.acknowledge(index)
        return {"accepted": True}

    async def _serve(self, request: Request) -> None:
        try:
            answer = self._answer(request)
            if isinstance(answer, AsyncGenerator):
                await self._stream(request, answer)
            else:
                await self._send_reply(request, await answer)
        except PipeClosed:
            return
        except HostRefusal as refusal:
            await self._send_refusal(request, refusal)
        except TooLarge:
            await self._send_refusal(request, too_large("The answer is larger than 16 MiB."))
        except Exception:  # a bug in one reply must not end the connection
            log.exception("plugin call failed", action=request.action)
            await self._send_refusal(request, HostRefusal("runtime_error", "The Host failed."))

    async def _stream(self, request: Request, answer: AsyncGenerator[dict[str, Any]]) -> None:
        pace = self._paces[request.number] = _Pace()
        try:
            async with aclosing(answer) as parts:
                async for part in parts:
                    reply = _reply(request, part)
                    if request.paced:
                        reply["stream_index"] = await pace.next()
                    await self._send(reply)
        finally:
            del self._paces[request.number]
        await self._send(_reply(request, {}) | {"chunk_status": "end"})

    async def _send_reply(self, request: Request, payload: dict[str, Any]) -> None:
        with suppress(PipeClosed):
            await self._send(_reply(request, payload))

    async def _send_refusal(self, request: Request, refusal: HostRefusal) -> None:
        """Refuse; the message contains the code, because runtimes forward only the message."""
        message = f"{refusal.message} (code: {refusal.code})"
        data = msgspec.to_builtins(refusal.wire())
        with suppress(PipeClosed):
            await self._send(_reply(request, data) | {"code": 1, "message": message})


class _Pace:
    """The distance by which a stream may be ahead of its acknowledgements."""

    def __init__(self) -> None:
        self._sent = self._seen = 0
        self._moved = asyncio.Event()

    def acknowledge(self, index: int) -> None:
        self._seen = max(self._seen, min(index, self._sent))
        self._moved.set()

    async def next(self) -> int:
        """Return the number of the next part when it may be sent; raise TimeoutError after a minute."""
        while self._sent - self._seen >= _WINDOW:
            self._moved.clear()
            async with asyncio.timeout(_PATIENCE_S):
                await self._moved.wait()
        self._sent += 1
        return self._sent


def _reply(request: Request, payload: dict[str, Any]) -> dict[str, Any]:
    return {
        "seq_id": request.number,
        "code": 0,
        "message": "success",
        "data": payload,
        "chunk_status": "continue",
    }
