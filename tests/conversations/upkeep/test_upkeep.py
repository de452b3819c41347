"""Folding, partitions and retention change where events lie, never what a reader gets (DESIGN §6)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any
from uuid import UUID, uuid4

import pytest
import websocket
from django.core.management import call_command
from django.db import connection, transaction
from django.utils import timezone

from agents.worker import tasks
from config import database
from config.celery import app
from config.database import run_sync
from conversations import events
from conversations.events import Fact, LaterFact, RunEvent
from conversations.identifiers import uuid7
from conversations.log import event_log, partitions
from conversations.log import fold as folding
from conversations.log.batches import make_batch
from conversations.models import EventBatch, Run, Thread
from conversations.runs import client_queries
from conversations.upkeep import retention
from conversations.upkeep.rounds import _LOCK, UpkeepResult, run_upkeep_round
from tests.support.client import Client

WEEK_MS = 7 * 86_400_000


def ended_run(client: Client, *, at_ms: int | None = None, **fields: Any) -> Run:
    """A row of a run that has ended; its events are the test's to write."""
    thread = Thread.objects.create(owner=client.user, last_seq=1)
    now = timezone.now()
    ended = {"status": "completed", "finished_at": now, "deadline_at": now, "last_seq": 1}
    return Run.objects.create(
        id=uuid7(at_ms),
        owner=client.user,
        thread=thread,
        thread_seq=1,
        request_id=uuid4().hex,
        dialect="text",
        model="global:demo",
        request={},
        deadline_s=1,
        **(ended | fields),
    )


def store(run_id: UUID, some: list[RunEvent], *, each: int = 1) -> None:
    """Write the events as batches of `each`."""
    batches = [make_batch(run_id, some[place : place + each]) for place in range(0, len(some), each)]
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO conversations_eventbatch VALUES (%s, %s, %s, %s)",
            [(run_id, batch.first_seq, batch.last_seq, batch.text) for batch in batches],
        )


