"""What a migration keeps others from: `pg_locks` every few milliseconds, on a thread beside it.

Give the migration the environment of `APPLICATION`, by which its backend is known.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self

import psycopg

NAME: Final = "parley-migrate"
APPLICATION: Final = {"PGAPPNAME": NAME}
_EVERY_S: Final = 0.003
_WAITING: Final = """
SELECT max(extract(epoch FROM clock_timestamp() - waitstart))::float8 FROM pg_locks
WHERE NOT granted AND pid NOT IN (SELECT pid FROM pg_stat_activity WHERE application_name = %s)
"""
_HELD: Final = """
SELECT DISTINCT lock.virtualtransaction, lock.relation::regclass::text
FROM pg_locks lock JOIN pg_stat_activity activity USING (pid)
WHERE lock.granted AND activity.application_name = %s AND activity.datname = current_database()
    AND lock.mode IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
    AND lock.relation IN (SELECT relid FROM pg_stat_user_tables)
"""


@dataclass
class Watch:
    """In a `with` block: how long others waited, and how long the migration kept which old table.

    Tables that were made meanwhile are nobody's yet and do not count. Seconds; a time that a table was
    kept lasts to the first look that finds it free, so it is at most as long as said, and one of less
    than the 3 ms between two looks may be missed.
    """

    url: str
    longest_wait_s: float = 0.0
    looks: int = 0
    held_s: dict[str, float] = field(default_factory=dict)
    _kept: dict[tuple[str, str], float] = field(default_factory=dict)
    _leaving: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._look_for_ever, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leaving.set()
        self._thread.join()
        self._note(set(), time.monotonic())

    @property
    def longest_held_s(self) -> float:
        return max(self.held_s.values(), default=0.0)

    def _look_for_ever(self) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            tables = {name for (name,) in connection.execute("SELECT relname FROM pg_stat_user_tables")}
            while not self._leaving.wait(_EVERY_S):
                with suppress(psycopg.errors.UndefinedTable):  # dropped between two steps of the look
                    self._look(connection, tables)

    def _look(self, connection: psycopg.Connection[tuple[object, ...]], old: set[str]) -> None:
        self.looks += 1
        row = connection.execute(_WAITING, [NAME]).fetchone()
        waited = row[0] if row else None
        self.longest_wait_s = max(self.longest_wait_s, float(str(waited)) if waited else 0.0)
        held = {(str(each), str(table)) for each, table in connection.execute(_HELD, [NAME])}
        now = time.monotonic()
        self._note(held, now)
        for key in held:
            if key[1] in old:
                self._kept.setdefault(key, now)

    def _note(self, held: set[tuple[str, str]], now: float) -> None:
        """Add up what is kept no more."""
        for key in self._kept.keys() - held:
            table, took = key[1], now - self._kept.pop(key)
            self.held_s[table] = max(self.held_s.get(table, 0.0), took)
