"""What Parley sees of a PgBouncer, with the file of `deploy/`, and what it keeps through it."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import psycopg
import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.db.models.signals import post_migrate
from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from config import database, env, sql
from config.coordination.memory_exchange import Message
from config.coordination.postgres_exchange import PostgresExchange
from config.database import new_connections, pooler
from config.database.pooler import Pooling, UnusablePooler
from config.doctor import database_report
from config.process.pooler_check import require_usable_pooler
from conversations.log import partitions
from tests.support.database import server_url
from tests.support.log_lines import lines_about
from tests.support.pooler import PgBouncer, missing, version

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(bool(missing()), reason=missing()),
]

KEEPS: Final = not missing() and version() >= (1, 22)
SHORT: Final = (
    "SET lock_timeout=5000; SET statement_timeout=60000; SET idle_in_transaction_session_timeout=100"
)
HELD: Final = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 4712"
Put = Callable[..., PgBouncer]


@pytest.fixture
def put(monkeypatch: pytest.MonkeyPatch) -> Iterator[Put]:
    """Put a PgBouncer before the test database of this process."""
    folder = Path(tempfile.mkdtemp(prefix="parley-pooler-"))
    folder.chmod(0o711)  # its user passes through
    started: list[PgBouncer] = []
    name = new_connections.connection_arguments()["dbname"]

    def put(user: str = "", **changes: str | None) -> PgBouncer:
        server = make_conninfo(server_url(), **({"user": user} if user else {}))
        made = PgBouncer(folder / str(len(started)), server, **changes)
        made.start()
        started.append(made)
        there: dict[str, Any] = {**conninfo_to_dict(made.url(name)), "autocommit": True}
        for module in (new_connections, database):
            monkeypatch.setattr(module, "connection_arguments", lambda: there)
        return made

    yield put
    for one in started:
        one.kill()
    shutil.rmtree(folder)


@pytest.fixture
def role() -> Iterator[str]:
    """A role that may connect, and no more: the command of analysts takes that from PUBLIC."""
    name = f"pooled_{uuid4().hex[:8]}"
    given = new_connections.connection_arguments()["dbname"]
    with psycopg.connect(server_url(), autocommit=True) as opened:
        opened.execute(f'CREATE ROLE "{name}" LOGIN')
        opened.execute(f'GRANT CONNECT ON DATABASE "{given}" TO "{name}"')
        yield name
        opened.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", (name,)
        )
        opened.execute(f'REVOKE ALL ON DATABASE "{given}" FROM "{name}"')
        opened.execute(f'DROP ROLE "{name}"')


def play(work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Run it on a loop of its own, whose pools are closed after it."""

    async def whole() -> Any:
        try:
            return await work()
        finally:
            await database.close()

    return asyncio.run(whole())


def test_without_a_pooler_none_is_seen() -> None:
    assert database.find_pooling(direct=True) == Pooling("none", keeps_statements=True)


@pytest.mark.parametrize(("turns", "size"), [("0", "40"), ("1", "2"), ("1", "1")])
def test_transaction_mode_is_seen_and_whether_it_keeps_prepared_statements(
    put: Put, turns: str, size: str
) -> None:
    put(server_round_robin=turns, default_pool_size=size)
    assert database.find_pooling() == Pooling("transaction", keeps_statements=KEEPS)


def test_session_mode_is_seen_and_parley_sets_the_limits_itself(put: Put) -> None:
    put(pool_mode="session", connect_query=None)
    assert database.find_pooling() == Pooling("session", keeps_statements=True)
    with database.connect() as held:
        assert shown(held) == ["5s", "1min", "10s", "UTC"]
        assert held.prepare_threshold == 0


def shown(held: psycopg.Connection[Any]) -> list[str]:
    names = [*pooler.LIMITS, "TimeZone"]
    return [row[0] for name in names for row in held.execute(f"SHOW {name}").fetchall()]


def test_statement_mode_is_refused_with_the_fix(put: Put) -> None:
    put(pool_mode="statement")
    with pytest.raises(CommandError, match="Set pool_mode = transaction there"):
        require_usable_pooler()


