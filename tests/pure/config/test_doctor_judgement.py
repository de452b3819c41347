"""What the doctor says of servers that a test cannot have."""

from __future__ import annotations

from typing import Any

import pytest
from psycopg import OperationalError

from config.database.pooler import Pooling
from config.doctor import database_report
from config.doctor.database_report import Facts
from config.doctor.findings import Finding, without_secrets
from config.doctor.screen import render

SOUND = Facts(
    version="16.2 (Debian)",
    version_number=160002,
    encoding="UTF8",
    fsync="on",
    full_page_writes="on",
    synchronous_commit="on",
    max_connections=100,
    reserved=3,
    is_read_only=False,
    size="8 MB",
)


def judged(**changes: Any) -> dict[str, Finding]:
    return {one.thing: one for one in database_report.judge(SOUND._replace(**changes), "db:5432/parley")}


def test_a_sound_server_is_ok() -> None:
    assert {one.state for one in judged().values()} == {"ok"}
    assert judged()["server"].text == "PostgreSQL 16.2 at db:5432/parley, 8 MB"


@pytest.mark.parametrize(
    ("changes", "thing", "state", "fix"),
    [
        ({"version_number": 130009}, "server", "fault", "PostgreSQL 14"),
        ({"is_read_only": True}, "server", "fault", "primary"),
        ({"encoding": "SQL_ASCII"}, "server", "fault", "UTF8"),
        ({"fsync": "off"}, "durability", "fault", "fsync"),
        ({"full_page_writes": "off"}, "durability", "fault", "full_page_writes"),
        ({"synchronous_commit": "off"}, "durability", "warning", "synchronous_commit"),
        ({"max_connections": 20}, "connections", "warning", "max_connections"),
    ],
)
def test_what_a_server_lacks_is_named_with_the_fix(
    changes: dict[str, Any], thing: str, state: str, fix: str
) -> None:
    found = judged(**changes)
    assert (found[thing].state, fix in found[thing].fix) == (state, True)
    assert {one.state for name, one in found.items() if name != thing} == {"ok"}


@pytest.mark.parametrize(
    ("said", "meaning"),
    [
        (
            'FATAL:  password authentication failed for "hush"',
            "It refuses the user or the password.",
        ),
        ("fe_sendauth: no password supplied", "It asks for a password."),
        ("FATAL:  sorry, too many clients already", "All its connections are taken."),
        ("FATAL:  SASL authentication failed", "It refuses the user or the password."),
        ("FATAL:  no such database: hush", "It has no such database or user."),
        ("FATAL:  no more connections allowed (max_client_conn)", "All its connections are taken."),
        (
            "FATAL:  pgbouncer cannot connect to server",
            "The pooler there does not reach PostgreSQL.",
        ),
        ("connection timeout expired", "It does not answer in time."),
        ("server does not support SSL, but SSL was required", "It does not agree on TLS."),
        ("something hush", "it cannot be asked (OperationalError)."),
    ],
)
def test_a_refusal_is_told_in_words_of_ours(said: str, meaning: str) -> None:
    text, fix = database_report.explain(OperationalError(said))
    assert text.endswith(meaning)
    assert fix
    assert "hush" not in text + fix


@pytest.mark.parametrize(
    ("pooling", "direct", "states"),
    [
        (Pooling("none", keeps_statements=True), "", {}),
        (Pooling("session", keeps_statements=True), "", {"pooler": "ok"}),
        (Pooling("transaction", keeps_statements=True), "postgresql:///x", {"pooler": "ok"}),
        (
            Pooling("transaction", keeps_statements=True),
            "",
            {"pooler": "ok", "DIRECT_DATABASE_URL": "warning"},
        ),
        (
            Pooling("transaction", keeps_statements=False),
            "postgresql:///x",
            {"pooler": "warning"},
        ),
    ],
)
def test_a_pooler_is_named_with_what_it_lacks(
    settings: Any, pooling: Pooling, direct: str, states: dict[str, str]
) -> None:
    settings.DIRECT_DATABASE_URL = direct
    found = list(database_report.judge_pooling(pooling))
    assert {one.thing: one.state for one in found} == states
    assert all(one.fix for one in found if one.state == "warning")


def test_behind_a_pooler_the_connections_are_its_own() -> None:
    few = SOUND._replace(max_connections=10)
    found = {one.thing: one for one in database_report.judge(few, "db:6432/parley", is_pooled=True)}
    assert found["connections"].state == "ok"


@pytest.mark.parametrize(
    ("address", "far"),
    [("", False), ("127.0.0.1", False), ("10.0.0.5", False), ("8.8.8.8", True), ("/run/pg", False)],
)
def test_only_an_address_of_the_open_network_is_far(address: str, far: bool) -> None:
    assert database_report._is_far(address) is far


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://me:hush@h:6379/0?password=hush", "redis://h:6379/0"),
        ("amqp://me:hush@[::1]:5672//", "amqp://[::1]:5672//"),
        ("redis://me:hush@h:port/0", "redis://…"),
        ("unix:///run/redis.sock", "unix:///run/redis.sock"),
    ],
)
def test_an_address_is_shown_without_its_secrets(url: str, shown: str) -> None:
    assert without_secrets(url) == shown


def test_a_screen_is_grouped_and_counted() -> None:
    screen = render(
        [
            Finding("settings", "keys", "ok", "fine"),
            Finding("database", "server", "fault", "gone", "Start it."),
            Finding("database", "connections", "warning", "few"),
        ]
    )
    assert screen.splitlines()[1:] == [
        "settings",
        "  ok       keys               fine",
        "database",
        "  fault    server             gone",
        "                              → Start it.",
        "  warning  connections        few",
        "1 fault, 1 warning",
    ]
