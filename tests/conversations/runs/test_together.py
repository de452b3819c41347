"""Runs that start or end at the same moment share a statement, and nothing else."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.auth import get_user_model
from django.utils import timezone
from psycopg import DatabaseError, IntegrityError

from config.database import connection, run_sync
from conversations import events
from conversations.events import RunEvent, Usage
from conversations.identifiers import uuid7
from conversations.log.transcript import fold
from conversations.models import EventBatch, Message, Run, Spend, Thread
from conversations.runs import acceptance, endings
from conversations.runs.end_sql import Ended, Ending, end_together
from tests.support.client import Client

User = get_user_model()
SCANNED = "SELECT relname, seq_scan FROM pg_stat_xact_user_tables WHERE seq_scan > 0 ORDER BY relname"
"""The tables that the connection has read from end to end in this second, and how often."""


def running(owner: Any, *, stored: bool = True) -> Run:
    """A run that a worker holds, which no worker of this test has."""
    made: Run = Run.objects.create(
        id=uuid7(),
        owner=owner,
        thread=Thread.objects.create(owner=owner, last_seq=1),
        thread_seq=1,
        request_id="r",
        dialect="text",
        model="m",
        request={},
        status="running",
        worker="elsewhere",
        fence=3,
        stored=stored,
        lease_until=timezone.now() + timedelta(minutes=5),
        deadline_at=timezone.now() + timedelta(minutes=5),
        deadline_s=300,
    )
    return made


def ending(run: Run, said: str, *, cost: str = "0.25") -> Ending:
    facts: list[events.Fact] = [events.RunQueued(0), events.RunStarted(1, 0)]
    facts += [events.MessageDelta("m1", said)]
    told = fold(run.id, [RunEvent(seq, 7, fact) for seq, fact in enumerate(facts, 1)])
    done = events.RunCompleted("stop", Usage(10, 5, cost_usd=Decimal(cost)))
    return endings.compose_ending(told, done, fence=run.fence, after=3)


def end(*these: Ending) -> list[Ended | None]:
    async def write() -> list[Ended | None]:
        return await asyncio.gather(*map(endings.write_ending, these))

    return run_sync(write())


def answer_of(run: Run) -> str:
    said: str = Message.objects.get(run=run, role="assistant").content
    return said


def test_runs_that_end_together_are_whole_each_by_itself(client: Client) -> None:
    other = User.objects.create_user(uuid4().hex)
    runs = [running(client.user), running(other), running(client.user), running(other, stored=False)]
    texts = ["one", 'two "quoted" \\ 中文', "three", "unseen"]
    lost = running(client.user)
    made = [ending(run, text) for run, text in zip(runs, texts, strict=True)]
    Run.objects.filter(pk=lost.pk).update(fence=4)
    assert [one is not None for one in end(*made, ending(lost, "late"))] == [True] * 4 + [False]
    assert [answer_of(run) for run in runs[:3]] == texts[:3]
    assert not Message.objects.filter(run__in=[runs[3], lost]).exists()
    for run, one in zip(runs, made, strict=True):
        run.refresh_from_db()
        run.thread.refresh_from_db()
        assert (run.status, run.last_seq, run.cost_usd) == (
            "completed",
            one.batch.last_seq,
            Decimal("0.25"),
        )
        assert run.thread.last_seq == (2 if run.stored else 1)
        last = EventBatch.objects.get(run_id=run.id, first_seq=one.batch.first_seq)
        assert last.events == json.loads(one.batch.text)
    for owner in (client.user, other):
        spent = Spend.objects.filter(owner=owner)
        assert sum(day.runs for day in spent) == 2
        assert sum((day.cost_usd or Decimal()) for day in spent) == Decimal("0.5")


def test_what_ends_runs_reads_no_table_from_end_to_end(client: Client) -> None:
    """Nor on a new database, whose small tables PostgreSQL would read so until its first ANALYZE."""
    runs = [running(client.user), running(client.user)]
    made = [(one, [uuid7() for _ in one.messages]) for one in (ending(run, "said") for run in runs)]

    async def play() -> None:
        async with connection() as held, held.transaction():
            before = await (await held.execute(SCANNED)).fetchall()
            assert len(await end_together(held, made)) == 2
            assert await (await held.execute(SCANNED)).fetchall() == before

    run_sync(play())


@pytest.mark.parametrize("table", ["thread", "run"])
def test_a_row_that_is_locked_delays_only_its_own_run(client: Client, table: str) -> None:
    """A process that froze in a transaction holds the lock for ten seconds."""
    runs = [running(client.user), running(client.user)]
    made = [ending(run, "said") for run in runs]
    locked = runs[0].thread_id if table == "thread" else runs[0].id

    async def play() -> None:
        async with connection() as locking, locking.transaction():
            await locking.execute(
                f"SELECT FROM conversations_{table} WHERE id = %s FOR UPDATE", (locked,)
            )
            held, free = (asyncio.ensure_future(endings.write_ending(one)) for one in made)
            async with asyncio.timeout(2):
                assert await free is not None
            assert not held.done()
        assert await held is not None

    run_sync(play())
    assert [answer_of(run) for run in runs] == ["said", "said"]


def test_an_ending_that_is_refused_costs_the_others_nothing(client: Client) -> None:
    """Its messages are left out, as if it had been alone."""
    runs = [running(client.user), running(client.user)]
    good, bad = (ending(run, "said") for run in runs)
    bad.messages[0].__dict__["metadata"] = '{"no": "such\\u0000text"}'

    async def refused() -> None:
        async with connection() as held:
            with pytest.raises(DatabaseError):
                await end_together(held, [(bad, [uuid7() for _ in bad.messages])])

    run_sync(refused())
    assert None not in end(good, bad)
    assert answer_of(runs[0]) == "said"
    assert not Message.objects.filter(run=runs[1]).exists()
    assert set(Run.objects.filter(pk__in=[run.pk for run in runs]).values_list("status", flat=True)) == {
        "completed"
    }


def start_row(owner_id: UUID, text: str, request: Any) -> dict[str, Any]:
    thread_id, run_id = uuid4(), uuid7()
    message = {"id": uuid7(), "owner_id": owner_id, "thread_id": thread_id, "run_id": run_id, "seq": 1}
    return {
        "run_id": run_id,
        "owner_id": owner_id,
        "thread_id": thread_id,
        "title": text,
        "count": 1,
        "client_run_id": None,
        "digest": "d",
        "request_id": "r",
        "dialect": "text",
        "model": "global:demo",
        "request": json.dumps(request),
        "stored": True,
        "queue_limit_s": 60.0,
        "deadline_s": 60,
        "messages": [
            message | {"role": "user", "content": text, "client_id": None, "metadata": {"run": text}}
        ],
    }


def test_runs_that_start_together_have_a_thread_each_or_the_error_that_is_theirs(client: Client) -> None:
    request = Run.objects.get(pk=client.start("hello", model="demo")["run_id"]).request
    owners = [client.user.id, uuid4(), client.user.id]
    rows = [start_row(owner, text, request) for owner, text in zip(owners, "abc", strict=True)]

    async def start() -> list[Any]:
        calls = map(acceptance.insert_in_new_thread, rows)
        return await asyncio.gather(*calls, return_exceptions=True)

    first, refused, last = run_sync(start())
    assert isinstance(refused, IntegrityError)
    for row, written in ((rows[0], first), (rows[2], last)):
        run = Run.objects.get(pk=row["run_id"])
        thread = Thread.objects.get(pk=row["thread_id"])
        assert (run.thread_id, run.thread_seq, run.request) == (thread.id, 1, request)
        assert (thread.title, thread.head_run_id) == (row["title"], run.id)
        said = Message.objects.get(run=run, role="user")
        assert (said.seq, said.content, said.metadata) == (1, row["title"], {"run": row["title"]})
        queued = EventBatch.objects.get(run_id=run.id, first_seq=1)
        stored: Any = queued.events
        assert json.loads(written.events) == stored
        assert stored[0][1] == {"type": "run.queued", "position": 0}
        assert written.created_at_ms == int(run.created_at.timestamp() * 1000)
    assert not Thread.objects.filter(pk=rows[1]["thread_id"]).exists()
