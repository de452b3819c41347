"""Many streams through nginx and Caddy with the files of `deploy/`, by HTTP/2: what is late or cut.

    .venv/bin/python -m benchmarks.proxies [STREAMS] [SECONDS] [DELAY] [replace|reload]

Starts STREAMS runs (2,000), a token every DELAY (3) seconds, one reader each, through each proxy: 22 a
second, for runs that start at full speed leave no core to whoever passes frames on.
When all have spoken for half of SECONDS (30) a new proxy takes the place of the old one, or the proxy
reads its files again. One run in twenty has a reader beside the proxy too: by how much later a frame
comes through it, less the time for which the client's own loop was late, is the share of the proxy and
of whoever else had the cores. Frames that came while streams were still being opened are counted apart.
Clients have addresses of their own on loopback, for nginx counts them.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import uvloop

from benchmarks import load
from benchmarks.fronts import HOST, KINDS, Front, missing
from benchmarks.http2 import Arrivals, Connection, Exchange, delays
from benchmarks.measure import MIB
from benchmarks.stack import Parts, Stack, running
from config.process.server import allow_many_files

A_SECOND: Final = 22
STARTERS: Final = 8
A_CONNECTION: Final = 75
CONNECTIONS_PER_SOURCE: Final = 2
BESIDE: Final = 20
LATE_S: Final = 0.05
LOOK_S: Final = 0.002
RUNS: Final = "/api/v1/agent/runs"
_DELTA: Final = re.compile(rb'"delta": ?"([^"\\]*)"')


class OwnLoop:
    """For how long this client's loop was late itself, and when."""

    def __init__(self) -> None:
        self._late: list[tuple[float, float]] = []

    async def watch(self) -> None:
        while True:
            due = time.perf_counter() + LOOK_S
            await asyncio.sleep(LOOK_S)
            if (now := time.perf_counter()) > due + LOOK_S:
                self._late.append((due, now))

    def late_s(self, begun: float, ended: float) -> float:
        """Return for how many seconds between these two times the loop could read nothing."""
        return sum(max(0.0, min(ended, until) - max(begun, since)) for since, until in self._late)


@dataclass
class Reading:
    """A run that is read through the proxy, and perhaps beside it."""

    arrivals: Arrivals
    exchange: Exchange
    beside: Arrivals = field(default_factory=Arrivals)
    direct: load.Exchange | None = None


async def measure(
    stack: Stack, front: Front, streams: int, seconds: float, delay_s: float, renewal: str
) -> None:
    """Print what the streams through this proxy did."""
    tokens = int((streams / A_SECOND + seconds) / delay_s)
    text = f"tokens={tokens} delay_ms={delay_s * 1000:.0f}"
    own = OwnLoop()
    watching = asyncio.create_task(own.watch())
    begun, readings, connections = time.perf_counter(), list[Reading](), list[Connection]()
    for first in range(0, streams, A_CONNECTION):
        source = f"127.0.1.{len(connections) // CONNECTIONS_PER_SOURCE + 1}"
        connection = await Connection.to(front.port, source=source, certificate=str(front.certificate))
        connections.append(connection)
        numbers = iter(range(first, min(first + A_CONNECTION, streams)))
        await asyncio.gather(
            *(_begin_all(stack, connection, text, numbers, readings) for _ in range(STARTERS))
        )
    while not all(reading.arrivals.at for reading in readings):  # noqa: ASYNC110
        await asyncio.sleep(0.1)
    opened_s = time.perf_counter() - begun
    print(f"{front.kind}: {streams} streams speak after {opened_s:.0f} s", flush=True)
    await asyncio.sleep(seconds / 2)
    held = sum(not reading.arrivals.whole for reading in readings)
    processes = [front.process, *front.process.children()]
    size = sum(process.memory_info().rss for process in processes) / MIB
    at_s = time.perf_counter() - begun
    await asyncio.to_thread(getattr(front, renewal))
    print(f"{front.kind}: {renewal} after {at_s:.0f} s, {held} streams open; {size:.0f} MiB", flush=True)
    ends = [reading.exchange.ended for reading in readings]
    ends += [reading.direct.ended for reading in readings if reading.direct is not None]
    await asyncio.gather(*ends, return_exceptions=True)
    watching.cancel()
    _report(front.kind, readings, tokens)
    frames = [
        (delay - own.late_s(came - delay, came), came - begun)
        for reading in readings
        if reading.direct is not None
        for delay, came in delays(reading.arrivals, reading.beside)
    ]
    _report_late(f"{front.kind}, streams opening", [frame for frame in frames if frame[1] < opened_s])
    _report_late(f"{front.kind}, all open", [frame for frame in frames if frame[1] >= opened_s])
    for connection in connections:
        await connection.close()


