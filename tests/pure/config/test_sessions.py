"""Nothing that Parley runs needs a session of the database for longer than a transaction.

A pooler in transaction mode gives the next transaction another one.
"""

from __future__ import annotations

import re
from typing import Final

import pytest

from tests.support.paths import ROOT

SESSIONS: Final = re.compile(
    r"pg_(?:try_)?advisory_(?:un)?lock\(|chunked_cursor|WITH HOLD|\bCREATE TEMP"
    r"|\bLISTEN (?:\{|[a-z_]+[\"';])|server_side_binding"
    r"|\.cursor\(\s*name=|[\"']SET (?!LOCAL\b)[a-z_ ]+(?:=| TO )"
)
KNOWN: Final = {
    "config/coordination/postgres_listener.py": ["LISTEN {"],
    "config/doctor/service_report.py": ["LISTEN {"],
    "config/management/commands/migrate.py": ["pg_try_advisory_lock(", "pg_advisory_unlock("],
    "conversations/log/partitions.py": ["SET statement_timeout ="],
}
"""On connections of `session`, `django_session` or `connect(direct=True)`."""


@pytest.mark.parametrize(
    "text",
    [
        'execute("SET statement_timeout = 0")',
        "SELECT pg_advisory_lock(1)",
        "SELECT pg_try_advisory_lock(1)",
        "SELECT pg_advisory_unlock(1)",
        "CREATE TEMP TABLE mine",
        'execute("LISTEN mine")',
        'sql.SQL("LISTEN {}")',
        "connection.chunked_cursor()",
        'connection.cursor(name="x")',
    ],
)
def test_what_a_session_keeps_is_found(text: str) -> None:
    assert SESSIONS.search(text)


@pytest.mark.parametrize(
    "text",
    ['"SET LOCAL lock_timeout = 1"', "pg_advisory_xact_lock(1)", "UPDATE x SET y = 1", "LISTEN is down"],
)
def test_what_a_transaction_keeps_is_not(text: str) -> None:
    assert not SESSIONS.search(text)


def test_no_module_keeps_anything_in_a_session() -> None:
    found = {
        str(path.relative_to(ROOT)): [one.strip("\"'") for one in hits]
        for app in ("agents", "config", "conversations", "prompts")
        for path in sorted((ROOT / app).rglob("*.py"))
        if "migrations" not in path.parts and (hits := SESSIONS.findall(path.read_text()))
    }
    assert found == KNOWN
