"""More than is possible, for a while: what becomes of those who are accepted, and of those who are not.

    .venv/bin/python -m benchmarks.overload [FACTOR] [SECONDS]

First sixteen clients say how many runs of one token a second are possible here. Then FACTOR (2) times as
many are offered for SECONDS (60), whatever becomes of those before, each read to its end on connections
of its own. What is refused must be refused quickly, and every run of a 202 must end. The load client
shares the machine: what it is late with is printed too, and is in all figures. So a second process, with
PROBES requests a second and nothing else to do, says how long a refusal really takes.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field

import psycopg
import uvloop

from benchmarks import load
from benchmarks.load import Run, Target
from benchmarks.measure import Spread
from benchmarks.stack import running
from config.process.server import allow_many_files

PROMPT = "tokens=1 delay_ms=0"
CLIENTS = 16
PROBE_S = 5.0
LIMIT_S = 120.0
PROBES = 20
SOON_S = 0.05
_ENDS = "SELECT status, count(*) FROM conversations_run GROUP BY status"


@dataclass
class Offered:
    """What became of the runs that were offered; seconds, and how late the client was at worst."""

    runs: list[Run] = field(default_factory=list)
    refused_s: list[float] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    late_s: float = 0.0

    @property
    def completed(self) -> list[Run]:
        return [run for run in self.runs if not run.error]


async def capacity(target: Target) -> float:
    """Return how many runs a second sixteen clients start and read to their ends."""
    until, done = time.perf_counter() + PROBE_S, 0

    async def client() -> None:
        nonlocal done
        while time.perf_counter() < until:
            run = await load.run_once(target, PROMPT, limit_s=LIMIT_S)
            done += not run.error

    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    return done / PROBE_S


async def offer(target: Target, rate: float, seconds: float) -> Offered:
    """Start so many runs a second, whatever becomes of those before."""
    found, begun, tasks = Offered(), time.perf_counter(), []

    async def one() -> None:
        since = time.perf_counter()
        run = await load.run_once(target, PROMPT, limit_s=LIMIT_S)
        found.runs.append(run)
        if "HTTP 503" in run.error or "HTTP 429" in run.error:
            found.refused_s.append(time.perf_counter() - since)
        elif run.error:
            found.errors[run.error[:60]] += 1

    for number in range(round(rate * seconds)):
        ahead = begun + number / rate - time.perf_counter()
        if ahead > 0:
            await asyncio.sleep(ahead)
        found.late_s = max(found.late_s, -ahead)
        tasks.append(asyncio.create_task(one()))
    await asyncio.gather(*tasks)
    return found


def probe(port: int, token: str, seconds: float) -> Offered:
    """Return what becomes of a few runs, offered by a process that is not late."""
    return uvloop.run(offer(load.parley(port, token, "bench"), PROBES, seconds))


def main(factor: float, seconds: float) -> None:
    allow_many_files()
    with running(say=lambda _: None) as stack, ProcessPoolExecutor(1) as pool:
        target = load.parley(stack.web_port, stack.token, "bench")
        rate = uvloop.run(capacity(target))
        probing = pool.submit(probe, stack.web_port, stack.token, seconds)
        found = uvloop.run(offer(target, factor * rate, seconds))
        probed = probing.result()
        with psycopg.connect(stack.database_url) as connection:
            ends: dict[str, int] = dict(connection.execute(_ENDS).fetchall())
    done = found.completed
    accept, first = Spread.of([run.accept for run in done]), Spread.of([run.first for run in done])
    refused = Spread.of(found.refused_s)
    print(f"possible {rate:.0f} runs/s, offered {factor * rate:.0f} for {seconds:.0f} s")
    print(f"completed {len(done)} ({len(done) / seconds:.0f}/s), refused {len(found.refused_s)}")
    print(f"accepted: accept p50 {accept.p50} ms, p99 {accept.p99}")
    print(f"accepted: first token p50 {first.p50} ms, p99 {first.p99}")
    print(f"refused after p50 {refused.p50} ms, p99 {refused.p99}; client {found.late_s:.2f} s late")
    seen = Spread.of(probed.refused_s)
    print(f"refused by the probe's clock: p50 {seen.p50} ms, p99 {seen.p99}; {probed.late_s:.2f} s late")
    soon = sum(took <= SOON_S for took in probed.refused_s) / max(len(probed.refused_s), 1)
    print(f"refused within {SOON_S * 1000:.0f} ms by the probe's clock: {soon:.0%}")
    print(f"runs in the database {ends}, other errors {dict(found.errors)}")
    sys.exit(bool(found.errors or probed.errors) or set(ends) != {"completed"})


if __name__ == "__main__":
    main(*(float(given) for given in (sys.argv[1:] + ["2", "60"][len(sys.argv) - 1 :])))
