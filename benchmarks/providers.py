"""What a provider client costs: CPU per 1,000 deltas, beside a bare reader of the same stream.

    python -m benchmarks.providers [--deltas 1000] [--repeats 7] [--sdks]

A server in a process of its own plays each wire's stream, one event a write (as a model speaks) or
all at once (as a fast provider's buffer arrives). The bare reader takes the bytes off the same HTTP
client and looks at none of them; both run in this process by turns and the best turn counts. `--sdks`
adds what reads Chat Completions elsewhere: the openai SDK, and an agent of pydantic-ai on top of it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Final

import httptools
import msgspec
import uvloop

_HEAD: Final = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
)
_PACE_S: Final = 0.002
_CHAT_WIRE: Final = "openai.chat_completions"
_Read = Callable[[str], Awaitable[int]]


# --- the streams ---------------------------------------------------------------------------------


def _event(payload: Any, *, named: bool = False) -> bytes:
    data = b"data: " + msgspec.json.encode(payload) + b"\n\n"
    return b"event: %b\n%b" % (payload["type"].encode(), data) if named else data


def _chat(deltas: int) -> list[bytes]:
    whole = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}

    def chunk(delta: Any, finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return _event(whole | {"choices": [choice], "usage": None})

    said = [chunk({"content": f"t{n} "}) for n in range(deltas)]
    return [*said, chunk({}, "stop"), b"data: [DONE]\n\n"]


def _responses(deltas: int) -> list[bytes]:
    at = {"item_id": "msg_1", "output_index": 0, "content_index": 0, "logprobs": []}
    kind = {"type": "response.output_text.delta"}
    said = [
        _event(kind | {"sequence_number": n} | at | {"delta": f"t{n} "}, named=True)
        for n in range(deltas)
    ]
    done = {"type": "response.completed", "response": {"status": "completed"}}
    return [*said, _event(done, named=True)]


def _anthropic(deltas: int) -> list[bytes]:
    kind = {"type": "content_block_delta", "index": 0}
    said = [
        _event(kind | {"delta": {"type": "text_delta", "text": f"t{n} "}}, named=True)
        for n in range(deltas)
    ]
    stop = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
    return [*said, _event(stop, named=True), _event({"type": "message_stop"}, named=True)]


def _gemini(deltas: int) -> list[bytes]:
    def chunk(text: str, **more: str) -> bytes:
        candidate = {"content": {"parts": [{"text": text}], "role": "model"}, "index": 0} | more
        counts = {"promptTokenCount": 9, "candidatesTokenCount": 9, "totalTokenCount": 18}
        whole = {"modelVersion": "gemini", "responseId": "r"}
        return _event({"candidates": [candidate], "usageMetadata": counts} | whole)

    return [*(chunk(f"t{n} ") for n in range(deltas)), chunk("", finishReason="STOP")]


STREAMS: Final[dict[str, Callable[[int], list[bytes]]]] = {
    _CHAT_WIRE: _chat,
    "openai.responses": _responses,
    "anthropic.messages": _anthropic,
    "gemini.generate_content": _gemini,
}


# --- the server ----------------------------------------------------------------------------------


class _Player(asyncio.Protocol):
    """Plays the stream that the path names: `/{wire}/{deltas}/{paced or burst}/…`."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport
        self.parser = httptools.HttpRequestParser(self)
        self.url = b""

    def data_received(self, data: bytes) -> None:
        self.parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        self.url += url

    def on_message_complete(self) -> None:
        _, wire, deltas, pace, *_ = self.url.decode().split("/")
        events = [b"%x\r\n%b\r\n" % (len(e), e) for e in STREAMS[wire](int(deltas))]
        self.url = b""
        self.task = asyncio.ensure_future(self._play(events, paced=pace == "paced"))

    async def _play(self, events: list[bytes], *, paced: bool) -> None:
        self.transport.write(_HEAD)
        for event in events if paced else [b"".join(events)]:
            self.transport.write(event)
            await asyncio.sleep(_PACE_S if paced else 0)
        self.transport.write(b"0\r\n\r\n")


