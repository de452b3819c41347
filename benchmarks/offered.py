"""Load that does not wait for answers: what a POST takes at a steady rate, and beyond what is possible.

    .venv/bin/python -m benchmarks.offered [RATE] [SECONDS]

First RATE runs a second (100) are offered for SECONDS (10) and every POST is timed. Then, to a server
that may let few wait, three times as many with runs that are slow: what is refused must be refused
quickly, with Retry-After, and what is accepted must end.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import psycopg
import uvloop

from benchmarks import load
from benchmarks.measure import Spread
from benchmarks.stack import Stack, running
from config.process.server import allow_many_files

NARROW: Mapping[str, str] = {"WORKER_CAPACITY": "50", "RUNS_WAITING": "200"}
EASY = "tokens=5 delay_ms=0"
SLOW = "tokens=20 delay_ms=50"
SETTLE_S = 60.0
_ENDS = "SELECT status, count(*) FROM conversations_run GROUP BY status"


@dataclass(frozen=True)
class Answer:
    """How one POST was answered; seconds from the moment at which it was due."""

    status: int
    seconds: float
    retry_after: bool


async def post(stack: Stack, prompt: str, due: float) -> Answer:
    """One POST on a connection of its own; status 0 when the connection broke."""
    body = bytearray()
    call = load.Call("/api/v1/agent/runs", {"model": "bench", "text": prompt}, stack.token)
    try:
        exchange, _ = await load.send(stack.web_port, call, body.extend)
        status = await exchange.status
        seconds = time.perf_counter() - due
        await exchange.ended
        exchange.close()
    except OSError:
        return Answer(0, time.perf_counter() - due, False)
    return Answer(status, seconds, b"retry-after" in exchange.headers)


async def offer(stack: Stack, prompt: str, rate: float, seconds: float) -> list[Answer]:
    """So many POSTs a second, whatever becomes of those before."""
    begun = time.perf_counter()
    posting = []
    for number in range(int(rate * seconds)):
        due = begun + number / rate
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        posting.append(asyncio.create_task(post(stack, prompt, due)))
    return await asyncio.gather(*posting)


def show(title: str, answers: list[Answer]) -> None:
    by_status: defaultdict[int, list[Answer]] = defaultdict(list)
    for answer in answers:
        by_status[answer.status].append(answer)
    for status, some in sorted(by_status.items()):
        took = Spread.of([answer.seconds for answer in some])
        worst = max(answer.seconds for answer in some) * 1000
        hint = "" if status == 202 else f", Retry-After on {sum(one.retry_after for one in some)}"
        times = f"p50 {took.p50:g}, p99 {took.p99:g}, worst {worst:.1f} ms"
        print(f"{title}: {len(some)} × {status}, {times}{hint}", flush=True)


def settled(stack: Stack, accepted: int) -> None:
    """Wait for the end of all runs and compare their number with what was accepted."""
    until = time.monotonic() + SETTLE_S
    with psycopg.connect(stack.database_url, autocommit=True) as connection:
        while True:
            ends: Counter[str] = Counter(dict(connection.execute(_ENDS).fetchall()))
            live = ends["queued"] + ends["running"]
            if not live or time.monotonic() > until:
                break
            time.sleep(0.2)
    print(f"  accepted {accepted}, stored {ends.total()}: {dict(ends)}", flush=True)


def main(rate: float, seconds: float) -> None:
    allow_many_files()
    for title, prompt, times, settings in (
        (f"{rate:g}/s offered", EASY, 1, {}),
        (f"{3 * rate:g}/s offered, room for 50 + 200", SLOW, 3, NARROW),
    ):
        with running(say=lambda _: None, settings=settings) as stack:
            warm = uvloop.run(offer(stack, EASY, 20, 2))
            answers = uvloop.run(offer(stack, prompt, times * rate, seconds))
            show(title, answers)
            settled(stack, sum(answer.status == 202 for answer in [*warm, *answers]))


if __name__ == "__main__":
    main(*(float(text) for text in (sys.argv[1:] + ["100", "10"][len(sys.argv) - 1 :])))