def test_a_pooler_without_limits_is_refused_and_the_fix_that_it_names_mends_it(
    put: Put, role: str
) -> None:
    put(role, connect_query=None)
    with pytest.raises(CommandError, match="its connections have no lock_timeout, statement") as refusal:
        require_usable_pooler()
    with pytest.raises(UnusablePooler):
        database.connect()
    (finding,) = database_report.report()
    assert (finding.thing, finding.state) == ("pooler", "fault")
    fix = str(refusal.value).partition("do it: ")[2].partition(" Then ")[0]
    with psycopg.connect(server_url(), autocommit=True) as opened:
        for statement in filter(None, fix.split(";")):
            opened.execute(statement)
        opened.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", (role,)
        )
    require_usable_pooler()
    with database.connect() as held:
        assert shown(held)[:3] == ["5s", "1min", "10s"]


def test_a_pool_says_why_it_has_no_connection(
    put: Put, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(database._WAIT_S, "serving", 1)
    put(pool_mode="statement")
    with pytest.raises(Exception, match="sec"):
        play(lambda: sql.one("SELECT 1"))
    assert "Set pool_mode = transaction there" in caplog.text


@pytest.mark.parametrize("command", ["web", "worker"])
def test_a_process_that_would_fail_now_and_then_does_not_start(
    put: Put, settings: Any, command: str
) -> None:
    settings.COORDINATION = "postgresql"  # several processes ask for that first
    put(pool_mode="statement")
    with pytest.raises(CommandError, match="Set pool_mode = transaction there"):
        call_command(command)


@pytest.mark.parametrize("is_direct", [True, False])
def test_notifications_are_listened_to_past_the_pooler(put: Put, settings: Any, is_direct: bool) -> None:
    settings.DIRECT_DATABASE_URL = server_url() if is_direct else ""
    put()
    exchange, told = PostgresExchange(), list[Message]()

    async def listen() -> None:
        with exchange.subscribe("pooled", told.append), suppress(TimeoutError):
            async with asyncio.timeout(10 if is_direct else 1):
                while {"number": 1} not in told:
                    exchange.notify("pooled", {"number": 1})
                    await asyncio.sleep(0.02)

    with lines_about("notifications") as lines:
        play(listen)
    assert ({"number": 1} in told) is is_direct
    events = [] if is_direct else ["notifications do not arrive"]
    assert [line["event"] for line in lines] == events


def test_migrate_goes_past_the_pooler_or_is_refused(put: Put, settings: Any) -> None:
    settings.DIRECT_DATABASE_URL = ""
    put()
    with pytest.raises(CommandError, match="Set DIRECT_DATABASE_URL"):
        call_command("migrate", verbosity=0)
    settings.DIRECT_DATABASE_URL = server_url()
    settings.DIRECT_DATABASE = env.django_database("DIRECT_DATABASE_URL", server_url())
    past = []

    def note(**_: Any) -> None:
        past.append((sql.fetch("SELECT pg_backend_pid()"), connection.settings_dict["OPTIONS"]))

    post_migrate.connect(note, dispatch_uid="past")
    before = connection.settings_dict
    try:
        call_command("migrate", "sessions", verbosity=0)
    finally:
        post_migrate.disconnect(dispatch_uid="past")
    assert past
    assert all("pool" not in options for _, options in past)
    assert connection.settings_dict is before


def test_no_pooler_is_no_matter_while_the_database_does_not_answer(put: Put) -> None:
    put().kill()
    require_usable_pooler()


# --- what is kept in transaction mode -------------------------------------------------------------


def test_statements_find_what_they_have_prepared_on_every_connection_of_the_server(put: Put) -> None:
    """With names that the pooler does not know, one of the first would meet a stranger."""
    put(server_round_robin="1", default_pool_size="4")

    async def ask(number: int) -> int:
        found = await sql.one("SELECT %s::int + 1 FROM pg_sleep(0.001)", (number,))
        return int(found[0])

    async def many() -> list[int]:
        return await asyncio.gather(*(ask(number) for number in range(400)))

    assert play(many) == list(range(1, 401))


def test_after_a_rollback_statements_are_found_too(put: Put) -> None:
    put(server_round_robin="1", default_pool_size="3")

    async def fail_and_go_on() -> list[Any]:
        found: list[Any] = []
        for number in range(12):
            async with database.connection() as held:
                with pytest.raises(psycopg.errors.DivisionByZero):
                    async with held.transaction():
                        await held.execute("SELECT 1 / %s", (0,))
                found += await (await held.execute("SELECT %s::int", (number,))).fetchone() or ()
        return found

    assert play(fail_and_go_on) == list(range(12))


def test_two_processes_never_have_a_lock_at_once_and_it_goes_with_its_block(put: Put) -> None:
    put(server_round_robin="1", default_pool_size="8")
    inside: list[int] = []

    async def enter(number: int) -> None:
        async with sql.advisory_lock(4711, wait=True) as acquired:
            assert acquired
            inside.append(number)
            await sql.one("SELECT pg_sleep(0.01)")  # meanwhile others ask, on every connection
            assert inside == [number]
            inside.remove(number)

    async def many() -> bool:
        async with asyncio.TaskGroup() as tasks:
            for number in range(4):
                tasks.create_task(enter(number))
        async with sql.advisory_lock(4711) as first, sql.advisory_lock(4711) as second:
            return first and not second

    assert play(many)


def test_a_lock_may_be_held_for_longer_than_a_transaction_may_pause(put: Put) -> None:
    put(connect_query=SHORT)

    async def hold() -> Any:
        async with sql.advisory_lock(4712):
            await asyncio.sleep(0.4)
            return await sql.one(HELD)

    assert play(hold) == (1,)


def test_times_are_those_of_utc_whatever_the_server_has(put: Put, role: str) -> None:
    with psycopg.connect(server_url(), autocommit=True) as opened:
        opened.execute(f"ALTER ROLE \"{role}\" SET timezone = 'Asia/Shanghai'")
        for name, limit in pooler.LIMITS.items():
            opened.execute(f"ALTER ROLE \"{role}\" SET {name} = '{limit}'")
    put(role, connect_query=None, server_round_robin="1", default_pool_size="3")

    async def read() -> set[Any]:
        return {(await sql.one("SHOW TimeZone"))[0] for _ in range(12)}

    assert play(read) == {"UTC"}


def test_what_needs_a_session_goes_past_the_pooler_or_is_refused(put: Put, settings: Any) -> None:
    settings.DIRECT_DATABASE_URL = ""
    put()

    async def use(work: Callable[[AsyncConnection[Any]], Any]) -> Any:
        async with database.session() as own:
            return await work(own)

    async def process(own: AsyncConnection[Any]) -> tuple[Any, int]:
        row = await (await own.execute("SELECT pg_backend_pid()")).fetchone()
        return row, own.info.backend_pid

    with pytest.raises(UnusablePooler, match="Set DIRECT_DATABASE_URL"):
        play(lambda: use(process))
    settings.DIRECT_DATABASE_URL = server_url()
    settings.DIRECT_DATABASE = {"NAME": conninfo_to_dict(server_url())["dbname"]}
    row, pid = play(lambda: use(process))
    assert row == (pid,)


def test_without_an_address_past_the_pooler_an_index_stays_as_it_is(
    put: Put, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.DIRECT_DATABASE_URL = ""
    put()
    monkeypatch.setattr(partitions, "_packed_at", -partitions._PACK_EVERY_S)
    assert play(lambda: partitions.rebuild_sparse_index(larger_than=0)) is None


def test_the_doctor_names_the_pooler_and_what_is_missing(put: Put, settings: Any) -> None:
    settings.DIRECT_DATABASE_URL = ""
    put()
    found = {one.thing: one for one in database_report.report()}
    assert found["pooler"].state == ("ok" if KEEPS else "warning")
    assert "one in transaction mode" in found["pooler"].text
    assert (found["DIRECT_DATABASE_URL"].state, found["connections"].state) == ("warning", "ok")
    settings.DIRECT_DATABASE_URL = server_url()
    settings.DIRECT_DATABASE = {"NAME": "postgres", "HOST": "", "PORT": ""}
    found = {one.thing: one for one in database_report.report()}
    assert found["DIRECT_DATABASE_URL"].state == "ok"


def test_it_is_looked_at_once_a_minute(put: Put, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[float] = []
    examine = pooler._examine

    def look(arguments: Any) -> Pooling:
        looks.append(time.monotonic())
        return examine(arguments)

    monkeypatch.setattr(pooler, "_examine", look)
    put()
    for _ in range(3):
        database.connect().close()
    assert len(looks) == 1
    monkeypatch.setattr(pooler, "_REMEMBERED_S", -1.0)
    database.connect().close()
    assert len(looks) == 2
