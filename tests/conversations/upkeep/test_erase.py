"""Erasing a user: everything of theirs goes, nothing of anybody else's, and nobody waits for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.db import connection

from benchmarks import erase as benchmark
from config.auth.models import ApiToken
from conversations.models import EventBatch, Message, Run, Thread
from conversations.upkeep import retention
from conversations.upkeep.retention import ErasedCounts, erase_user
from tests.support.client import Client, read_sse


def rows_of(user_id: UUID) -> dict[str, int]:
    return {
        "threads": Thread.objects.filter(owner_id=user_id).count(),
        "runs": Run.objects.filter(owner_id=user_id).count(),
        "messages": Message.objects.filter(thread__owner_id=user_id).count(),
    }


NOTHING = {"threads": 0, "runs": 0, "messages": 0}


def someone() -> Any:
    return get_user_model().objects.create(username=f"erased-{uuid4().hex}")


def test_all_of_a_user_goes_and_nothing_of_another(make_client: Callable[..., Client]) -> None:
    mine, other = make_client(), make_client()
    runs = []
    for client in (mine, other):
        accepted = client.start()
        frames = client.watch(accepted["run_id"])
        runs.append((accepted["run_id"], frames, rows_of(client.user.pk)))
    erased = erase_user(mine.user.pk)
    run_id, _, before = runs[0]
    assert (erased.threads, erased.runs, erased.messages) == (1, 1, before["messages"])
    assert erased.events > 0
    assert rows_of(mine.user.pk) == NOTHING
    assert not EventBatch.objects.filter(run_id=run_id).exists()
    assert not ApiToken.objects.filter(user_id=mine.user.pk).exists()
    assert not get_user_model().objects.filter(pk=mine.user.pk).exists()
    assert mine.http.get(f"/api/v1/agent/runs/{run_id}").status_code == 401
    run_id, frames, before = runs[1]
    assert rows_of(other.user.pk) == before
    assert other.watch(run_id) == frames
    assert erase_user(mine.user.pk) == ErasedCounts()


def test_a_running_run_is_cancelled_first_and_its_reader_is_told(
    client: Client, scripted: Callable[..., Any]
) -> None:
    accepted = client.start("Say much", model=scripted("endless").name, enable_exercise_search=False)
    client.watch(accepted["run_id"], stop_after=6)
    with client.http.stream("GET", f"/api/v1/agent/runs/{accepted['run_id']}/events") as response:
        assert response.status_code == 200
        erase_user(client.user.pk, keep_account=True)
        last = list(read_sse(response))[-1]
    assert (last.event, last.data["code"]) == ("error", "cancelled")
    assert rows_of(client.user.pk) == NOTHING
    assert not EventBatch.objects.filter(run_id=accepted["run_id"]).exists()


def test_a_kept_account_goes_on_with_its_token(client: Client) -> None:
    first = client.start()
    client.watch(first["run_id"])
    erase_user(client.user.pk, keep_account=True)
    assert client.http.get(f"/api/v1/agent/runs/{first['run_id']}").status_code == 404
    second = client.start()
    assert client.watch(second["run_id"])[-1].event == "completed"


def test_an_interrupted_erase_is_repeated_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    user = someone()
    benchmark.seed(user.pk, 200)
    assert rows_of(user.pk) == {"threads": 10, "runs": 100, "messages": 200}
    monkeypatch.setattr(retention, "_FOLDED_AT_ONCE", 20)

    class Interrupted(Exception):
        pass

    def interrupt(erased: ErasedCounts) -> None:
        if erased.runs >= 40:
            raise Interrupted

    with pytest.raises(Interrupted):
        erase_user(user.pk, interrupt)
    assert rows_of(user.pk) == {"threads": 10, "runs": 60, "messages": 120}
    assert erase_user(user.pk) == ErasedCounts(messages=120, events=60, runs=60, threads=10)
    assert rows_of(user.pk) == NOTHING


def test_steps_are_bounded_and_progress_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    user = someone()
    benchmark.seed(user.pk, 400)
    monkeypatch.setattr(retention, "_FOLDED_AT_ONCE", 25)
    told: list[ErasedCounts] = []
    assert erase_user(user.pk, told.append) == told[-1] == ErasedCounts(400, 200, 200, 20)
    assert [one.messages for one in told[:8]] == [50, 100, 150, 200, 250, 300, 350, 400]


def test_others_write_on_while_a_large_user_is_erased() -> None:
    """The bar is 100 ms; `python -m benchmarks.erase` measures that where nothing else runs."""
    user, writer = someone(), someone()
    benchmark.seed(user.pk, 20_000)
    stop = threading.Event()
    thread, took = benchmark.write_beside(stop, writer.pk)
    erased = erase_user(user.pk)
    stop.set()
    thread.join(30)
    assert erased.messages == 20_000
    assert took
    assert max(took) < 1
    erase_user(writer.pk)


def test_the_command_erases_by_name_or_id_and_says_what(client: Client) -> None:
    client.watch(client.start()["run_id"])
    out = StringIO()
    call_command("erase_user", client.user.username, "--keep-account", stdout=out)
    assert "1 runs, 1 threads, 0 files erased." in out.getvalue()
    call_command("erase_user", str(client.user.pk), stdout=out)
    assert not get_user_model().objects.filter(pk=client.user.pk).exists()
    for nobody in (client.user.username, str(client.user.pk)):
        with pytest.raises(CommandError, match="There is no user"):
            call_command("erase_user", nobody)


def test_erasing_leaves_no_cursor_or_transaction_open() -> None:
    user = someone()
    benchmark.seed(user.pk, 40)
    erase_user(user.pk)
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_cursors WHERE name LIKE '\\_django%'")
        assert cursor.fetchone() == (0,)
    assert not connection.in_atomic_block


def test_a_follower_of_an_erased_run_is_let_go(
    make_client: Callable[..., Client], scripted: Callable[..., Any]
) -> None:
    client = make_client()
    run_id = client.start("much", model=scripted("hang-midway").name)["run_id"]
    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(client.watch, run_id)
        client.wait_for(run_id, "running")
        erase_user(client.user.pk)
        frames = following.result(30)
    assert frames[-1].event in ("content_delta", "error", "status")