def said(count: int) -> list[RunEvent]:
    """A run of `count` deltas, reasoning first, as a worker would have logged it."""
    facts: list[Fact] = [events.RunQueued(0), events.RunStarted(1, 5), events.StageStarted("execution")]
    facts += [events.ReasoningDelta("r", f"hm{n} ") for n in range(count // 4)]
    facts += [events.MessageDelta("m", f"word{n} ☃ ") for n in range(count)]
    text = "".join(f"word{n} ☃ " for n in range(count))
    facts.append(
        events.MessageCompleted(events.MessageBody("m", "assistant", text, {"a": [1, 2.5, None]}))
    )
    facts += [events.StageCompleted("execution", 9), events.RunCompleted("stop", events.Usage(1, count))]
    return [RunEvent(seq, 1_000_000 + 7 * seq, fact) for seq, fact in enumerate(facts, 1)]


def stored(run_id: UUID) -> list[RunEvent]:
    async def read() -> list[RunEvent]:
        return [event async for batch in event_log.read(run_id) for event in batch.events]

    return run_sync(read())


def spans(run_id: UUID) -> list[tuple[int, int]]:
    batches = EventBatch.objects.filter(run_id=run_id).order_by("first_seq")
    return list(batches.values_list("first_seq", "last_seq"))


def fold(*runs: Run | UUID) -> int:
    return run_sync(folding.fold_runs([run if isinstance(run, UUID) else run.id for run in runs]))


# --- folding ------------------------------------------------------------------------------------


def test_a_folded_run_is_one_row_with_the_same_events(client: Client) -> None:
    run, some = ended_run(client), said(200)
    store(run.id, some)
    assert len(spans(run.id)) == len(some)
    assert fold(run) == 1
    assert spans(run.id) == [(1, len(some))]
    assert stored(run.id) == some
    run.refresh_from_db()
    assert run.folded


def test_every_replay_and_resume_of_a_run_is_the_same_bytes_after_folding(client: Client) -> None:
    run_id = client.start("hello", enable_exercise_search=False)["run_id"]
    whole = client.watch(run_id)
    places = [None, *(frame.id for frame in whole if frame.id is not None)]

    def bodies() -> list[bytes]:
        path = f"/api/v1/agent/runs/{run_id}/events"
        headers: list[dict[str, str]] = [
            {} if place is None else {"Last-Event-ID": str(place)} for place in places
        ]
        polled = {"Accept": "application/json"}
        return [client.http.get(path, headers=header).content for header in headers] + [
            client.http.get(path, headers=polled, params={"after": place or 0}).content
            for place in places[::7]
        ]

    before, events_before = bodies(), stored(UUID(run_id))
    assert len(spans(UUID(run_id))) > 1
    assert fold(UUID(run_id)) == 1
    assert len(spans(UUID(run_id))) == 1
    assert stored(UUID(run_id)) == events_before
    assert bodies() == before


def test_a_reader_in_the_middle_of_its_pages_gets_no_gap_and_no_repeat_from_a_fold(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_log, "PAGE", 7)

    async def read(run_id: UUID, fold_after: int) -> list[RunEvent]:
        got: list[RunEvent] = []
        batches = 0
        async for batch in event_log.read(run_id):
            got += batch.after(got[-1].seq if got else 0)
            batches += 1
            if batches == fold_after:
                assert await folding.fold_runs([run_id]) == 1
        return got

    some = said(16)
    for fold_after in range(1, len(some), 3):
        run = ended_run(client)
        store(run.id, some)
        assert run_sync(read(run.id, fold_after)) == some


def test_a_large_run_folds_into_rows_of_bounded_size(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folding, "MOST_EVENTS", 50)
    monkeypatch.setattr(folding, "_PAGE", 64)
    run, some = ended_run(client), said(300)
    store(run.id, some, each=3)
    assert fold(run) == 1
    assert stored(run.id) == some
    sizes = [last - first + 1 for first, last in spans(run.id)]
    assert max(sizes) <= 50
    assert len(sizes) <= len(some) // 48 + 1

    monkeypatch.setattr(folding, "MOST_BYTES", 2_000)
    narrow = ended_run(client)
    store(narrow.id, some, each=3)
    assert fold(narrow) == 1
    assert stored(narrow.id) == some
    assert len(spans(narrow.id)) > len(sizes)


def test_many_runs_are_folded_together_and_twice_is_once(client: Client) -> None:
    runs = [ended_run(client) for _ in range(6)]
    for number, run in enumerate(runs):
        store(run.id, said(10 + number), each=1 + number)

    async def several() -> list[int]:
        return await asyncio.gather(*(folding.fold_runs([run.id for run in runs]) for _ in range(5)))

    assert sum(run_sync(several())) == 6
    assert fold(*runs) == 0
    for number, run in enumerate(runs):
        assert stored(run.id) == said(10 + number)
        assert len(spans(run.id)) == 1


def test_a_live_run_is_not_folded(client: Client) -> None:
    late = timezone.now() + timedelta(hours=1)
    held: dict[str, Any] = {
        "worker": "elsewhere",
        "attempt": 1,
        "fence": 1,
        "lease_until": late,
        "deadline_at": late,
    }
    run = ended_run(client, status="running", finished_at=None, **held)
    store(run.id, said(5)[:4])
    assert fold(run) == 0
    assert len(spans(run.id)) == 4
    Run.objects.filter(pk=run.pk).delete()


def test_a_gap_is_not_folded_over_and_what_cannot_be_read_stays(client: Client) -> None:
    holed, broken = ended_run(client), ended_run(client)
    some = said(10)
    store(holed.id, some[:4])
    store(holed.id, some[6:])
    store(broken.id, some[:2])
    with connection.cursor() as cursor:
        cursor.execute(
            'INSERT INTO conversations_eventbatch VALUES (%s, 3, 3, \'[[1, {"type": "run.queued"}]]\')',
            [broken.id],
        )
    assert fold(holed, broken) == 2
    assert spans(holed.id) == [(1, 4), (7, len(some))]
    assert spans(broken.id) == [(1, 1), (2, 2), (3, 3)]


def test_what_a_later_release_wrote_is_read_and_no_fold_loses_any_of_it(client: Client) -> None:
    """That release may run beside this one, which then folds its runs too."""
    kind, member = ended_run(client, last_seq=3), ended_run(client)
    some = [RunEvent(1, 5, events.RunQueued(0)), RunEvent(3, 7, events.RunCompleted("stop"))]
    for run, entry in ((kind, {"type": "mood.changed", "mood": "calm"}), (member, NEWER)):
        store(run.id, some[:1])
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO conversations_eventbatch VALUES (%s, 2, 2, %s)",
                [run.id, json.dumps([[6, entry]])],
            )
        store(run.id, some[1:])
    frames = client.watch(kind.id.hex)
    assert [(frame.id, frame.event) for frame in frames] == [(1, "status"), (3, "completed")]
    assert fold(kind, member) == 2
    assert spans(kind.id) == [(1, 3)]
    later = stored(kind.id)[1].fact
    assert isinstance(later, LaterFact)
    assert json.loads(later.stored) == {"type": "mood.changed", "mood": "calm"}
    assert spans(member.id) == [(1, 1), (2, 2), (3, 3)]


NEWER = {"type": "stage.started", "stage": "execution", "mood": "calm"}


def test_due_runs_are_those_that_ended_a_while_ago_and_no_older_transaction_is_left(
    client: Client, settings: Any
) -> None:
    settings.FOLD_AFTER_S = 3_600
    due = ended_run(client)
    store(due.id, said(5))

    async def fold_all() -> None:
        while await folding.fold_due():
            pass

    async def while_a_transaction_is_open() -> None:
        async with database.connection() as held, held.transaction():
            await held.execute("SELECT 1")
            await _end_at(due.id, "clock_timestamp()")
            settings.FOLD_AFTER_S = 0
            await folding.fold_due()
            settings.FOLD_AFTER_S = 3_600

    run_sync(while_a_transaction_is_open())
    assert len(spans(due.id)) > 1
    fresh = ended_run(client)
    store(fresh.id, said(5))
    run_sync(_end_at(due.id, "clock_timestamp() - interval '30 days'"))
    run_sync(fold_all())
    assert len(spans(due.id)) == 1
    assert len(spans(fresh.id)) > 1


async def _end_at(run_id: UUID, when: str) -> None:
    async with database.connection() as held:
        await held.execute(f"UPDATE conversations_run SET finished_at = {when} WHERE id = %s", (run_id,))


# --- partitions ---------------------------------------------------------------------------------


def test_weeks_begin_on_monday_and_leave_no_room_between_them() -> None:
    sunday = datetime(2026, 3, 1, 23, 59, tzinfo=UTC)
    found = partitions.weekly_partitions(sunday)
    assert [week.name[-8:] for week in found] == [
        "20260223", "20260302", "20260309", "20260316", "20260323",
    ]  # fmt: skip
    assert [week.upper for week in found[:-1]] == [week.lower for week in found[1:]]
    assert found[0].lower < uuid7(int(sunday.timestamp() * 1000)) < found[0].upper


def test_migrating_makes_the_partitions_and_new_runs_go_there(client: Client) -> None:
    names = {one.name for one in run_sync(partitions.list_partitions())}
    assert {week.name for week in partitions.weekly_partitions(datetime.now(UTC))} <= names
    run_id = client.start()["run_id"]
    client.watch(run_id)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT tableoid::regclass::text FROM conversations_eventbatch WHERE run_id = %s",
            [run_id],
        )
        assert cursor.fetchall() == [(partitions.weekly_partitions(datetime.now(UTC))[0].name,)]


