"""Fill a database with conversations: the state in which history and search must still be fast.

    DATABASE_URL=postgresql:///scratch .venv/bin/python -m benchmarks.seed_history [MESSAGES]

MESSAGES (1,000,000) messages by COPY: two a run, ten runs a thread, over ninety days, half of them
Chinese. A fifth belong to one user, `history-large`; the others have 200 each. Prints what it took.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Final
from uuid import UUID, uuid4

import django

from benchmarks.words import Writer

LARGE: Final = "history-large"
_RUNS: Final = 10
_OF_OTHERS: Final = 200
_CHUNK: Final = 500  # threads
_DAYS: Final = 90
_COPIES: Final = {
    "conversations_thread": "id, owner_id, title, last_seq, created_at, updated_at",
    "conversations_run": "id, owner_id, thread_id, thread_seq, request_id, dialect, model, request, "
    "status, deadline_at, deadline_s, finished_at, created_at, folded",
    "conversations_message": "id, owner_id, thread_id, run_id, seq, role, content, metadata, created_at",
}
Rows = dict[str, list[tuple[Any, ...]]]


def seed(messages: int) -> UUID:
    """Write the conversations; the id of the user with much."""
    from config import database
    from config.auth.models import User

    threads = max(2, messages // (2 * _RUNS))
    large, _ = User.objects.get_or_create(username=LARGE)
    others = [
        User(username=f"history-{uuid4().hex}") for _ in range(max(1, messages * 4 // 5 // _OF_OTHERS))
    ]
    User.objects.bulk_create(others, batch_size=1_000)
    owners = [
        large.pk if number % 5 == 0 else others[number % len(others)].pk for number in range(threads)
    ]
    database.run_sync(_write(owners))
    return UUID(str(large.pk))


async def _write(owners: list[UUID]) -> None:
    from config import database

    for rows in _chunks(owners):
        async with database.connection() as held, held.transaction():
            for table, columns in _COPIES.items():
                async with held.cursor().copy(f"COPY {table} ({columns}) FROM STDIN") as copy:
                    for row in rows[table]:
                        await copy.write_row(row)
        async with database.connection() as held:
            await held.execute("SELECT gin_clean_pending_list('message_tokens')")
    async with database.connection() as held:
        for table in _COPIES:
            await held.execute(f"VACUUM ANALYZE {table}")


def _chunks(owners: list[UUID]) -> Iterator[Rows]:
    """The rows of some threads at a time, the oldest first."""
    writer, chance = Writer(7), Random(7)
    begin, step = datetime.now(UTC) - timedelta(days=_DAYS), timedelta(days=_DAYS) / len(owners)
    rows: Rows = {table: [] for table in _COPIES}
    for number, owner_id in enumerate(owners):
        _thread(rows, owner_id, begin + step * number, "zh" if chance.random() < 0.5 else "en", writer)
        if (number + 1) % _CHUNK == 0 or number + 1 == len(owners):
            yield rows
            rows = {table: [] for table in _COPIES}


def _thread(rows: Rows, owner_id: UUID, at: datetime, language: str, writer: Writer) -> None:
    from conversations.identifiers import uuid7

    thread_id, runs, said = uuid4(), rows["conversations_run"], rows["conversations_message"]
    for place in range(_RUNS):
        asked = at + timedelta(hours=7 * place)
        answered, run_id = asked + timedelta(seconds=8), uuid7(int(asked.timestamp() * 1000))
        ran = (place * 2 + 1, "seed", "text", "global:demo", "{}", "completed", asked, 600, answered)
        runs.append((run_id, owner_id, thread_id, *ran, asked, True))
        for seq, role, words, then in ((1, "user", 12, asked), (2, "assistant", 60, answered)):
            whose = (uuid7(int(then.timestamp() * 1000)), owner_id, thread_id, run_id, place * 2 + seq)
            metadata = f'{{"run_id": "{run_id.hex}"}}'
            said.append((*whose, role, writer.text(language, words), metadata, then))
    title = said[-2 * _RUNS][6][:80]
    rows["conversations_thread"].append((thread_id, owner_id, title, 2 * _RUNS, at, answered))


def main(messages: int) -> None:
    since = time.monotonic()
    seed(messages)
    print(f"seeded {messages} messages in {time.monotonic() - since:.1f} s", flush=True)


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    os.environ.setdefault("LOG_LEVEL", "WARNING")
    django.setup()
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
