"""What several fault tests do: start many runs, find who holds them, wait for their end."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import repeat
from typing import Any, Final, Protocol
from uuid import UUID

import httpx
import psycopg

from benchmarks import load
from tests.faults import ledger
from tests.faults.clients import Caller, Reader, session
from tests.faults.ledger import Findings
from tests.faults.stack import Part, Stack, wait_until
from tests.support.client import Seen

SETTLE_S: Final = 20.0
_SAID: Final = """
SELECT count(DISTINCT run_id) AS n FROM conversations_eventbatch
WHERE run_id = ANY(%s) AND events::text LIKE %s
"""


class Place(Protocol):
    """Where web processes answer."""

    host: str
    port: int


class Postgres(Protocol):
    """A PostgreSQL of which somebody keeps the books."""

    def connect(self) -> psycopg.Connection[Any]:
        """A connection of the test's own, in autocommit, rows by name."""


@asynccontextmanager
async def client(stack: Stack) -> AsyncIterator[Caller]:
    """A caller on a session of its own."""
    async with session(stack.token) as http:
        yield Caller(http, stack.url)


def numbered(tokens: int, delay_ms: int) -> str:
    """The prompt that makes the model `bench` say so many tokens."""
    return f"tokens={tokens} delay_ms={delay_ms}"


async def start_many(
    caller: Caller, count: int, text: str, model: str = "bench", **more: Any
) -> list[str]:
    """So many runs at once, each on a thread of its own; their ids."""
    accepted = await asyncio.gather(*(caller.start(text, model, **more) for _ in range(count)))
    return [one["run_id"] for one in accepted]


async def cancel(stack: Stack, run_ids: Iterable[str]) -> None:
    """Cancel all of them at once, each on a plain connection: a pool's bookkeeping for so many costs
    more than the cancelling, and would be most of what is timed."""
    await asyncio.gather(
        *(
            load.fetch(stack.port, load.Call(f"/api/v1/agent/runs/{run_id}/cancel", {}, stack.token))
            for run_id in run_ids
        )
    )


class Books:
    """A look into the stack's database, on a connection that survives its restarts."""

    def __init__(self, stack: Stack | Postgres) -> None:
        self._postgres: Postgres = stack.postgres if isinstance(stack, Stack) else stack
        self._connection: psycopg.Connection[Any] | None = None

    def __enter__(self) -> Books:
        return self

    def __exit__(self, *_: object) -> None:
        if self._connection is not None:
            self._connection.close()

    @property
    def connection(self) -> psycopg.Connection[Any]:
        if self._connection is None or self._connection.closed:
            self._connection = self._postgres.connect()
        return self._connection

    async def settled(self, run_ids: Iterable[str], *, within_s: float) -> float:
        """Wait until none of the runs is live; the seconds it took."""
        ids = list(run_ids)
        return await self._until(
            lambda: ledger.unsettled(self.connection, ids) == 0,
            within_s,
            lambda: f"{ledger.unsettled(self.connection, ids)} of {len(ids)} runs to end",
        )

    async def all_say(self, run_ids: Iterable[str], type_: str, *, within_s: float = 10) -> float:
        """Wait until every run has an event of this type."""
        ids = [UUID(run_id) for run_id in run_ids]

        def saying() -> int:
            row = self.connection.execute(_SAID, [ids, f'%"type"%:%"{type_}%']).fetchone()
            return int(row.n) if row else 0

        return await self._until(
            lambda: saying() == len(ids), within_s, lambda: f"{type_} in {len(ids)} runs"
        )

    async def _until(self, ready: Callable[[], bool], within_s: float, what: Callable[[], str]) -> float:
        since = time.monotonic()
        while not ready():
            assert time.monotonic() - since < within_s, f"waited {within_s:g} s for {what()}"
            await asyncio.sleep(0.05)
        return time.monotonic() - since

    def rows(self, run_ids: Iterable[str]) -> list[Any]:
        """The runs' rows."""
        ids = [UUID(run_id) for run_id in run_ids]
        return self.connection.execute(
            "SELECT * FROM conversations_run WHERE id = ANY(%s)", [ids]
        ).fetchall()

    def held_by(self, part: Part, run_ids: Iterable[str]) -> list[str]:
        """Those of the runs that this worker is executing."""
        return [
            row.id.hex
            for row in self.rows(run_ids)
            if row.status == "running" and row.worker.split(":")[1] == str(part.pid)
        ]

    def examine(self, run_ids: Iterable[str]) -> Findings:
        return ledger.examine(self.connection, run_ids)


def seconds_since(moment: datetime, rows: Iterable[Any]) -> list[float]:
    """From the moment to each run's end."""
    return [(row.finished_at - moment).total_seconds() for row in rows]


def now() -> datetime:
    return datetime.now(UTC)


async def compare(stack: Place, http: httpx.AsyncClient, readers: Sequence[Reader]) -> Counter[str]:
    """What each reader got against what a reader gets who comes after the end."""
    wanted: dict[str, list[Seen]] = {}
    faults: Counter[str] = Counter()
    for reader in readers:
        if reader.run_id not in wanted:
            wanted[reader.run_id] = await replay(http, stack, reader.run_id)
        faults["stream differs from the replay"] += reader.frames != wanted[reader.run_id]
        faults["frame sent again"] += reader.repeated
    return +faults


def otherwise(found: Findings, wanted: str) -> Counter[str]:
    """The runs that did not end like this."""
    return Counter({f"ended {end}": number for end, number in found.ends.items() if end != wanted})


async def played(stack: Stack, script: str) -> None:
    """Wait until the scripted provider has given every answer of the script but the last."""
    await asyncio.to_thread(
        wait_until, lambda: stack.scripted.answers_left(script) == 1, seconds=10, what=f"script:{script}"
    )


async def replay(http: httpx.AsyncClient, stack: Place, run_id: str) -> list[Seen]:
    """The run's frames as a reader gets them who comes after the end."""
    return await Reader(http, stack.port, run_id, hosts=repeat(stack.host)).read(within_s=30)
