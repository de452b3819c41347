"""What one run asks of PostgreSQL: every statement, how often a run sends it, and what it takes there.

    .venv/bin/python -m benchmarks.statements [RUNS] [CLIENTS]

Starts RUNS runs (400) of one token, CLIENTS (1) at a time, each read to its end, after some that are not
counted. Statements that come by themselves, whatever is asked, are counted for the same time before and
taken off. It needs a PostgreSQL of this machine that has `pg_stat_statements`.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psycopg
import uvloop

from benchmarks import load
from benchmarks.stack import Stack, running

PROMPT = "tokens=1 delay_ms=0"
WARM = 40
_CHECK = " FROM ONLY "
_EXTENSION = "CREATE EXTENSION IF NOT EXISTS pg_stat_statements"
_RESET = "SELECT pg_stat_statements_reset()"
_READ = """
SELECT regexp_replace(query, '\\s+', ' ', 'g'), sum(calls)::float8, sum(total_exec_time)::float8,
    sum(total_plan_time)::float8, sum(wal_bytes)::float8
FROM pg_stat_statements
WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND query NOT LIKE '%pg_stat_%' GROUP BY 1
"""
_COMMITS = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"


@dataclass(frozen=True)
class Use:
    """How often a statement was sent; milliseconds in the server, and bytes of WAL, of all calls."""

    calls: float = 0
    ms: float = 0
    plan_ms: float = 0
    wal: float = 0

    def minus(self, other: Use) -> Use:
        return Use(
            max(0.0, self.calls - other.calls),
            max(0.0, self.ms - other.ms),
            max(0.0, self.plan_ms - other.plan_ms),
            max(0.0, self.wal - other.wal),
        )


async def run_all(stack: Stack, runs: int, clients: int) -> None:
    target, left = load.parley(stack.web_port, stack.token, "bench"), iter(range(runs))

    async def client() -> None:
        for _ in left:
            run = await load.run_once(target, PROMPT, limit_s=60)
            if run.error:
                sys.exit(f"statements: {run.error}")

    await asyncio.gather(*(client() for _ in range(clients)))


def used(connection: psycopg.Connection) -> dict[str, Use]:
    return {text: Use(*figures) for text, *figures in connection.execute(_READ).fetchall()}


def show(counted: Mapping[str, Use], runs: int) -> None:
    """Print what was sent about once a run; foreign keys are checked inside the server."""
    own = {text: use for text, use in counted.items() if use.calls >= 0.05 * runs}
    print("| calls a run | ms a call | ms a run | WAL bytes a run | statement |")
    print("|" + " --- |" * 5)
    for text, use in sorted(own.items(), key=lambda one: -one[1].ms):
        figures = f"{use.calls / runs:.2f} | {use.ms / use.calls:.3f} | {use.ms / runs:.3f}"
        print(f"| {figures} | {use.wal / runs:,.0f} | `{text.strip()[:100]}` |")
    sent = sum(use.calls for text, use in own.items() if _CHECK not in text) / runs
    checked = sum(use.calls for use in own.values()) / runs - sent
    ms = sum(use.ms for use in own.values()) / runs
    print(
        f"\n{sent:.1f} statements a run, {checked:.0f} foreign keys checked, {ms:.2f} ms in the server"
    )


def can_count() -> bool:
    """Whether PostgreSQL is installed here with `pg_stat_statements`."""
    return any(Path("/usr/share/postgresql").glob("*/extension/pg_stat_statements.control"))


def main(runs: int, clients: int) -> None:
    with (
        running(say=lambda _: None, counts_statements=True) as stack,
        psycopg.connect(stack.database_url, autocommit=True) as connection,
    ):
        connection.execute(_EXTENSION)
        uvloop.run(run_all(stack, WARM, clients))
        time.sleep(2)
        connection.execute(_RESET)
        begun = time.monotonic()
        uvloop.run(run_all(stack, runs, clients))
        took, busy = time.monotonic() - begun, used(connection)
        connection.execute(_RESET)
        time.sleep(took)
        quiet = used(connection)
        print(f"{runs} runs of one token, {clients} at a time, {took:.1f} s")
        show({text: use.minus(quiet.get(text, Use())) for text, use in busy.items()}, runs)


if __name__ == "__main__":
    main(*(int(given) for given in (sys.argv[1:] + ["400", "1"][len(sys.argv) - 1 :])))
