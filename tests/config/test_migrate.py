"""`manage.py migrate` on a database that others use."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.models.signals import post_migrate

from agents.worker import lone_worker, loop
from config import database
from config.management.commands import migrate
from config.process import schema
from tests.support.log_lines import lines_about

pytestmark = pytest.mark.once
BEFORE = ("agents", "0010_runners_passed_over")
AFTER = ("agents", "0011_state_of_binding")
TABLE = "agents_hoststate"
TRIED = "locked by others for 100 ms: trying again"
WAITING = "another migrate is at work"
GIVEN_UP_S = 20.0
LONGEST_WAIT_S = 5.0  # 100 ms for the lock, and what a loaded machine adds; GIVEN_UP_S if it waited on


@pytest.fixture(autouse=True)
def migrated() -> Iterator[None]:
    yield
    call_command("migrate", *AFTER, verbosity=0)


@contextmanager
def reader() -> Iterator[None]:
    """Another transaction has read the table and goes on."""
    with database.connect() as held, held.transaction():
        held.execute(f"SELECT FROM {TABLE}")
        yield


def test_nobody_waits_behind_a_migration_that_waits() -> None:
    waits: list[float] = []
    done, out = threading.Event(), StringIO()

    def read_again_and_again() -> None:
        with database.connect() as others:
            while not done.is_set():
                since = time.monotonic()
                others.execute(f"SELECT FROM {TABLE}")
                waits.append(time.monotonic() - since)

    def read_until_it_has_given_up() -> None:
        until = time.monotonic() + GIVEN_UP_S
        with reader():
            reading.set()
            while TRIED not in out.getvalue() and time.monotonic() < until:
                time.sleep(0.01)

    reading = threading.Event()
    threads = [
        threading.Thread(target=each) for each in (read_until_it_has_given_up, read_again_and_again)
    ]
    for thread in threads:
        thread.start()
    reading.wait()
    call_command("migrate", *BEFORE, stdout=out)
    done.set()
    for thread in threads:
        thread.join()
    assert TRIED in out.getvalue()
    assert "Unapplying agents.0011_state_of_binding... OK" in out.getvalue()
    assert max(waits) < LONGEST_WAIT_S
    assert lock_timeout() == "0"


def test_a_migration_that_never_gets_its_lock_says_who_holds_it() -> None:
    with reader(), pytest.raises(CommandError) as refusal:
        call_command("migrate", *BEFORE, verbosity=0, lock_retry=0, stdout=StringIO())
    assert "did not get its locks within 0 seconds" in str(refusal.value)
    assert "backends" in str(refusal.value)
    assert "no name" in str(refusal.value)
    assert lock_timeout() == "0"


def test_a_second_migrate_waits_for_the_first_and_finds_nothing_left_to_do() -> None:
    out = StringIO()
    with database.connect() as first:
        first.execute(migrate._TRY_LOCK)
        second = threading.Thread(target=_migrate_in_a_thread, args=(out,))
        second.start()
        until = time.monotonic() + GIVEN_UP_S
        while WAITING not in out.getvalue() and time.monotonic() < until:
            time.sleep(0.01)
        assert second.is_alive()
    second.join(GIVEN_UP_S)
    assert out.getvalue().count(WAITING) == 1
    assert "No migrations to apply." in out.getvalue()
    with database.connect() as later:
        assert later.execute(migrate._TRY_LOCK).fetchone() == (True,)


def test_a_migrate_that_waits_for_another_one_for_too_long_says_so() -> None:
    with database.connect() as first:
        first.execute(migrate._TRY_LOCK)
        with pytest.raises(CommandError, match="Another migrate"):
            call_command("migrate", verbosity=0, lock_retry=0, stdout=StringIO())


def test_a_migration_may_take_longer_than_a_statement_of_parley() -> None:
    seen: list[str] = []

    def note(**_: object) -> None:
        seen.append(shown("statement_timeout"))

    post_migrate.connect(note, dispatch_uid="limits")
    before = connection.settings_dict
    options = before["OPTIONS"] | {"options": "-c statement_timeout=60s -c lock_timeout=5s"}
    connection.close()
    connection.close_pool()  # type: ignore[attr-defined]
    connection.settings_dict = before | {"OPTIONS": options}
    try:
        assert shown("statement_timeout") == "1min"
        call_command("migrate", *BEFORE, verbosity=0)
        after = shown("statement_timeout"), lock_timeout()
    finally:
        post_migrate.disconnect(dispatch_uid="limits")
        connection.close()
        connection.close_pool()  # type: ignore[attr-defined]
        connection.settings_dict = before
    assert set(seen) == {"0"}
    assert after == ("1min", "5s")


def test_a_worker_waits_for_the_migrations_of_its_release(monkeypatch: pytest.MonkeyPatch) -> None:
    known = schema._migrations()

    async def wait() -> float:
        since = time.monotonic()
        waiting = asyncio.create_task(schema.wait_for_migrations(asyncio.Event()))
        await asyncio.sleep(0.3)
        assert not waiting.done()
        monkeypatch.setattr(schema, "_migrations", lambda: known)
        await waiting
        return time.monotonic() - since

    monkeypatch.setattr(schema, "_migrations", lambda: known | {("agents", "9999_to_come")})
    monkeypatch.setattr(schema, "_LOOK_S", 0.05)
    with lines_about("waiting for migrations") as lines:
        assert database.run_sync(wait()) < 30
    assert [line["missing"] for line in lines] == [["agents.9999_to_come"]]


def test_the_worker_of_a_bare_celery_worker_waits_too_and_is_started_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known, begun = schema._migrations(), threading.Event()

    async def serve(_stop: asyncio.Event) -> None:
        begun.set()

    monkeypatch.setattr(loop, "_current", None)
    monkeypatch.setattr(lone_worker, "_alone", None)
    monkeypatch.setattr(loop, "serve_worker", serve)
    monkeypatch.setattr(schema, "_migrations", lambda: known | {("agents", "9999_to_come")})
    monkeypatch.setattr(schema, "_LOOK_S", 0.05)
    lone_worker.ensure_worker()
    lone_worker.ensure_worker()
    (waiting,) = [one for one in threading.enumerate() if one.name == "parley-worker"]
    assert not begun.wait(0.3)
    monkeypatch.setattr(schema, "_migrations", lambda: known)
    assert begun.wait(10)
    waiting.join(10)
    assert not waiting.is_alive()


def test_a_worker_that_waits_for_migrations_can_be_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    async def stopped() -> None:
        stop = asyncio.Event()
        asyncio.get_running_loop().call_later(0.1, stop.set)
        await schema.wait_for_migrations(stop)

    monkeypatch.setattr(schema, "_migrations", lambda: frozenset({("agents", "9999_to_come")}))
    database.run_sync(stopped())


def _migrate_in_a_thread(out: StringIO) -> None:
    try:
        call_command("migrate", stdout=out)
    finally:
        connection.close()


def lock_timeout() -> str:
    return shown("lock_timeout")


def shown(setting: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(f"SHOW {setting}")
        return str(cursor.fetchone()[0])
