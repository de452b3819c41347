"""How long erasing a large user takes, and how long it holds up others who write meanwhile.

    .venv/bin/python -m benchmarks.erase [MESSAGES]

Makes a user with MESSAGES messages (1,000,000): two a run, ten runs a thread, one folded batch a
run. Then `manage.py erase_user` erases it while another user starts runs and appends events. Each of
those statements is timed, and what PostgreSQL says the slow ones waited for is shown.
`seed` serves the tests too.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

import psycopg
from django.conf import settings
from django.db import connection, transaction

from benchmarks.scratch import scratch_database
from benchmarks.stack import PYTHON, ROOT

_SEED: Final = (
    """
    CREATE TEMP TABLE seed_thread AS SELECT gen_random_uuid() AS id, n
        FROM generate_series(1, %(threads)s) n
    """,
    """
    CREATE FUNCTION pg_temp.uuid_at(ms bigint) RETURNS uuid LANGUAGE sql AS $$
        SELECT overlay(overlay(gen_random_uuid()::text PLACING overlay(
            lpad(to_hex(ms), 12, '0') PLACING '-' FROM 9 FOR 0) FROM 1) PLACING '7' FROM 15)::uuid
    $$
    """,
    """
    CREATE TEMP TABLE seed_run AS SELECT thread.id AS thread_id, place,
        pg_temp.uuid_at(%(first_ms)s + n * 10 + place) AS id
        FROM seed_thread thread, generate_series(0, least(9, %(runs)s - 1)) place ORDER BY n, place
    """,
    """
    INSERT INTO conversations_thread (id, owner_id, title, last_seq)
    SELECT id, %(owner_id)s, 'seeded', 20 FROM seed_thread
    """,
    """
    INSERT INTO conversations_run (id, owner_id, thread_id, thread_seq, request_id, dialect, model,
        request, status, deadline_at, deadline_s, finished_at, folded)
    SELECT id, %(owner_id)s, thread_id, place * 2 + 1, 'seed', 'text', 'global:demo', '{}', 'completed',
        now(), 1, now(), true FROM seed_run
    """,
    """
    INSERT INTO conversations_message (id, owner_id, thread_id, run_id, seq, role, content, metadata)
    SELECT pg_temp.uuid_at(%(first_ms)s), %(owner_id)s, thread_id, id, place * 2 + side, CASE side WHEN 1
        THEN 'user' ELSE 'assistant' END, repeat('words ', side * 20),
        jsonb_build_object('run_id', id::text)
    FROM seed_run, generate_series(1, 2) side
    """,
    """
    INSERT INTO conversations_eventbatch (run_id, first_seq, last_seq, events)
    SELECT id, 1, 1, json_build_array(json_build_array(1, json_build_object('type', 'message.completed',
        'message', json_build_object('message_id', 'm', 'role', 'assistant', 'content',
        repeat('words ', 40))))) FROM seed_run
    """,
    "DROP TABLE seed_run, seed_thread; DROP FUNCTION pg_temp.uuid_at",
)


def seed(owner_id: UUID, messages: int) -> None:
    """Give the user this many messages (made a multiple of 20, or of 2 below that), a run each ms."""
    runs = max(1, messages // 2)
    arguments: dict[str, Any] = {
        "owner_id": owner_id,
        "runs": runs,
        "threads": max(1, runs // 10),
        "first_ms": int(time.time() * 1000) - runs,
    }
    with transaction.atomic(), connection.cursor() as cursor:
        for statement in _SEED:
            cursor.execute(statement, arguments)


_START: Final = """
WITH thread AS (
    INSERT INTO conversations_thread (id, owner_id, title) VALUES (%s, %s, 'writer') RETURNING id
), run AS (
    INSERT INTO conversations_run (id, owner_id, thread_id, thread_seq, request_id, dialect, model,
        request, status, deadline_at, deadline_s, finished_at, folded)
    SELECT %s, %s, id, 1, 'writer', 'text', 'm', '{}', 'completed', now(), 1, now(), true FROM thread
    RETURNING id
)
INSERT INTO conversations_message (id, owner_id, thread_id, run_id, seq, role, content)
SELECT %s, %s, thread.id, run.id, 1, 'user', 'hello' FROM thread, run
"""


SLOW_S: Final = 0.05
_WAITS: Final = """
SELECT coalesce(wait_event_type || ':' || wait_event, 'running') FROM pg_stat_activity
WHERE pid = %s AND state = 'active'
"""


@dataclass
class Watch:
    """Looks every few milliseconds what a connection waits for, on a thread of its own."""

    slow: list[str] = field(default_factory=list)
    _seen: deque[tuple[float, str]] = field(default_factory=lambda: deque(maxlen=1_000))

    def start(self, stop: threading.Event, pid: int) -> None:
        threading.Thread(target=self._look, args=(stop, pid), daemon=True).start()

    def _look(self, stop: threading.Event, pid: int) -> None:
        with psycopg.connect(settings.DATABASE_URL, autocommit=True) as connection:
            while not stop.wait(0.005):
                row = connection.execute(_WAITS, (pid,)).fetchone()
                self._seen.append((time.perf_counter(), row[0] if row else "not in PostgreSQL"))

    def judge(self, since: float, until: float) -> None:
        """Keep what a statement waited for if it was slow; the numbers are looks."""
        if until - since > SLOW_S:
            found = Counter(what for at, what in list(self._seen) if since <= at <= until)
            looks = ", ".join(f"{what} {number}" for what, number in found.most_common())
            self.slow.append(f"{(until - since) * 1000:.0f} ms ({looks})")


async def write_until(stop: threading.Event, owner_id: UUID, watch: Watch | None = None) -> list[float]:
    """Start runs and append to their logs, a statement each 5 ms; how long each one took."""
    from config import database
    from conversations.identifiers import uuid7

    took = []
    async with database.connection() as held:
        if watch is not None:
            watch.start(stop, held.info.backend_pid)
        while not stop.is_set():
            thread, run = uuid7(), uuid7()
            statements: list[tuple[str, tuple[Any, ...]]] = [
                (_START, (thread, owner_id, run, owner_id, uuid7(), owner_id))
            ]
            statements += [
                ("INSERT INTO conversations_eventbatch VALUES (%s, %s, %s, '[]')", (run, n, n))
                for n in range(1, 10)
            ]
            for statement, arguments in statements:
                since = time.perf_counter()
                await held.execute(statement, arguments)
                until = time.perf_counter()
                took.append(until - since)
                if watch is not None:
                    watch.judge(since, until)
                await asyncio.sleep(0.005)
    return took


def write_beside(
    stop: threading.Event, owner_id: UUID, watch: Watch | None = None
) -> tuple[threading.Thread, list[float]]:
    """The same on a thread with a loop and a pool of its own; the times are there when it has ended."""
    from config import database

    took: list[float] = []

    async def write() -> None:
        try:
            took.extend(await write_until(stop, owner_id, watch))
        finally:
            await database.close()

    thread = threading.Thread(target=asyncio.run, args=(write(),), daemon=True)
    thread.start()
    return thread, took


def say(title: str, took: list[float]) -> None:
    ordered = sorted(took)
    shown = ", ".join(f"p{q} {ordered[int(len(ordered) * q / 100)] * 1000:.1f}" for q in (50, 99))
    over = sum(one > 0.1 for one in took)
    print(
        f"{title}: {len(took)} inserts, {shown}, worst {ordered[-1] * 1000:.1f} ms, over 100 ms: {over}"
    )


def main(messages: int) -> None:
    from django.contrib.auth import get_user_model

    from conversations.upkeep.retention import erase_user

    users = get_user_model().objects
    owner = users.create(username=f"erase-{time.time_ns()}")
    other = users.create(username=f"writer-{time.time_ns()}")
    since = time.monotonic()
    seed(owner.pk, messages)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")  # as autovacuum does a minute after so many rows
    print(f"seeded {messages} messages in {time.monotonic() - since:.1f} s", flush=True)
    for title in ("alone", "while erasing"):
        stop, watch = threading.Event(), Watch()
        thread, took = write_beside(stop, other.pk, watch)
        if title == "alone":
            time.sleep(10)
        else:
            subprocess.run([PYTHON, "manage.py", "erase_user", owner.username], cwd=ROOT, check=True)
        stop.set()
        thread.join()
        say(title, took)
        print(*(f"  slow: {one}" for one in watch.slow), sep="\n", flush=True)
    erase_user(other.pk)


if __name__ == "__main__":
    with scratch_database():
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