@pytest.fixture
def far_week() -> Iterator[Callable[[int], datetime]]:
    """A week that no other test uses; its partitions are dropped afterwards."""
    used: list[datetime] = []

    def week(year: int) -> datetime:
        used.append(datetime(year, 6, 15, tzinfo=UTC))
        return used[-1]

    yield week
    for when in used:
        for one in partitions.weekly_partitions(when):
            run_sync(partitions.drop_partition(one))


def test_processes_that_make_the_same_partitions_at_once_make_each_once(
    far_week: Callable[[int], datetime],
) -> None:
    when = far_week(2061)

    async def several() -> list[list[str]]:
        return await asyncio.gather(*(partitions.ensure_partitions(when) for _ in range(6)))

    made = [name for names in run_sync(several()) for name in names]
    assert sorted(made) == [week.name for week in partitions.weekly_partitions(when)]
    assert run_sync(partitions.ensure_partitions(when)) == []


def test_a_week_with_rows_in_the_default_partition_stays_there_readable(
    client: Client, far_week: Callable[[int], datetime]
) -> None:
    when = far_week(2063)
    run = ended_run(client, at_ms=int(when.timestamp() * 1000))
    store(run.id, said(3))
    made = run_sync(partitions.ensure_partitions(when))
    first, *others = partitions.weekly_partitions(when)
    assert made == [week.name for week in others]
    assert stored(run.id) == said(3)
    assert first.name not in {one.name for one in run_sync(partitions.list_partitions())}


