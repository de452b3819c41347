"""One measurement: many clients load a target for some seconds, and what that costs its processes.

The text of a run is compared with what the model sent; only when they differ are the tokens looked
at one by one.
"""

from __future__ import annotations

import asyncio
import math
import re
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import psutil

from benchmarks.load import Run, Target, run_once

TOKEN = re.compile(rb"t(\d+) ")
WARM_UP = "tokens=20 delay_ms=0"
WARM_UP_RUNS = 2
NOISE_SHARE = 0.25
MIB = 1024 * 1024


@dataclass(frozen=True)
class Cell:
    """One measurement of the matrix: so many clients, each run so many tokens, so far apart.

    Each client makes at least `least_runs`: a median of one client's two runs would say nothing.
    """

    clients: int
    delay_ms: int
    tokens: int = 200
    least_runs: int = 1

    @property
    def name(self) -> str:
        return f"{self.clients}x{self.delay_ms}" + ("" if self.tokens == 200 else f"x{self.tokens}")

    @property
    def ideal_s(self) -> float:
        """How long a run takes where the model's pace is all that counts."""
        return (self.tokens - 1) * self.delay_ms / 1000

    def has_another(self, made: int, *, left_s: float) -> bool:
        """Whether a client that has made so many runs begins another when so much of the time is left.

        Only while half of one still fits: otherwise one straggler could begin in the last moment and
        double the wall clock of a paced cell.
        """
        return made < self.least_runs or left_s > self.ideal_s / 2

    @property
    def prompt(self) -> str:
        return f"tokens={self.tokens} delay_ms={self.delay_ms}"


@dataclass(frozen=True)
class Spread:
    """Median and 99th percentile, in milliseconds."""

    p50: float
    p99: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Spread:
        """The 99th by nearest rank; 0 when there is nothing to measure."""
        ordered = sorted(seconds) or [0.0]
        last = ordered[math.ceil(0.99 * len(ordered)) - 1]
        return cls(round(1000 * statistics.median(ordered), 2), round(1000 * last, 2))


@dataclass(frozen=True)
class Faults:
    """How received texts differ from the ones that the model sent; all zero is the only good value."""

    lost: int
    doubled: int
    reordered: int
    garbled: int

    @classmethod
    def of(cls, runs: Sequence[Run], tokens: int) -> Faults:
        """Tokens lost and doubled; runs out of order, and runs with other text between the tokens."""
        sent = b"".join(b"t%d " % index for index in range(tokens))
        wrong = [[int(n) for n in TOKEN.findall(run.text)] for run in runs if run.text != sent]
        return cls(
            lost=sum(len(set(range(tokens)).difference(found)) for found in wrong),
            doubled=sum(len(found) - len(set(found)) for found in wrong),
            reordered=sum(found != sorted(found) for found in wrong),
            garbled=sum(found == list(range(tokens)) for found in wrong),
        )


@dataclass(frozen=True)
class Cost:
    """What a measurement took: of the server's processes, of this client, and of strangers."""

    wall_s: float
    server_cpu_s: float
    client_cpu_s: float
    strangers_cpu_s: float
    rss_mib: float
    pss_mib: float
    processes: int
    cpu_s_of: dict[str, float] = field(default_factory=dict)
    """Of each process of the server with its descendants, by its name."""

    @property
    def strangers_share(self) -> float:
        """How much of one core others took."""
        return self.strangers_cpu_s / self.wall_s

    @property
    def noisy(self) -> bool:
        """Whether others took so much of the machine that the figures say little."""
        return self.strangers_share > NOISE_SHARE


@dataclass(frozen=True)
class Result:
    """One row: what a cell measured on one target. Errors are counted by their text."""

    target: str
    cell: Cell
    runs: int
    accept: Spread
    first: Spread
    total: Spread
    deltas_per_s: float
    runs_per_s: float
    cpu_s_per_1000: float
    tokens_per_frame: float
    faults: Faults
    errors: dict[str, int]
    cost: Cost
    tries: int = 1

    @property
    def cpu_ms_of(self) -> dict[str, float]:
        """Milliseconds of CPU a run of each process that took any, by its name."""
        found = {name: 1000 * cpu_s / max(1, self.runs) for name, cpu_s in self.cost.cpu_s_of.items()}
        return {name: ms for name, ms in found.items() if ms >= 0.005}


