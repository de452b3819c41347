"""Many long streams at once on one web process and one worker: memory, and whether all arrives.

    .venv/bin/python -m benchmarks.streams [STREAMS] [SECONDS]

Starts STREAMS runs (5,000) that say a token every three seconds, one reader each, and holds them for
SECONDS (60) after the last one has begun to speak. Memory is read when all have begun and at the end;
every text is compared with what the model said.
"""

from __future__ import annotations

import asyncio
import math
import statistics
import sys
import time
from collections import Counter
from dataclasses import dataclass

import psutil
import uvloop

from benchmarks import load
from benchmarks.measure import MIB, Faults
from benchmarks.stack import Stack, running
from config.process.server import allow_many_files

DELAY_MS = 3_000
STARTERS = 8
TRIED = 200
LOOKS = 4
LIMIT_S = 120.0


@dataclass(frozen=True)
class Size:
    """What a process holds."""

    rss_mib: float
    files: int

    @classmethod
    def of(cls, pid: int) -> Size:
        process = psutil.Process(pid)
        return cls(round(process.memory_info().rss / MIB, 1), process.num_fds())


async def hold(stack: Stack, streams: int, seconds: float) -> None:
    """Start the streams, hold them, let them end; print what that took."""
    target = load.parley(stack.web_port, stack.token, "bench")
    a_second = await rate(target)
    tokens = math.ceil((2 * streams / a_second + seconds) * 1000 / DELAY_MS)
    print(f"{a_second:.0f} runs a second can be started here: {tokens} tokens each", flush=True)
    pids = {"web": stack.web_pid, "worker": stack.worker_pids[0]}
    empty = {name: Size.of(pid) for name, pid in pids.items()}
    begun = time.monotonic()
    reading = await begin(target, streams, tokens)
    print(f"{streams} streams speak after {time.monotonic() - begun:.0f} s", flush=True)
    sizes = [{name: Size.of(pid) for name, pid in pids.items()}]
    for _ in range(LOOKS):
        await asyncio.sleep(seconds / LOOKS)
        sizes.append({name: Size.of(pid) for name, pid in pids.items()})
    done = await asyncio.gather(*reading)
    for name in pids:
        show(name, empty[name], [size[name] for size in sizes], streams)
    good = [run for run in done if not run.error]
    errors = Counter(run.error.partition(" b'")[0] for run in done if run.error)
    print(f"first delta p50 {statistics.median(run.first for run in good) * 1000:.0f} ms")
    print(f"{len(good)} of {streams} ended, {Faults.of(good, tokens)}, errors {dict(errors)}")


async def rate(target: load.Target) -> float:
    """How many runs a second this machine starts; so that the first stream lives to see the last."""
    since = time.monotonic()
    await asyncio.gather(*await begin(target, TRIED, tokens=1))
    return TRIED / (time.monotonic() - since)


async def begin(target: load.Target, streams: int, tokens: int) -> list[asyncio.Task[load.Run]]:
    """Start the streams, a few at a time; they all speak when this returns."""
    runs = [load.Run() for _ in range(streams)]
    prompt, limit_s = f"tokens={tokens} delay_ms={DELAY_MS}", tokens * DELAY_MS / 1000 + LIMIT_S
    waiting, reading = iter(runs), list[asyncio.Task[load.Run]]()

    async def start() -> None:
        for run in waiting:
            work = load.run_once(target, prompt, limit_s=limit_s, run=run)
            reading.append(asyncio.create_task(work))
            while not (run.accept or run.error):  # noqa: ASYNC110
                await asyncio.sleep(0.002)

    await asyncio.gather(*(start() for _ in range(STARTERS)))
    while not all(run.first or run.error for run in runs):  # noqa: ASYNC110
        await asyncio.sleep(0.2)
    return reading


def show(name: str, empty: Size, held: list[Size], streams: int) -> None:
    first, last = held[0], held[-1]
    each = (first.rss_mib - empty.rss_mib) * 1024 / streams
    growth = 100 * (last.rss_mib / first.rss_mib - 1)
    over_time = " → ".join(f"{size.rss_mib:.0f}" for size in held)
    print(
        f"{name}: {empty.rss_mib:.0f} MiB empty, held {over_time} MiB: {each:.1f} KiB a stream, "
        f"growth {growth:+.1f} %; {first.files} → {last.files} files"
    )


def main(streams: int, seconds: float) -> None:
    allow_many_files()
    with running(say=_say, settings={"RUN_DEADLINE_S": "3600"}) as stack:
        uvloop.run(hold(stack, streams, seconds))


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


if __name__ == "__main__":
    given = [float(text) for text in sys.argv[1:]]
    main(*(int(given[0]) if given else 5_000, given[1] if len(given) > 1 else 60.0))
