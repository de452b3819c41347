"""Notifications through PostgreSQL: whole, in order, and heard again after every fault."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, closing
from functools import partial
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from pytest_django import Settings

from config import database
from config.coordination import notifications, postgres_exchange, postgres_listener
from config.coordination.memory_exchange import MISSED, Message
from config.coordination.postgres_exchange import PostgresExchange
from config.database import new_connections
from config.process import cancellation
from tests.support.log_lines import lines_about

LISTENERS = """
SELECT pid FROM pg_stat_activity WHERE application_name = %s AND datname = current_database()
"""


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_listener, "_FIRST_PAUSE_S", 0.02)


@pytest.fixture
def name(monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of this test's connections, as other tests listen at the same time."""
    found = f"parley test {uuid4().hex[:8]}"
    monkeypatch.setattr(postgres_listener, "NAME", found)
    return found


def play(work: Coroutine[Any, Any, None]) -> None:
    async def to_its_end() -> None:
        try:
            async with asyncio.timeout(30):
                await work
        finally:
            await database.close()
            # As the processes end: a pool that the listener opens just now swallows one cancellation.
            await cancellation.cancel_all(asyncio.all_tasks() - {asyncio.current_task()})

    asyncio.run(to_its_end())


async def until(true: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not true():  # noqa: ASYNC110 (what is waited for is in another program)
            await asyncio.sleep(0.005)


def _has(told: list[Message], message: Message, times: int) -> bool:
    return told.count(message) == times


@asynccontextmanager
async def two_processes(group: str) -> AsyncIterator[tuple[PostgresExchange, list[Message]]]:
    """One that notifies, and what another one has heard since it listens."""
    one, other, told = PostgresExchange(), PostgresExchange(), list[Message]()
    with other.subscribe(group, told.append):
        await until(lambda: told == [MISSED])
        told.clear()
        yield one, told


def test_what_one_process_sends_another_hears_whole_and_in_order() -> None:
    async def work() -> None:
        group = uuid4().hex
        sent: list[Message] = [
            {"wake": True},
            {"batches": [[b"\x00\xff", 1, 2, "é".encode()]]},
            {"large": bytes(range(256)) * 400},
            {"same parts": b"x" * 5_900 * 6},
            {"number": 5},
        ]
        async with two_processes(group) as (one, told):
            for message in sent:
                one.notify(group, message)
            one.notify(uuid4().hex, {"for": "others"})
            await until(lambda: len(told) == len(sent))
            await asyncio.sleep(0.05)
        assert told == sent

    play(work())


def test_a_command_that_ends_at_once_has_notified(settings: Settings) -> None:
    settings.COORDINATION = "postgresql"
    group, told = uuid4().hex, list[Message]()

    async def command() -> None:
        notifications.notify(group, {"cancel": b"x"})

    async def work() -> None:
        exchange = PostgresExchange()
        with exchange.subscribe(group, told.append):
            await until(lambda: told == [MISSED])
            await asyncio.to_thread(asyncio.run, database._closing(command()))
            await until(lambda: {"cancel": b"x"} in told)

    play(work())


def test_what_gathers_goes_with_one_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    statements: list[int] = []

    async def work() -> None:
        group = uuid4().hex
        async with two_processes(group) as (one, told):

            def counted() -> database.connection:
                statements.append(len(told))
                return database.connection()

            seen = SimpleNamespace(connection=counted, finish_before_close=database.finish_before_close)
            monkeypatch.setattr(postgres_exchange, "database", seen)
            for number in range(500):
                one.notify(group, {"number": number})
            await until(lambda: len(told) == 500)
        assert told == [{"number": number} for number in range(500)]

    play(work())
    assert len(statements) == 1


def test_a_connection_that_is_cut_is_made_again_and_listeners_look_by_themselves(name: str) -> None:
    async def work() -> None:
        group = uuid4().hex
        async with two_processes(group) as (one, told):
            for number in range(3):
                with database.connect() as direct:
                    assert len(direct.execute(LISTENERS, (name,)).fetchall()) == 1
                    cut = f"SELECT pg_terminate_backend(pid) FROM ({LISTENERS}) AS found"
                    direct.execute(cut, (name,))
                await until(partial(_has, told, MISSED, number + 1))
                one.notify(group, {"number": number})
                await until(partial(_has, told, {"number": number}, 1))

    with lines_about("LISTEN", "notifications") as lines:
        play(work())
    events = [line["event"] for line in lines]
    assert events[:1] == ["LISTEN is down"]
    assert set(events) == {"LISTEN is down", "LISTEN is back"}


def test_a_group_that_is_subscribed_to_later_is_heard_too(name: str) -> None:
    async def work() -> None:
        group, later = uuid4().hex, list[Message]()
        async with two_processes(group) as (one, told):
            another = PostgresExchange()
            with another.subscribe(group, told.append):
                await until(lambda: MISSED in told)
                with another.subscribe(f"{group}-b", later.append):
                    await until(lambda: MISSED in later)
                    one.notify(f"{group}-b", {"number": 1})
                    await until(lambda: {"number": 1} in later)
                with database.connect() as direct:
                    assert len(direct.execute(LISTENERS, (name,)).fetchall()) == 2

    play(work())


def test_a_server_that_no_longer_answers_is_left(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_listener, "BEAT_S", 0.05)
    monkeypatch.setattr(postgres_listener, "_SILENT_S", 0.2)
    serve = PostgresListenerThatSleeps(monkeypatch)

    async def work() -> None:
        group = uuid4().hex
        async with two_processes(group) as (one, told):
            serve.sleeps = True
            await until(lambda: MISSED in told)
            one.notify(group, {"number": 1})
            await until(lambda: {"number": 1} in told)

    play(work())


class PostgresListenerThatSleeps:
    """Makes the next connection that listens wait for an answer that does not come."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sleeps = False
        ask = postgres_listener.ask

        async def sleepy(connection: psycopg.AsyncConnection[Any]) -> None:
            if self.sleeps:
                self.sleeps = False
                await connection.execute("SELECT pg_sleep(30)")
            await ask(connection)

        monkeypatch.setattr(postgres_listener, "ask", sleepy)


def test_a_pooler_that_splits_sessions_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_listener, "BEAT_S", 0.05)

    async def no_listen(connection: psycopg.AsyncConnection[Any], channel: str) -> None:
        await connection.execute("SELECT 1")  # another session listens

    monkeypatch.setattr(postgres_listener, "listen", no_listen)

    async def work() -> None:
        exchange, told = PostgresExchange(), list[Message]()
        with exchange.subscribe("group", told.append):
            await asyncio.sleep(0.5)
            monkeypatch.undo()  # the setting is mended: a new connection is not even needed
            await asyncio.sleep(0)

    with lines_about("notifications") as lines:
        play(work())
    assert [(line["event"], line["fix"]) for line in lines] == [
        ("notifications do not arrive", postgres_listener.POOLER)
    ]


def test_while_the_database_is_away_nobody_waits_and_the_newest_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(postgres_exchange, "_WAITING", 100)
    monkeypatch.setattr(database, "_WAIT_S", {"serving": 0.3, "analytics": 0.3})
    nowhere = new_connections.connection_arguments() | {"host": "127.0.0.1", "port": 1}
    for module in (database, new_connections):
        monkeypatch.setattr(module, "connection_arguments", lambda: nowhere)
    monkeypatch.setattr(new_connections, "_session_arguments", lambda: nowhere)

    async def work() -> None:
        exchange = PostgresExchange()
        with exchange.subscribe("group", lambda _: None):
            for number in range(1_000):
                exchange.notify("group", {"number": number})
            assert len(exchange._sender._pending) == 100
            await until(lambda: exchange._sender._is_down and not exchange._sender._pending)
            exchange.notify("group", {"number": 1})

    with lines_about("LISTEN", "notifications") as lines:
        play(work())
    assert [line["event"] for line in lines] == ["LISTEN is down", "notifications not sent"]


def test_what_is_no_notification_of_ours_is_passed_over() -> None:
    async def work() -> None:
        group = uuid4().hex
        async with two_processes(group) as (one, told):
            with closing(database.connect()) as foreign:
                for payload in ("", "no Base64!", "wQ==", "1.0:no Base64!"):  # wQ== is no MessagePack
                    foreign.execute("SELECT pg_notify(%s, %s)", (f"parley_{group}", payload))
            one.notify(group, {"number": 1})
            await until(lambda: told)
        assert told == [{"number": 1}]

    with lines_about("notification") as lines:
        play(work())
    assert [line["event"] for line in lines] == ["notification not understood"] * 4
