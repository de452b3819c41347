"""`manage.py migrate` on a database that others use."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from config import database

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]
BEFORE = ("agents", "0010_runners_passed_over")
AFTER = ("agents", "0011_state_of_binding")
TABLE = "agents_hoststate"
LONGEST_WAIT_S = 0.6  # 100 ms for the lock, and what a loaded machine adds


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

    def read_for_a_while() -> None:
        with reader():
            reading.set()
            time.sleep(1.0)

    reading = threading.Event()
    threads = [threading.Thread(target=each) for each in (read_for_a_while, read_again_and_again)]
    for thread in threads:
        thread.start()
    reading.wait()
    since = time.monotonic()
    call_command("migrate", *BEFORE, stdout=out)
    took = time.monotonic() - since
    done.set()
    for thread in threads:
        thread.join()
    assert "locked by others for 100 ms: trying again" in out.getvalue()
    assert took > 0.5, "the migration did not wait for the reader"
    assert max(waits) < LONGEST_WAIT_S
    assert lock_timeout() == "0"


def test_a_migration_that_never_gets_its_lock_says_who_holds_it() -> None:
    with reader(), pytest.raises(CommandError) as refusal:
        call_command("migrate", *BEFORE, verbosity=0, lock_retry=0, stdout=StringIO())
    assert "did not get its locks within 0 seconds" in str(refusal.value)
    assert "backends" in str(refusal.value)
    assert "no name" in str(refusal.value)
    assert lock_timeout() == "0"


def lock_timeout() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SHOW lock_timeout")
        return str(cursor.fetchone()[0])
