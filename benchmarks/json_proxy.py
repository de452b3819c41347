"""The baseline: a bare ASGI proxy that parses each delta of the model and writes it again.

It keeps nothing, counts nothing and asks nobody who they are: the least that a server with events
of its own has to do. Measured in the same sitting as Parley, it tells a slow server from a noisy
machine. `MODEL_PORT` says where the fake model is.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any

from benchmarks.load import Call, send

Message = MutableMapping[str, Any]
MODEL_PORT = int(os.environ.get("MODEL_PORT", "0"))


async def app(
    scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
) -> None:
    """`POST /stream {"prompt"}` answers with `data: {"delta": …}` frames."""
    if scope["type"] != "http":
        return
    prompt = json.loads(await _body(receive))["prompt"]
    headers = [(b"content-type", b"text/event-stream")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    async for delta in _deltas(prompt):
        frame = b"data: " + json.dumps({"delta": delta}).encode() + b"\n\n"
        await send({"type": "http.response.body", "body": frame, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def _body(receive: Callable[[], Awaitable[Message]]) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return body


async def _deltas(prompt: str) -> AsyncIterator[str]:
    arrived: asyncio.Queue[bytes] = asyncio.Queue()
    messages = [{"role": "user", "content": prompt}]
    call = Call("/v1/chat/completions", {"model": "bench", "stream": True, "messages": messages})
    exchange, _ = await send(MODEL_PORT, call, arrived.put_nowait)
    rest = b""
    try:
        while True:
            *frames, rest = (rest + await arrived.get()).split(b"\n\n")
            for frame in frames:
                if frame == b"data: [DONE]":
                    return
                choices = json.loads(frame.removeprefix(b"data: "))["choices"]
                if choices and (text := choices[0]["delta"].get("content")):
                    yield text
    finally:
        exchange.close()