async def serve() -> None:
    """Listen on a port of the system's choice, say it, and play until the parent leaves."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(_Player, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


# --- the measurement -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """CPU milliseconds per 1,000 deltas."""

    wire: str
    pace: str
    bare_ms: float
    client_ms: float
    deltas: int

    @property
    def times(self) -> float:
        return self.client_ms / self.bare_ms


async def measure(port: int, *, deltas: int, repeats: int, sdks: bool = False) -> list[Row]:
    """Every wire at both paces, bare and whole by turns."""
    from agents.providers import http
    from agents.providers.base import ModelRequest, TextDelta
    from agents.providers.registry import WIRES
    from prompts.endpoints.routing import Candidate

    async def bare(url: str) -> int:
        response = await http.post(url, headers={}, body=b"{}")
        async for _ in http.read(response):
            pass
        response.close()
        return deltas

    async def whole(wire: str, root: str) -> int:
        target = Candidate(1, "bench", wire, root, "m", "", None, None)
        answer = WIRES[wire](target, ModelRequest(messages=()))
        events = [event async for group in answer for event in group]
        return sum(isinstance(event, TextDelta) and event.text != "" for event in events)

    clients: list[tuple[str, str, _Read]] = [(wire, wire, partial(whole, wire)) for wire in STREAMS]
    if sdks:
        clients += [(f"{_CHAT_WIRE}, {name}", _CHAT_WIRE, read) for name, read in _sdks()]
    rows = []
    for pace in ("paced", "burst"):
        for name, wire, read in clients:
            root = f"http://127.0.0.1:{port}/{wire}/{deltas}/{pace}"
            bares, wholes = [], []
            for _ in range(repeats):
                bares.append(await _cpu_ms(bare(f"{root}/x"), deltas))
                wholes.append(await _cpu_ms(read(root), deltas))
            per = 1000 / deltas
            rows.append(Row(name, pace, min(bares) * per, min(wholes) * per, deltas))
    await http.close()
    return rows


def _sdks() -> list[tuple[str, _Read]]:
    """Return readers of the same stream by the packages that others use."""
    from openai import AsyncOpenAI
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    @cache  # making one costs more than a stream
    def client(root: str) -> AsyncOpenAI:
        return AsyncOpenAI(base_url=root, api_key="none", max_retries=0)

    @cache
    def agent(root: str) -> Agent:
        return Agent(OpenAIChatModel("m", provider=OpenAIProvider(openai_client=client(root))))

    async def openai_sdk(root: str) -> int:
        stream = await client(root).chat.completions.create(
            model="m", messages=[{"role": "user", "content": "x"}], stream=True
        )
        return sum([bool(chunk.choices[0].delta.content) async for chunk in stream])

    async def pydantic_ai(root: str) -> int:
        async with agent(root).run_stream("x") as answer:
            return sum([True async for _ in answer.stream_text(delta=True, debounce_by=None)])

    return [("openai SDK", openai_sdk), ("pydantic-ai", pydantic_ai)]


async def _cpu_ms(reading: Awaitable[int], deltas: int) -> float:
    before = time.process_time()
    found = await reading
    spent = (time.process_time() - before) * 1000
    assert found == deltas, f"{found} of {deltas} deltas came"
    return spent


def table(rows: list[Row]) -> str:
    lines = ["| wire | pace | bare reader | client | times |", "| --- | --- | --- | --- | --- |"]
    lines += [
        f"| {row.wire} | {row.pace} | {row.bare_ms:.1f} ms | {row.client_ms:.1f} ms | {row.times:.2f} |"
        for row in rows
    ]
    return "\n".join(lines)


def run(*, deltas: int, repeats: int, sdks: bool = False) -> list[Row]:
    """Start the server, measure, end it."""
    command = [sys.executable, "-m", "benchmarks.providers", "--serve"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        try:
            port = int(server.stdout.readline())
            return uvloop.run(measure(port, deltas=deltas, repeats=repeats, sdks=sdks))
        finally:
            server.kill()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.providers")
    parser.add_argument("--deltas", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--sdks", action="store_true", help="measure the openai SDK and pydantic-ai too")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        uvloop.run(serve())
        return
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    os.environ.setdefault("DATABASE_URL", "postgresql:///unused")
    import django

    django.setup()
    print(table(run(deltas=options.deltas, repeats=options.repeats, sdks=options.sdks)))


if __name__ == "__main__":
    main()