def test_appends_go_on_while_partitions_wait_for_a_lock(
    client: Client, far_week: Callable[[int], datetime], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Attaching needs the default partition for itself: it gives up in time and tries again."""
    when = far_week(2065)
    monkeypatch.setattr(partitions, "_TRIES", 5)
    monkeypatch.setattr(partitions, "_warned", set())

    async def while_it_is_read() -> list[str]:
        async with database.connection() as held, held.transaction():
            await held.execute("SELECT 1 FROM conversations_eventbatch_default LIMIT 1")
            return await partitions.ensure_partitions(when)

    assert run_sync(while_it_is_read()) == []
    assert len(run_sync(partitions.ensure_partitions(when))) == 5


def test_a_sparse_index_is_rebuilt_and_the_log_stays(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = ended_run(client)
    store(run.id, said(20))
    monkeypatch.setattr(partitions, "_packed_at", -1e9)
    monkeypatch.setattr(partitions, "_SPARSE", partitions._SPARSE.replace("4 * 45 *", "0 *"))
    index = run_sync(partitions.rebuild_sparse_index(larger_than=0))
    assert index is not None
    assert index.endswith("_pkey")
    assert stored(run.id) == said(20)
    assert run_sync(partitions.rebuild_sparse_index(larger_than=0)) is None  # not again so soon


# --- retention ----------------------------------------------------------------------------------


@pytest.fixture
def undisturbed() -> Iterator[None]:
    """The server's own upkeep, which would drop what this test drops, waits until the test is over."""
    with database.connect(direct=True) as held:
        held.execute("SELECT pg_advisory_lock(%s)", [_LOCK])
        yield


@pytest.fixture
def expired(client: Client, settings: Any, undisturbed: None) -> Iterator[Run]:
    """An ended run of 1991 whose events have been dropped with their partition."""
    when = datetime(1991, 6, 15, tzinfo=UTC)
    run = ended_run(client, at_ms=int(when.timestamp() * 1000))
    run_sync(partitions.ensure_partitions(when))
    store(run.id, said(5))
    late = ended_run(client, at_ms=int((when + timedelta(weeks=20)).timestamp() * 1000))
    store(late.id, said(5))  # no partition: it lies in the default one
    Run.objects.filter(pk__in=[run.pk, late.pk]).update(created_at=when)
    settings.EVENT_RETENTION_DAYS = 12_000
    yield run
    drop_expired()


def drop_expired() -> retention.ExpiredCounts:
    return run_sync(retention.drop_expired(datetime.now(UTC)))


def test_partitions_past_their_time_are_dropped_and_the_rest_is_kept(
    client: Client, expired: Run
) -> None:
    recent = ended_run(client)
    store(recent.id, said(3))
    done = drop_expired()
    assert (done.partitions, done.rows, done.more) == (5, len(said(5)), False)
    assert stored(expired.id) == []
    assert stored(recent.id) == said(3)
    assert drop_expired() == retention.ExpiredCounts()


def test_a_young_run_with_an_old_id_keeps_its_events(client: Client, expired: Run) -> None:
    """A web process whose clock was set back has given it the id."""
    young = ended_run(client, at_ms=1)
    store(young.id, said(5))
    assert drop_expired().rows == len(said(5)), "those of the old run beside it"
    assert stored(young.id) == said(5)


def test_nothing_is_dropped_unless_asked_and_never_from_a_live_run(
    client: Client, expired: Run, settings: Any
) -> None:
    settings.EVENT_RETENTION_DAYS = 0
    assert drop_expired() == retention.ExpiredCounts()
    settings.EVENT_RETENTION_DAYS = 12_000
    soon = timezone.now() + timedelta(hours=1)
    Run.objects.filter(pk=expired.pk).update(
        status="running", finished_at=None, fence=1, worker="w", lease_until=soon, deadline_at=soon
    )
    done = drop_expired()
    assert (done.partitions, done.rows) == (0, 0)
    assert stored(expired.id) == said(5)
    Run.objects.filter(pk=expired.pk).update(
        status="completed", finished_at=timezone.now(), lease_until=None
    )


def test_a_run_whose_events_are_gone_says_so_on_every_transport(client: Client, expired: Run) -> None:
    path = f"/api/v1/agent/runs/{expired.id.hex}/events"
    kept = client.http.get(path, params={"after": 1})
    assert kept.status_code == 200
    drop_expired()
    for headers in ({}, {"Accept": "application/json"}, {"Last-Event-ID": "3"}):
        gone = client.http.get(path, headers=headers, timeout=5)
        assert (gone.status_code, gone.json()["code"]) == (410, "events_expired")
    assert client.run(expired.id.hex)["status"] == "completed"
    socket = websocket.create_connection(
        client.url.replace("http", "ws") + f"/ws/agent/runs/{expired.id.hex}",
        timeout=5,
        header=[f"Authorization: Bearer {client.token}"],
    )
    try:
        assert json.loads(socket.recv())["data"]["code"] == "events_expired"
        assert int.from_bytes(socket.recv_data()[1][:2]) == 4410
    finally:
        socket.shutdown()  # type: ignore[no-untyped-call]


def test_a_young_run_is_not_asked_about(client: Client) -> None:
    run = ended_run(client)
    row = run_sync(client_queries.fetch_run(run.id.hex, user_id=client.user.pk))
    run_sync(client_queries.check_events_kept(row))
    assert [frame.event for frame in client.watch(run.id.hex)] == [
        "error"
    ]  # not a 410: nothing was there


# --- rounds -------------------------------------------------------------------------------------


def rounds() -> Iterator[UpkeepResult | None]:
    """Rounds as they come; the server of the suite keeps up too, so one may find it at it."""
    for _ in range(200):
        yield run_sync(run_upkeep_round())
    raise AssertionError("the lock was never free")


def test_a_round_folds_what_is_due_and_only_one_process_at_a_time_is_at_it(client: Client) -> None:
    run = ended_run(client, finished_at=timezone.now() - timedelta(days=300))
    store(run.id, said(40))
    next(done for done in rounds() if done is not None and not done.more)
    assert len(spans(run.id)) == 1

    async def meanwhile() -> UpkeepResult | None:
        async with database.connection() as held, held.transaction():
            await held.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            return await run_upkeep_round()

    assert run_sync(meanwhile()) is None


def test_the_command_works_to_the_end_and_says_what_it_did(client: Client) -> None:
    run = ended_run(client, finished_at=timezone.now() - timedelta(days=301))
    store(run.id, said(40))
    out = StringIO()
    call_command("upkeep", stdout=out)
    assert len(spans(run.id)) == 1
    assert "runs folded" in out.getvalue()
    assert out.getvalue().endswith("Done.\n")


def test_beat_sends_the_upkeep_and_its_task_does_a_round(client: Client) -> None:
    entry = app.conf.beat_schedule["upkeep"]
    assert entry["task"] in app.tasks
    run = ended_run(client, finished_at=timezone.now() - timedelta(days=302))
    store(run.id, said(10))
    while len(spans(run.id)) > 1:
        tasks._keep_up()
    assert stored(run.id) == said(10)


def test_a_transaction_of_its_own_is_not_held_up_by_a_fold(client: Client) -> None:
    """Folding locks the run's row no more than a reference to it allows."""
    run = ended_run(client)
    store(run.id, said(5))
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM conversations_run WHERE id = %s FOR KEY SHARE", [run.id])
        assert fold(run) == 1
