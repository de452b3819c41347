"""Wall clocks that a test can set while processes run, of Python processes and of PostgreSQL.

A Python process reads a file (see `clock_hook`). In PostgreSQL functions of the names that our SQL
uses come before its own ones; only connections made afterwards see them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg import sql

_HOOK: Final = Path(__file__).parent / "clock_hook"
_FUNCTIONS: Final = ("clock_timestamp", "statement_timestamp", "now")
_OWN: Final = """
CREATE SCHEMA clock;
CREATE TABLE clock.is AS SELECT interval '0' AS ahead;
"""
_FUNCTION: Final = """
CREATE FUNCTION clock.{name}() RETURNS timestamptz LANGUAGE sql VOLATILE
AS 'SELECT pg_catalog.{name}() + (SELECT ahead FROM clock.is)'
"""


class Clock:
    """The clock of the processes that are started with `environment`."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "clock"
        self.jump_to(0)

    @property
    def environment(self) -> dict[str, str]:
        return {"PYTHONPATH": str(_HOOK), "TEST_CLOCK_FILE": str(self._file)}

    def jump_to(self, seconds: float) -> None:
        """From now on the wall clock is so far from the right time."""
        draft = self._file.with_suffix(".new")
        draft.write_text(str(seconds))
        draft.rename(self._file)


class HostClock(Clock):
    """The same, and PostgreSQL's clock with it, as on one host."""

    def __init__(self, folder: Path, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        super().__init__(folder)

    def jump_to(self, seconds: float) -> None:
        super().jump_to(seconds)
        self._connection.execute("UPDATE clock.is SET ahead = make_interval(secs => %s)", (seconds,))


@contextmanager
def database_clock(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """Connections made meanwhile tell the time of `HostClock`."""
    row = connection.execute("SELECT current_database() AS name").fetchone()
    assert row is not None
    name = sql.Identifier(row.name)
    connection.execute(_OWN)
    for function in _FUNCTIONS:
        connection.execute(sql.SQL(_FUNCTION).format(name=sql.Identifier(function)))
    path = sql.SQL("ALTER DATABASE {} SET search_path = clock, pg_catalog, public").format(name)
    connection.execute(path)
    try:
        yield
    finally:
        connection.execute(sql.SQL("ALTER DATABASE {} RESET search_path").format(name))
        connection.execute("DROP SCHEMA clock CASCADE")
