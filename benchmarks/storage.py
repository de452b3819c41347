"""What a run costs to keep: bytes a run on disk and of WAL, before folding, after it, and packed.

    .venv/bin/python -m benchmarks.storage [RUNS] [ROUNDS]

Runs go through the real statements (start, claim, append, end), 200 deltas each, a batch a delta,
50 at once. Each round is folded and vacuumed, as upkeep and autovacuum do, so that the later rounds
show the steady state. A DATABASE_URL must be of a database that nothing else writes to: WAL is counted
for all of it.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from typing import Any, Final
from uuid import UUID, uuid4

from django.db import connection as sync_connection

from benchmarks.scratch import scratch_database

TOKENS: Final = 200
AT_ONCE: Final = 50
TABLES: Final = ("eventbatch", "run", "message", "thread")
_SIZES: Final = """
SELECT coalesce(sum(pg_table_size(relid)), 0)::bigint, coalesce(sum(pg_indexes_size(relid)), 0)::bigint
FROM (SELECT %s::regclass AS relid UNION SELECT inhrelid FROM pg_inherits WHERE inhparent = %s::regclass)
    AS tables
"""


async def write(count: int, owner_id: UUID) -> list[UUID]:
    """Write runs of 200 tokens, ended; their ids. The claims must find no other run."""
    from agents.intake import submit
    from agents.requests import InputMessage, RunRequest
    from agents.worker.loop import HOLDER
    from conversations import events
    from conversations.log import event_log, transcript
    from conversations.runs import endings, leases
    from conversations.runs.load_shedding import load

    writer = event_log.Writer()
    writing = asyncio.create_task(writer.run())
    ids: list[UUID] = []
    for _ in range(count // AT_ONCE):
        await load.count()
        for number in range(AT_ONCE):
            asked = RunRequest(
                "text", "demo", (InputMessage("user", f"question {number}"),), f"request-{number}"
            )
            await submit.start_run(asked, owner_id=owner_id, thread_id=uuid4())
        claimed = await leases.claim(
            worker="bench",
            limit=AT_ONCE,
            lease_s=300,
            prompt_versions="[]",
            split=False,
            holder=HOLDER,
        )
        taken = [run for run, _ in claimed]
        assert len(taken) == AT_ONCE
        logs = [writer.open(one.run_id, fence=one.fence, last_seq=one.last_seq) for one in taken]
        folds = [transcript.Transcript(one.run_id) for one in taken]
        facts: list[events.Fact] = [
            events.ModelRouted("openai", "gpt-4o", 1),
            events.StageStarted("execution"),
        ]
        facts += [events.MessageDelta("m1", f" word{n % 90}") for n in range(TOKENS)]
        for fact in facts:
            for run_log, fold in zip(logs, folds, strict=True):
                fold.feed(run_log.append(fact))
            await asyncio.gather(*(run_log.drain() for run_log in logs))
        for one, run_log, fold in zip(taken, logs, folds, strict=True):
            done = events.RunCompleted("stop", events.Usage(12, TOKENS))
            ending = endings.compose_ending(fold, done, fence=one.fence, after=run_log.last_seq)
            assert await endings.write_ending(ending)
        ids += [one.run_id for one in taken]
    writing.cancel()
    return ids


async def fold(ids: list[UUID]) -> None:
    from conversations.log import fold as folding

    for start in range(0, len(ids), folding.AT_ONCE):
        await folding.fold_runs(ids[start : start + folding.AT_ONCE])


def sizes() -> dict[str, int]:
    """Bytes of table (with TOAST) and of indexes, by name, and `all`."""
    found: dict[str, int] = {}
    with sync_connection.cursor() as cursor:
        for name in TABLES:
            cursor.execute(_SIZES, [f"conversations_{name}"] * 2)
            found[name], found[f"{name} indexes"] = cursor.fetchone()
    return found | {"all": sum(found.values())}


def wal() -> int:
    with sync_connection.cursor() as cursor:
        cursor.execute("SELECT pg_current_wal_insert_lsn() - '0/0'")
        return int(cursor.fetchone()[0])


def vacuum(*, full: bool = False) -> None:
    with sync_connection.cursor() as cursor:
        for name in TABLES:
            cursor.execute(f"VACUUM ({'FULL, ' if full else ''}ANALYZE) conversations_{name}")


def payload(ids: list[UUID]) -> dict[str, int]:
    """Bytes of rows as stored (compressed where it is), without pages, free room and indexes."""
    found = {}
    with sync_connection.cursor() as cursor:
        for name, key in (("eventbatch", "run_id"), ("run", "id"), ("message", "run_id")):
            cursor.execute(
                f"SELECT sum(pg_column_size(t.*)), count(*) FROM conversations_{name} t "
                f"WHERE {key} = ANY(%s)",
                [ids],
            )
            size, rows = cursor.fetchone()
            found[f"{name} ({rows / len(ids):.0f} rows)"] = int(size or 0)
    return found


def lines(
    title: str, count: int, now: dict[str, int], before: dict[str, int] | None = None
) -> Iterator[str]:
    yield title
    for name, size in now.items():
        yield f"  {name:<24} {(size - (before or {}).get(name, 0)) / count:>10,.0f} bytes a run"


def say(*said: Any) -> None:
    for some in said:
        print("\n".join(some) if not isinstance(some, str) else some, flush=True)


def main(runs: int, rounds: int) -> None:
    from config import database
    from config.auth.models import User
    from conversations.log import partitions
    from prompts import seeds

    seeds.seed()
    owner, _ = User.objects.get_or_create(username="storage-benchmark")
    vacuum()
    begun = sizes()
    for number in range(1, rounds + 1):
        before, since = sizes(), wal()
        ids = database.run_sync(write(runs, owner.pk))
        written, until = sizes(), wal()
        shown = number in (1, rounds)
        if shown:
            say(lines(f"round {number}, written", runs, written, before))
            say(lines("rows as stored", runs, payload(ids)))
        database.run_sync(fold(ids))
        folded_wal = wal()
        vacuum()
        if shown:
            say(lines("rows as stored, folded", runs, payload(ids)))
        say(lines(f"round {number}, folded and vacuumed: growth", runs, sizes(), before))
        say(
            f"  WAL written {(until - since) / runs:,.0f}, folding {(folded_wal - until) / runs:,.0f}, "
            f"vacuum {(wal() - folded_wal) / runs:,.0f} bytes a run"
        )
    say(lines(f"all {rounds} rounds, folded and vacuumed", runs * rounds, sizes(), begun))
    partitions._packed_at = -1e9
    say(f"packed: {database.run_sync(partitions.rebuild_sparse_index(larger_than=0))}")
    say(lines("packed", runs * rounds, sizes(), begun))
    vacuum(full=True)
    say(lines("VACUUM FULL (what no bloat would be)", runs * rounds, sizes(), begun))


if __name__ == "__main__":
    with scratch_database():
        main(*(int(given) for given in (sys.argv[1:] + ["1000", "4"][len(sys.argv) - 1 :])))