async def _begin_all(
    stack: Stack,
    connection: Connection,
    text: str,
    numbers: Iterator[int],
    into: list[Reading],
) -> None:
    for number in numbers:
        pause = asyncio.create_task(asyncio.sleep(STARTERS / A_SECOND))
        into.append(await _begin(stack, connection, text, beside=number % BESIDE == 0))
        await pause


async def _begin(stack: Stack, connection: Connection, text: str, *, beside: bool) -> Reading:
    headers = {"authorization": f"Bearer {stack.token}"}
    body = {"model": "bench", "text": text}
    run_id = (await connection.fetch(RUNS, headers=headers, payload=body))["run_id"]
    path, arrivals = f"{RUNS}/{run_id}/events", Arrivals()
    reading = Reading(arrivals, connection.request(path, arrivals.feed, headers=headers))
    if beside:
        call = load.Call(path, token=stack.token)
        reading.direct, _ = await load.send(stack.web_port, call, reading.beside.feed)
    return reading


def _report(kind: str, readings: list[Reading], tokens: int) -> None:
    text = b"".join(b"t%d " % number for number in range(tokens))
    cut = sum(reading.exchange.ended.exception() is not None for reading in readings)
    whole = sum(b"".join(_DELTA.findall(reading.arrivals.body)).startswith(text) for reading in readings)
    print(f"{kind}: {whole} of {len(readings)} texts whole, {cut} streams cut", flush=True)


def _report_late(what: str, frames: list[tuple[float, float]]) -> None:
    frames = sorted(frames)
    if not frames:
        print(f"{what}: no frame was read twice", flush=True)
        return
    held = [f", {delay * 1000:.0f} ms after {at_s:.0f} s" for delay, at_s in frames if delay > LATE_S]
    print(
        f"{what}: of {len(frames)} frames that were read twice {len(held)} came over "
        f"{LATE_S * 1000:.0f} ms later through the proxy{''.join(held)}: "
        f"p50 {frames[len(frames) // 2][0] * 1000:.1f}, "
        f"p99 {frames[len(frames) * 99 // 100][0] * 1000:.1f}, most {frames[-1][0] * 1000:.1f} ms",
        flush=True,
    )


def main(streams: int, seconds: float, delay_s: float, renewal: str) -> None:
    allow_many_files()
    gc.disable()  # what stops this client would look like a frame that the proxy has held
    settings = {
        "RUN_DEADLINE_S": "3600",
        "TRUSTED_PROXIES": HOST,
        "PUBLIC_URL": "https://parley.example",
    }
    settings |= {"ALLOWED_HOSTS": HOST}
    with running(say=_say, settings=settings) as stack, ExitStack() as opened:
        folder = Path(tempfile.mkdtemp(prefix="parley-bench-"))
        opened.callback(shutil.rmtree, folder, ignore_errors=True)
        folder.chmod(0o711)  # nginx's user passes through
        parts = opened.enter_context(Parts(folder))
        for kind in KINDS:
            if reason := missing(kind):
                _say(reason)
                continue
            front = Front(kind, folder / kind, parts, stack.web_port)
            front.start()
            uvloop.run(measure(stack, front, streams, seconds, delay_s, renewal))
            front.stop()


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.proxies")
    parser.add_argument("streams", type=int, nargs="?", default=2_000)
    parser.add_argument("seconds", type=float, nargs="?", default=30)
    parser.add_argument("delay", type=float, nargs="?", default=3)
    parser.add_argument("renewal", nargs="?", choices=("replace", "reload"), default="replace")
    options = parser.parse_args()
    main(options.streams, options.seconds, options.delay, options.renewal)
