"""Very many short runs: what the processes and the database hold must not grow with them.

    .venv/bin/python -m benchmarks.short_runs [RUNS] [CLIENTS]

Starts RUNS runs (100,000) of five tokens, CLIENTS (16) at a time, each read to its end and compared.
A tenth of the way, and nine more times, it reads memory, open files, the connections of the database
and the rows of every table. Tables that grow by a row or more a run are what runs are kept in; every
other is named if it has grown. At last it waits until all runs are folded.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import psutil
import psycopg
import uvloop

from benchmarks import load
from benchmarks.measure import Faults, Spread
from benchmarks.stack import Stack, running
from benchmarks.streams import Size
from config.process.server import allow_many_files

TOKENS = 5
PROMPT = f"tokens={TOKENS} delay_ms=0"
LOOKS = 10
LIMIT_S = 60.0
FOLDED_S = 300.0
_TABLES = """
SELECT relname FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE nspname = 'public' AND relkind IN ('r', 'p') AND NOT relispartition ORDER BY relname
"""
_CONNECTIONS = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
_UNFOLDED = "SELECT count(*) FROM conversations_run WHERE NOT folded"


@dataclass(frozen=True)
class Look:
    """What is held after so many runs."""

    runs: int
    parts: Mapping[str, Size]
    connections: int
    rows: Mapping[str, int]

    def line(self, seconds: float) -> str:
        held = ", ".join(
            f"{name} {size.rss_mib:.0f} MiB {size.files} files" for name, size in self.parts.items()
        )
        return f"{self.runs:>7,} runs, {seconds:>5.0f} s: {held}; {self.connections} connections"


class Watch:
    """Looks at the stack's processes and into its database."""

    def __init__(self, stack: Stack, connection: psycopg.Connection) -> None:
        self._parts = dict(_named(stack.pids))
        self._connection = connection
        self._tables = [name for (name,) in connection.execute(_TABLES)]

    def look(self, runs: int) -> Look:
        parts = {name: Size.of(pid) for name, pid in self._parts.items()}
        rows = {name: self._number(f'SELECT count(*) FROM "{name}"') for name in self._tables}
        return Look(runs, parts, self._number(_CONNECTIONS) - 1, rows)

    def unfolded(self) -> int:
        return self._number(_UNFOLDED)

    def _number(self, statement: str) -> int:
        row = self._connection.execute(statement.encode()).fetchone()
        return int(row[0]) if row else 0


def _named(pids: Iterable[int]) -> Iterator[tuple[str, int]]:
    """Parley's own processes by their command: web, worker, beat."""
    for pid in pids:
        words = psutil.Process(pid).cmdline()
        if "manage.py" in words:
            yield words[words.index("manage.py") + 1], pid


async def run_all(stack: Stack, watch: Watch, runs: int, clients: int) -> list[Look]:
    """Every run, with a look at each tenth; what went wrong and how long runs took is printed."""
    target = load.parley(stack.web_port, stack.token, "bench")
    left, begun = iter(range(runs)), time.perf_counter()
    looks: list[Look] = []
    totals: list[float] = []
    errors: Counter[str] = Counter()
    wrong: Counter[str] = Counter()

    async def client() -> None:
        for _ in left:
            run = await load.run_once(target, PROMPT, limit_s=LIMIT_S)
            totals.append(run.total)
            if run.error:
                errors[run.error[:60]] += 1
            else:
                wrong.update(vars(Faults.of([run], TOKENS)))

    async def look_on() -> None:
        for tenth in range(1, LOOKS + 1):
            while len(totals) < runs * tenth // LOOKS:  # noqa: ASYNC110
                await asyncio.sleep(0.2)
            looks.append(await asyncio.to_thread(watch.look, len(totals)))
            print(looks[-1].line(time.perf_counter() - begun), flush=True)

    await asyncio.gather(look_on(), *(client() for _ in range(clients)))
    took = time.perf_counter() - begun
    spread = Spread.of(totals)
    print(f"{runs:,} runs in {took:.0f} s, {runs / took:.0f} a second, total p50 {spread.p50:g} ms, ")
    print(f"p99 {spread.p99:g} ms; errors {dict(errors)}, {dict(wrong)}")
    return looks


def growth(first: Look, last: Look) -> Iterator[str]:
    """What the last look shows more of than the first."""
    for name, size in first.parts.items():
        now = last.parts[name]
        more = 100 * (now.rss_mib / size.rss_mib - 1)
        memory = f"{size.rss_mib} → {now.rss_mib} MiB, {more:+.1f} %"
        yield f"{name}: {memory}; {size.files} → {now.files} files"
    yield f"connections: {first.connections} → {last.connections}"
    runs = last.runs - first.runs
    for name, number in first.rows.items():
        if more_rows := last.rows[name] - number:
            yield f"rows of {name}: {number:,} → {last.rows[name]:,} ({more_rows / runs:+.4f} a run)"


def folded(watch: Watch, runs: int) -> str:
    """Wait until upkeep has folded all runs; what is left of their logs."""
    since = time.monotonic()
    while watch.unfolded() and time.monotonic() - since < FOLDED_S:
        time.sleep(1)
    rows = watch.look(runs).rows["conversations_eventbatch"]
    waited = time.monotonic() - since
    return (
        f"{watch.unfolded()} not folded {waited:.0f} s after the last; {rows / runs:.2f} batches a run"
    )


def main(runs: int, clients: int) -> None:
    allow_many_files()
    with (
        running(say=_say) as stack,
        psycopg.connect(stack.database_url, autocommit=True) as connection,
    ):
        watch = Watch(stack, connection)
        looks = uvloop.run(run_all(stack, watch, runs, clients))
        print("\n".join(growth(looks[0], looks[-1])))
        print(folded(watch, runs))


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(*(int(given) for given in (sys.argv[1:] + ["100000", "16"][len(sys.argv) - 1 :])))
