"""Every accepted run ends, once, whatever happens to its worker (promises P1, P2, P7, P8, P9)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from config import database
from config.database import run_sync
from conversations import events
from conversations.identifiers import uuid7
from conversations.log import event_log
from conversations.log.batches import make_batch
from conversations.log.event_log import LeaseLost, Writer
from conversations.models import Message, Run, RunStatus, Thread
from conversations.runs import endings, leases, settling
from conversations.runs.settling import Due, Settler
from conversations.runs.sweeper import Lapsed, Sweeper
from tests.conftest import Server
from tests.support.client import Client, reply
from tests.support.fakes.mcp_host import wait_until


def stored_types(run_id: str) -> list[str]:
    async def read() -> list[str]:
        return [event.type async for batch in event_log.read(UUID(run_id)) for event in batch.events]

    return run_sync(read())


def orphan(client: Client, *said: events.Fact, attempt: int = 1) -> Run:
    """A run that a worker claimed, said something of, and then died."""
    accepted = client.start("hello", model="demo", enable_exercise_search=False)
    run = Run.objects.get(pk=accepted["run_id"])
    client.wait_for(accepted["run_id"], "completed")
    thread = Thread.objects.create(owner=client.user, last_seq=1)
    soon = timezone.now() + timedelta(minutes=5)
    made = Run.objects.create(
        id=uuid7(),
        owner=client.user,
        thread=thread,
        thread_seq=1,
        request_id=uuid4().hex,
        dialect="text",
        model="global:demo",
        request=run.request,
        status=RunStatus.RUNNING,
        attempt=attempt,
        fence=1,
        worker="dead:1",
        started_at=timezone.now(),
        lease_until=soon,
        deadline_at=soon,
        deadline_s=300,
    )

    async def write() -> None:
        from config import database

        facts = [events.RunQueued(0), events.RunStarted(attempt, 0), *said]
        batch = make_batch(made.id, [events.RunEvent(n, 1, f) for n, f in enumerate(facts, 1)])
        async with database.connection() as connection:
            await connection.execute(
                "INSERT INTO conversations_eventbatch VALUES (%s, %s, %s, %s)",
                (made.id, batch.first_seq, batch.last_seq, _text(batch.body)),
            )

    run_sync(write())
    return made


def _text(body: bytes | str) -> str:
    return body.decode() if isinstance(body, bytes) else body


def expire(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(lease_until=timezone.now() - timedelta(seconds=1))


def test_a_lost_run_that_said_something_fails_visibly_and_keeps_what_it_said(client: Client) -> None:
    run = orphan(
        client,
        events.StageStarted("execution"),
        events.ToolCallStarted("t1", "web_search.exa", {"query": "x"}),
        events.MessageDelta("m1", "Half an ans"),
    )
    expire(run)
    detail = client.wait_for(run.id.hex, "failed", seconds=5)
    assert detail["error"]["code"] == "worker_lost"
    frames = client.watch(run.id.hex)
    assert [f.event for f in frames] == [
        "status", "status", "tool_start", "content_delta", "tool_result", "error",
    ]  # fmt: skip
    assert frames[4].data["error"]["code"] == "worker_lost"
    assert stored_types(run.id.hex)[-4:] == [
        "tool.call.completed", "message.completed", "stage.completed", "run.failed",
    ]  # fmt: skip
    answer = Message.objects.get(run=run, role="assistant")
    assert answer.content == "Half an ans"
    assert answer.metadata["worker_agent_output"] == {"answer": "Half an ans", "status": "failed"}


def test_a_lost_run_that_said_nothing_runs_again(client: Client) -> None:
    run = orphan(client, events.StageStarted("execution"))
    expire(run)
    detail = client.wait_for(run.id.hex, "completed", seconds=10)
    assert detail["attempt"] == 2
    types = stored_types(run.id.hex)
    assert types.count("run.started") == 2
    assert types[:4] == ["run.queued", "run.started", "stage.started", "stage.completed"]


def test_a_run_that_lost_two_workers_is_quarantined(client: Client) -> None:
    run = orphan(client, attempt=2)
    Run.objects.filter(pk=run.pk).update(losses=1)
    expire(run)
    assert client.wait_for(run.id.hex, "failed", seconds=5)["error"]["code"] == "quarantined"
    assert client.watch(run.id.hex)[-1].data["code"] == "quarantined"


def test_a_worker_that_was_stopped_does_not_count_against_its_run(client: Client) -> None:
    run = orphan(client)
    Run.objects.filter(pk=run.pk).update(losses=1)
    assert run_sync(settling.settle(Due(run.id, 1, "worker_stopped")))
    client.wait_for(run.id.hex, "completed", seconds=10)
    assert Run.objects.get(pk=run.pk).losses == 1


def test_only_the_run_that_held_the_loop_is_blamed_for_its_worker(client: Client) -> None:
    from agents.worker import loop

    poison, neighbour = orphan(client), orphan(client)
    Run.objects.filter(pk__in=(poison.pk, neighbour.pk)).update(losses=1)
    assert loop._current is not None
    loop._current.froze(poison.id, 12.0)
    run_sync(loop._current._exonerate({poison.id, neighbour.id}, 12.0))
    assert Run.objects.get(pk=poison.pk).losses == 1
    assert Run.objects.get(pk=neighbour.pk).losses == 0
    for run in (poison, neighbour):
        run_sync(settling.settle(Due(run.id, 1, "cancelled")))


def test_a_run_whose_worker_still_writes_is_not_lost(client: Client) -> None:
    run = orphan(client, events.MessageDelta("m1", "x"))
    with written_between(run, events.MessageDelta("m1", "y")):
        assert not run_sync(settling.settle(Due(run.id, 1, "worker_lost")))
    assert Run.objects.get(pk=run.pk).fence == 1
    run_sync(settling.settle(Due(run.id, 1, "cancelled")))


def test_a_run_whose_worker_writes_and_writes_is_cancelled_all_the_same(client: Client) -> None:
    run = orphan(client, events.MessageDelta("m1", "x"))
    with written_between(run, events.MessageDelta("m1", "y")):
        assert run_sync(settling.settle(Due(run.id, 1, "cancelled")))
    assert client.run(run.id.hex)["status"] == "cancelled"
    assert Message.objects.get(run=run, role="assistant").content == "xy"


async def fence_of(run_id: UUID) -> int:
    from config import database

    async with database.connection() as held:
        cursor = await held.execute("SELECT fence FROM conversations_run WHERE id = %s", (run_id,))
        return int((await cursor.fetchall())[0][0])


@contextmanager
def written_between(run: Run, *said: events.Fact) -> Iterator[None]:
    """Something more is logged each time after the log was read, as long as the fence allows."""
    from config import database

    read = event_log.read_joined

    async def read_then_write(run_id: UUID) -> list[events.RunEvent]:
        found = await read(run_id)
        if await fence_of(run_id) == 1:
            last = found[-1].seq
            some = [events.RunEvent(n, 1, fact) for n, fact in enumerate(said, last + 1)]
            batch = make_batch(run_id, some)
            async with database.connection() as held:
                await held.execute(
                    "INSERT INTO conversations_eventbatch VALUES (%s, %s, %s, %s)",
                    (run_id, batch.first_seq, batch.last_seq, batch.text),
                )
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(event_log, "read_joined", read_then_write)
        yield


def test_a_run_that_fails_to_settle_three_times_ends_without_its_messages(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = orphan(client, events.MessageDelta("m1", "kept in the log"))

    async def broken(run_id: UUID) -> list[events.RunEvent]:
        raise MemoryError

    monkeypatch.setattr(event_log, "read_joined", broken)
    monkeypatch.setattr(settling, "_LONGEST_PAUSE_S", 0.0)
    settler, due = Settler(), Due(run.id, 1, "cancelled")
    for _ in range(3):
        run_sync(settler.settle_all([due]))
        assert Run.objects.get(pk=run.pk).status == RunStatus.RUNNING
    run_sync(settler.settle_all([due]))
    assert client.run(run.id.hex)["status"] == "cancelled"
    assert stored_types(run.id.hex)[-2:] == ["message.delta", "run.failed"]
    assert not Message.objects.filter(run=run, role="assistant").exists()


def test_settling_that_failed_waits_longer_each_time(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried, settle = list[float](), settling.settle
    settler, due = Settler(), Due(uuid7(), 1, "cancelled")

    async def refuse(one: Due) -> bool:
        if one != due:
            return await settle(one)
        tried.append(now[0])
        raise ValueError

    now = [100.0]
    monkeypatch.setattr(settling, "settle", refuse)
    monkeypatch.setattr("conversations.runs.settling.monotonic", lambda: now[0])
    for _ in range(40):
        run_sync(settler.settle_all([due]))
        now[0] += 0.3
        if len(tried) == 3:
            break
    first, second, third = tried
    assert second - first >= 1
    assert third - second >= 2


def test_a_text_in_a_million_pieces_folds_as_one_text() -> None:
    """Promise P2: settling a run whose log is large takes no longer than its text."""
    from conversations.log.transcript import fold

    run_id = uuid7()
    pieces = [events.RunEvent(n, n, events.MessageDelta("m", "ab")) for n in range(1, 200_001)]
    last = events.RunEvent(200_001, 9, events.RunCompleted("stop"))
    batch = make_batch(run_id, [*pieces, last])
    joined = events.decode_joined(1, batch.body)
    assert [event.seq for event in joined] == [200_000, 200_001]
    short, long = fold(run_id, joined), fold(run_id, batch.events)
    assert short == long


def test_a_dead_workers_run_is_cancelled(client: Client) -> None:
    run = orphan(client, events.MessageDelta("m1", "x"))
    response = client.http.post(f"/api/v1/agent/runs/{run.id.hex}/cancel")
    assert response.status_code == 202
    client.wait_for(run.id.hex, "cancelled", seconds=5)


def test_a_dead_workers_run_past_its_deadline_fails(client: Client) -> None:
    run = orphan(client, events.MessageDelta("m1", "x"))
    Run.objects.filter(pk=run.pk).update(deadline_at=timezone.now() - timedelta(seconds=2))
    detail = client.wait_for(run.id.hex, "failed", seconds=5)
    assert detail["error"]["code"] == "deadline_exceeded"


@pytest.mark.parametrize(("attempt", "code"), [(0, "queue_timeout"), (1, "deadline_exceeded")])
def test_a_run_that_no_worker_takes_in_time_fails(client: Client, attempt: int, code: str) -> None:
    """Once it has begun it has a deadline, which it keeps while it waits for its next worker."""
    run, earlier = orphan(client), orphan(client)
    late = timezone.now() - timedelta(seconds=1)
    with transaction.atomic():
        Run.objects.filter(pk=run.pk).update(
            status="queued", worker="", attempt=attempt, lease_until=None, deadline_at=late
        )
        Run.objects.filter(pk=earlier.pk).update(thread=run.thread, thread_seq=0)  # goes before it
    assert client.wait_for(run.id.hex, "failed", seconds=5)["error"]["code"] == code
    assert run_sync(settling.settle(Due(earlier.id, 1, "cancelled")))


def test_settling_twice_at_once_ends_a_run_once(client: Client, server: Server) -> None:
    run = orphan(client, events.MessageDelta("m1", "x"))
    with ThreadPoolExecutor(8) as pool:
        ended = list(
            pool.map(lambda _: run_sync(settling.settle(Due(run.id, 1, "worker_lost"))), range(8))
        )
    assert ended.count(True) == 1
    assert stored_types(run.id.hex).count("run.failed") == 1


def test_a_lease_renewed_in_the_last_moment_keeps_its_run(client: Client) -> None:
    run = orphan(client, events.MessageDelta("m1", "x"))
    before = timezone.now() - timedelta(seconds=1)
    assert not run_sync(settling.settle(Due(run.id, 1, "worker_lost", before)))
    assert run_sync(settling.settle(Due(run.id, 1, "worker_lost", run.lease_until)))
    assert stored_types(run.id.hex)[-1] == "run.failed"


def looked(sweeper: Sweeper, lease: Lapsed, *at_s: float) -> list[bool]:
    """Whether the lease, which stands still, is taken for lost at each of those times."""
    return [bool(list(sweeper._find_lost([lease], now))) for now in at_s]


def test_a_lease_is_lost_when_it_was_seen_to_stand_still_for_two_seconds() -> None:
    lease = (uuid7(), 1, timezone.now())
    assert looked(Sweeper(), lease, 100, 100.5, 101, 101.5, 102) == [False] * 4 + [True]


def test_time_in_which_nobody_could_look_proves_no_worker_dead() -> None:
    """A sweep that waits through an outage does not fail: its worker waits for the same database."""
    lease, sweeper = (uuid7(), 1, timezone.now()), Sweeper()
    assert looked(sweeper, lease, 100, 100.4, 109, 109.4) == [False] * 4
    assert list(sweeper._find_lost([(lease[0], 1, timezone.now())], 109.8)) == []  # it was renewed


def test_a_busy_sweeper_finds_the_dead_too() -> None:
    lease = (uuid7(), 1, timezone.now())
    assert looked(Sweeper(), lease, 100, 103, 106, 109, 112)[-1]


def test_a_worker_that_lost_its_lease_cannot_write(client: Client) -> None:
    run = orphan(client, events.MessageDelta("m1", "x"))
    assert run_sync(settling.settle(Due(run.id, 1, "worker_lost")))
    before = stored_types(run.id.hex)

    async def wake_up() -> None:
        import asyncio

        writer = Writer()
        writing = asyncio.create_task(writer.run())
        late = writer.open(run.id, fence=1, last_seq=3)
        late.append(events.MessageDelta("m1", "too late"))
        with pytest.raises(LeaseLost):
            await late.drain()
        with pytest.raises(LeaseLost):
            late.append(events.MessageDelta("m1", "even later"))
        writing.cancel()

    run_sync(wake_up())
    assert stored_types(run.id.hex) == before
    with database.connect() as connection:
        assert leases.renew(connection, worker=run.worker, lease_s=10) == {}


def test_a_running_run_is_cancelled_and_keeps_its_words(
    client: Client, scripted: Callable[..., Any]
) -> None:
    accepted = client.start("Say much", model=scripted("endless").name, enable_exercise_search=False)
    begun = client.watch(accepted["run_id"], stop_after=6)
    client.http.post(f"/api/v1/agent/runs/{accepted['run_id']}/cancel")
    rest = client.watch(accepted["run_id"], after=begun[-1].id)
    assert rest[-1].event == "error"
    assert rest[-1].data["code"] == "cancelled"
    assert client.run(accepted["run_id"])["status"] == "cancelled"
    said = client.history(accepted["conversation_id"])["messages"][-1]["content"]
    assert said == reply(begun + rest)


def test_a_waiting_run_is_cancelled_at_once_and_the_next_one_runs(
    client: Client, scripted: Callable[..., Any]
) -> None:
    first = client.start("one", model=scripted("endless").name)
    thread = first["conversation_id"]
    second = client.start("two", conversation_id=thread)
    third = client.start("three", conversation_id=thread)
    client.watch(first["run_id"], stop_after=2)
    assert client.run(second["run_id"])["status"] == "queued"
    client.http.post(f"/api/v1/agent/runs/{second['run_id']}/cancel")
    assert client.run(second["run_id"])["status"] == "cancelled"
    client.http.post(f"/api/v1/agent/runs/{first['run_id']}/cancel")
    assert client.watch(third["run_id"])[-1].event == "completed"


def test_cancelling_an_ended_run_changes_nothing(client: Client) -> None:
    accepted = client.start()
    frames = client.watch(accepted["run_id"])
    response = client.http.post(f"/api/v1/agent/runs/{accepted['run_id']}/cancel")
    assert (response.status_code, response.json()["status"]) == (202, "completed")
    assert client.watch(accepted["run_id"]) == frames


def test_runs_of_one_thread_run_one_after_the_other_in_the_order_asked(client: Client) -> None:
    first = client.start("question 1")
    thread = first["conversation_id"]
    others = [client.start(f"question {n}", conversation_id=thread) for n in (2, 3, 4)]
    for accepted in others:
        client.watch(accepted["run_id"])
    runs = Run.objects.filter(thread_id=thread).order_by("started_at")
    assert [run.thread_seq for run in runs] == sorted(run.thread_seq for run in runs)
    finished = [run.finished_at for run in runs if run.finished_at]
    begun = [run.started_at for run in runs if run.started_at]
    assert len(finished) == len(begun) == 4
    assert all(end <= start for end, start in zip(finished[:-1], begun[1:], strict=True))


def test_the_database_refuses_two_running_runs_on_a_thread(client: Client) -> None:
    run = orphan(client)
    twin = Run.objects.get(pk=run.pk)
    twin.pk = uuid7()
    with pytest.raises(IntegrityError, match="one_running_run_per_thread"), transaction.atomic():
        twin.save(force_insert=True)
    run_sync(settling.settle(Due(run.id, 1, "cancelled")))


def test_a_run_that_cannot_be_settled_does_not_keep_the_next_ones_unsettled(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    from psycopg import DataError

    bad, good = orphan(client, events.MessageDelta("m1", "x")), orphan(client)
    settle = settling.settle

    async def refuse_one(due: Due) -> bool:
        if due.run_id == bad.id:
            raise DataError
        return await settle(due)

    monkeypatch.setattr(settling, "settle", refuse_one)
    expire(bad)
    expire(good)
    client.wait_for(good.id.hex, "failed", "completed", seconds=5)
    monkeypatch.undo()
    client.wait_for(bad.id.hex, "failed", seconds=5)


def test_who_ends_a_run_waits_for_the_thread_before_touching_the_run(client: Client) -> None:
    """An accept holds the thread while the key of its run is looked up: the other order deadlocks."""
    from conversations.log.transcript import fold

    run = orphan(client, events.MessageDelta("m1", "x"))
    ending = endings.compose_ending(fold(run.id, []), events.RunFailed("c", "m"), fence=1, after=3)
    with ThreadPoolExecutor(1) as pool, transaction.atomic():
        Thread.objects.select_for_update().get(pk=run.thread_id)
        ended = pool.submit(run_sync, endings.write_ending(ending))
        wait_until(_somebody_waits_for_a_lock)
        assert Run.objects.select_for_update(nowait=True).get(pk=run.pk).status == RunStatus.RUNNING
    assert ended.result(timeout=5) is not None
    assert client.run(run.id.hex)["status"] == "failed"


def _somebody_waits_for_a_lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
        return cursor.fetchone() is not None


def test_a_failure_with_words_too_long_for_its_row_still_ends_the_run(client: Client) -> None:
    from conversations.log.transcript import fold

    run = orphan(client, events.MessageDelta("m1", "x"))
    failed = events.RunFailed("c" * 500, "m" * 5000)
    ending = endings.compose_ending(fold(run.id, []), failed, fence=1, after=3)
    assert run_sync(endings.write_ending(ending))
    assert client.run(run.id.hex)["error"]["code"] == "c" * 64
