"""A fake OpenAI-compatible model, cheap enough never to be the bottleneck.

The prompt says what it wants, `tokens=200 delay_ms=10` (the last occurrence in the body counts, so
whatever a server puts before the question does no harm), and the text is `t0 t1 t2 …`, so that a
lost, doubled or reordered token is seen. Tokens follow an absolute schedule: one that is late does
not delay the next. Every chunk is encoded once and kept; per token there is only a write.

`GET /stats` counts requests, streams under way, finished and aborted ones, and tokens sent.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
from collections import Counter
from functools import cache
from typing import Any, cast

import httptools
import uvloop

TOKENS = re.compile(rb"tokens=(\d{1,7})")
DELAY_MS = re.compile(rb"delay_ms=(\d{1,7})")
SSE_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
    b"x-request-id: req_bench\r\ntransfer-encoding: chunked\r\n\r\n"
)
stats: Counter[str] = Counter(requests=0, active=0, finished=0, aborted=0, tokens=0)


class FakeModel(asyncio.Protocol):
    """One keep-alive connection, one request at a time."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.parser = httptools.HttpRequestParser(self)
        self.timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop's is no subclass

    def connection_lost(self, exc: Exception | None) -> None:
        if self.timer is not None:
            self.timer.cancel()
            stats.update(active=-1, aborted=1)

    def data_received(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError:
            self.transport.close()

    # httptools calls these
    def on_message_begin(self) -> None:
        self.path, self.body = b"", b""

    def on_url(self, url: bytes) -> None:
        self.path += url

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        match self.path:
            case b"/v1/chat/completions":
                self._stream(_asked(TOKENS, self.body, 200), _asked(DELAY_MS, self.body, 0) / 1000)
            case b"/v1/models":
                self._reply("200 OK", {"object": "list", "data": [{"id": "bench", "object": "model"}]})
            case b"/stats":
                self._reply("200 OK", dict(stats))
            case _:
                self._reply(
                    "404 Not Found", {"error": {"message": "Not here.", "type": "invalid_request_error"}}
                )

    def _stream(self, tokens: int, delay: float) -> None:
        stats["requests"] += 1
        if delay and tokens:
            stats["active"] += 1
            self.transport.write(_opening())
            self._tick(0, tokens, delay, self.loop.time())
            return
        self.transport.write(_opening() + b"".join(map(_token, range(tokens))))
        stats["tokens"] += tokens
        self._finish(tokens)

    def _tick(self, first: int, tokens: int, delay: float, start: float) -> None:
        """Send the token that is due and those that are overdue; come back for the next."""
        due = min(tokens, max(first, int((self.loop.time() - start) / delay)) + 1)
        self.transport.write(b"".join(map(_token, range(first, due))))
        stats["tokens"] += due - first
        if due < tokens:
            self.timer = self.loop.call_at(start + due * delay, self._tick, due, tokens, delay, start)
            return
        self.timer = None
        stats["active"] -= 1
        self._finish(tokens)

    def _finish(self, tokens: int) -> None:
        stats["finished"] += 1
        self.transport.write(_closing(tokens))
        self._end_exchange()

    def _reply(self, status: str, payload: Any) -> None:
        body = json.dumps(payload).encode()
        head = (
            f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self._end_exchange()

    def _end_exchange(self) -> None:
        if not self.parser.should_keep_alive():
            self.transport.close()


def _asked(name: re.Pattern[bytes], body: bytes, default: int) -> int:
    found = name.findall(body)
    return int(found[-1]) if found else default


@cache
def _opening() -> bytes:
    return SSE_HEAD + _chunk(choices=[_choice({"role": "assistant", "content": ""})])


@cache
def _token(index: int) -> bytes:
    return _chunk(choices=[_choice({"content": f"t{index} "})])


@cache
def _closing(tokens: int) -> bytes:
    usage = {"prompt_tokens": 10, "completion_tokens": tokens, "total_tokens": 10 + tokens}
    finish = _chunk(choices=[_choice({}, "stop")])
    return finish + _chunk(choices=[], usage=usage) + _framed(b"[DONE]") + b"0\r\n\r\n"


def _choice(delta: dict[str, str], finish: str | None = None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "finish_reason": finish}


def _chunk(**fields: Any) -> bytes:
    chunk = {"id": "chatcmpl-bench", "object": "chat.completion.chunk", "created": 1_700_000_000}
    return _framed(json.dumps(chunk | {"model": "bench"} | fields, separators=(",", ":")).encode())


def _framed(data: bytes) -> bytes:
    """A server-sent event inside an HTTP chunk."""
    event = b"data: " + data + b"\n\n"
    return b"%x\r\n%b\r\n" % (len(event), event)


async def serve(host: str, port: int) -> None:
    """Answer until cancelled."""
    server = await asyncio.get_running_loop().create_server(FakeModel, host, port, backlog=4096)
    await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="The benchmark's fake model.")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--host", default="127.0.0.1")
    options = parser.parse_args()
    uvloop.run(serve(options.host, options.port))