class Tree:
    """The processes that serve a target: the ones given and all their descendants."""

    def __init__(self, pids: Sequence[int]) -> None:
        self.roots = [psutil.Process(pid) for pid in pids]

    def processes(self) -> list[psutil.Process]:
        found = {process.pid: process for root in self.roots for process in (root, *_children(root))}
        return list(found.values())

    def cpu_s(self) -> float:
        """User and system seconds until now, those of children that have ended included."""
        return sum(sum(_cpu_times(process)) for process in self.processes())

    def cpu_s_of(self) -> dict[str, float]:
        """The same of each process that was given, with its descendants, by its name."""
        return {
            name_process(root): sum(sum(_cpu_times(process)) for process in (root, *_children(root)))
            for root in self.roots
        }

    def memory_mib(self) -> tuple[float, float]:
        """(RSS, PSS): PSS counts a page that n processes share as 1/n each, as PostgreSQL's do."""
        sizes = [_memory(process) for process in self.processes()]
        return sum(rss for rss, _ in sizes) / MIB, sum(pss for _, pss in sizes) / MIB


def name_process(process: psutil.Process) -> str:
    """`web`, `worker`, `serve` and so on for those of ours, else the program's name."""
    words = process.cmdline()
    return words[words.index("manage.py") + 1] if "manage.py" in words else process.name()


def _children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _cpu_times(process: psutil.Process) -> tuple[float, ...]:
    try:
        return tuple(process.cpu_times()[:4])  # user, system, and both of ended children
    except psutil.NoSuchProcess:
        return ()


def _memory(process: psutil.Process) -> tuple[int, int]:
    try:
        full = process.memory_full_info()
    except psutil.Error:
        return 0, 0
    return full.rss, full.pss


class Meter:
    """Reads the cost between its making and `read`; `bench` is every process of ours but this one."""

    def __init__(self, server: Tree, bench: Tree) -> None:
        self.server = server
        self.bench = bench
        self.start, self.start_of = self._clocks(), server.cpu_s_of()

    def read(self) -> Cost:
        wall_s, server, client, strangers = (
            now - then for now, then in zip(self._clocks(), self.start, strict=True)
        )
        rss, pss = self.server.memory_mib()
        return Cost(
            wall_s=max(0.001, round(wall_s, 3)),
            server_cpu_s=round(server, 3),
            client_cpu_s=round(client, 3),
            strangers_cpu_s=round(max(0.0, strangers), 3),
            rss_mib=round(rss, 1),
            pss_mib=round(pss, 1),
            processes=len(self.server.processes()),
            cpu_s_of={
                name: round(now - self.start_of.get(name, 0.0), 3)
                for name, now in self.server.cpu_s_of().items()
            },
        )

    def _clocks(self) -> tuple[float, float, float, float]:
        """Wall, and the CPU seconds of the server, of this process, and of strangers."""
        times, own = psutil.cpu_times(), time.process_time()
        busy = times.user + times.nice + times.system + times.irq + times.softirq
        return time.perf_counter(), self.server.cpu_s(), own, busy - own - self.bench.cpu_s()


async def measure(
    target: Target, cell: Cell, server: Tree, bench: Tree, *, seconds: float, limit_s: float
) -> Result:
    """Load the target for about so many seconds; a run that has begun is finished, within the limit.

    When a client begins another run is the cell's to say.
    """
    for _ in range(WARM_UP_RUNS):
        await run_once(target, WARM_UP, limit_s=limit_s)
    meter, began = Meter(server, bench), time.perf_counter()

    async def client() -> list[Run]:
        runs: list[Run] = []
        while cell.has_another(len(runs), left_s=began + seconds - time.perf_counter()):
            left_s = began + limit_s - time.perf_counter()
            runs.append(await run_once(target, cell.prompt, limit_s=left_s))
            if runs[-1].error:
                break  # a server that refuses everything must not be hammered
        return runs

    done = await asyncio.gather(*(client() for _ in range(cell.clients)))
    return summary(target, cell, [run for runs in done for run in runs], meter.read())


def summary(target: Target, cell: Cell, runs: list[Run], cost: Cost) -> Result:
    """The row of a measurement; latencies and faults are those of the runs without an error."""
    good = [run for run in runs if not run.error]
    deltas = sum(run.text.count(b" ") for run in runs)  # a space ends each token
    return Result(
        target=target.name,
        cell=cell,
        runs=len(runs),
        accept=Spread.of([run.accept for run in good]),
        first=Spread.of([run.first for run in good]),
        total=Spread.of([run.total for run in good]),
        deltas_per_s=round(deltas / cost.wall_s, 1),
        runs_per_s=round(len(good) / cost.wall_s, 2),
        cpu_s_per_1000=round(1000 * cost.server_cpu_s / max(1, deltas), 4),
        tokens_per_frame=round(deltas / max(1, sum(run.frames for run in runs)), 2),
        faults=Faults.of(good, cell.tokens),
        errors=dict(Counter(run.error for run in runs if run.error)),
        cost=cost,
    )
