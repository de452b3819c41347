"""The views for BI tools: what they say, who may read them, and every query that we hand out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import ProgrammingError, connection, transaction

from config.database import run_sync
from conversations.metrics.analytics_views import CONTENTS, views
from conversations.upkeep import analyst_roles
from tests.support import metrics_seed, pooler
from tests.support.metrics_seed import Seeded
from tests.support.paths import ROOT

pytestmark = pooler.needs_session  # analysts connect past a pooler

DOCS = ROOT / "docs" / "analytics"
VIEWS = sorted(views())


@pytest.fixture
def seeded(database: None) -> Iterator[Seeded]:
    made = metrics_seed.seed()
    yield made
    metrics_seed.forget(made)


@pytest.fixture
def role(database: None) -> Iterator[str]:
    """A role as the command makes it."""
    name = f"analyst_{uuid4().hex[:12]}"
    call_command("create_analyst_role", name, password=uuid4().hex)
    yield name
    call_command("create_analyst_role", name, drop=True)


def rows(query: str, *values: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(query, values)
        return list(cursor.fetchall())


def may_read(role: str, table: str) -> bool:
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL ROLE {role}")
            cursor.execute(f"SELECT * FROM {table} LIMIT 1")
    except ProgrammingError as error:
        if "permission denied" not in str(error):
            raise
        return False
    return True


def test_the_role_reads_the_views_and_nothing_else(role: str) -> None:
    assert [view for view in VIEWS if may_read(role, view)] == [v for v in VIEWS if v != CONTENTS]
    tables = [name for (name,) in rows("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")]
    assert len(tables) > 30
    assert [table for table in tables if may_read(role, table)] == []
    ((limits,),) = rows("SELECT rolconfig FROM pg_roles WHERE rolname = %s", role)
    assert "default_transaction_read_only=on" in limits


def test_contents_are_read_only_if_that_is_asked_for(role: str) -> None:
    assert not may_read(role, CONTENTS)
    call_command("create_analyst_role", role, contents=True, password=uuid4().hex)
    assert may_read(role, CONTENTS)
    call_command("create_analyst_role", role, password=uuid4().hex)
    assert not may_read(role, CONTENTS)


def as_role(role: str, password: str, **arguments: Any) -> psycopg.Connection[Any]:
    """A connection of an analyst who has lifted what a role may lift itself."""
    ours = connection.get_connection_params()
    named = {name: ours[name] for name in ("dbname", "host", "port") if ours.get(name)}
    opened = psycopg.connect(**named | {"user": role, "password": password} | arguments, autocommit=True)
    opened.execute("SET statement_timeout = 0")
    opened.execute("SET default_transaction_read_only = off")
    return opened


@pytest.fixture
def analyst(role: str) -> Iterator[psycopg.Connection[Any]]:
    password = uuid4().hex
    call_command("create_analyst_role", role, password=password)
    with as_role(role, password) as opened:
        yield opened


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TEMPORARY TABLE mine AS SELECT 1",
        "SELECT lo_from_bytea(0, 'kept for ever')",
        "SELECT lo_create(0)",
        "SELECT pg_advisory_lock(hashtextextended(gen_random_uuid()::text, 0))",
        "SELECT pg_try_advisory_xact_lock_shared(1, 2)",
        "SELECT pg_advisory_xact_lock(hashtext('prompts.activate'), hashtext('system'))",
        "CREATE FUNCTION public.lower(text) RETURNS text LANGUAGE sql AS 'SELECT $1'",
    ],
)
def test_the_role_may_not(analyst: psycopg.Connection[Any], statement: str) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        analyst.execute(statement)


def test_the_role_has_five_connections(role: str) -> None:
    password = uuid4().hex
    call_command("create_analyst_role", role, password=password)
    with ExitStack() as opened:
        for _ in range(analyst_roles.CONNECTIONS):
            opened.enter_context(as_role(role, password))
        with pytest.raises(psycopg.OperationalError, match="too many connections"):
            as_role(role, password)


def test_the_role_stays_out_of_other_databases_of_the_embedded_server(role: str) -> None:
    if rows("SHOW listen_addresses") != [("",)]:
        pytest.skip("on another server that is for whoever owns the other databases")
    password = uuid4().hex
    call_command("create_analyst_role", role, password=password)
    with pytest.raises(psycopg.OperationalError, match="permission denied for database"):
        as_role(role, password, dbname="postgres")


def test_upkeep_ends_what_an_analyst_holds_too_long_and_nothing_else(
    analyst: psycopg.Connection[Any],
) -> None:
    with transaction.atomic():
        assert rows("SELECT 1") == [(1,)]  # a transaction of ours, as old as theirs
        assert run_sync(analyst_roles.end_long_sessions()) == 0
        with analyst.transaction():
            analyst.execute("SELECT FROM analytics_runs")
            assert run_sync(analyst_roles.end_long_sessions(longest_s=0)) == 1
            with pytest.raises(psycopg.OperationalError):
                analyst.execute("SELECT 1")
        assert rows("SELECT 1") == [(1,)]


@pytest.fixture
def plain_owner(database: None) -> Iterator[str]:
    """The application's role where it is no superuser, in a database whose PUBLIC may take locks."""
    analyst_roles.narrow_public()
    name = f"owner_{uuid4().hex[:12]}"
    rows_of = "ALL TABLES IN SCHEMA public"
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE ROLE {name} CREATEROLE")
        cursor.execute(f"GRANT ALL ON {rows_of} TO {name} WITH GRANT OPTION")
        cursor.execute("GRANT EXECUTE ON FUNCTION pg_advisory_lock(bigint) TO PUBLIC")
    yield name
    with connection.cursor() as cursor:
        cursor.execute(f"DROP OWNED BY {name}")
        cursor.execute(f"DROP ROLE {name}")


def test_without_a_superuser_the_command_shows_what_is_left_and_upkeep_ends_who_uses_it(
    plain_owner: str, capsys: pytest.CaptureFixture[str]
) -> None:
    role, password = f"analyst_{uuid4().hex[:12]}", uuid4().hex
    with connection.cursor() as cursor:
        cursor.execute(f"SET ROLE {plain_owner}")
    try:
        call_command("create_analyst_role", role, password=password)
        shown = capsys.readouterr().out
        with as_role(role, password) as analyst:
            analyst.execute("SELECT pg_advisory_lock(20)")
            with connection.cursor() as cursor:
                cursor.execute(analyst_roles._END, {"longest_s": analyst_roles.LONGEST_S})
                ended = cursor.fetchall()
            with pytest.raises(psycopg.OperationalError):
                analyst.execute("SELECT 1")
        call_command("create_analyst_role", role, drop=True)
    finally:
        with connection.cursor() as cursor:
            cursor.execute("RESET ROLE")
    assert "advisory locks: ALLOWED (EXECUTE ON FUNCTION pg_advisory_lock(bigint))" in shown
    assert "large objects: refused" in shown
    assert "long statements: ended after 300 seconds" in shown
    assert ended == [(True,)]


def test_who_writes_runs_keeps_the_rights_that_public_loses(plain_owner: str) -> None:
    role = f"analyst_{uuid4().hex[:12]}"
    call_command("create_analyst_role", role)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL ROLE {plain_owner}")
        cursor.execute("SELECT pg_advisory_xact_lock(20)")
        cursor.execute("CREATE TEMPORARY TABLE ours () ON COMMIT DROP")
    call_command("create_analyst_role", role, drop=True)


def test_a_password_is_made_and_shown_once(role: str, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("create_analyst_role", role)
    assert re.search(rf"Role {role}, password [\w-]{{32}}  \(shown once\)", capsys.readouterr().out)


@pytest.mark.parametrize("name", ["Robert'); DROP TABLE", "9lives", ""])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(CommandError, match="is no name for a role"):
        call_command("create_analyst_role", name)


def test_the_views_say_what_was_counted_by_hand(seeded: Seeded) -> None:
    runs = rows(
        """SELECT status, queue_wait_ms, first_token_ms, duration_ms, prompt_versions
        FROM analytics_runs WHERE model = %s ORDER BY created_at LIMIT 2""",
        seeded.model,
    )
    assert runs == [
        ("completed", 100, 500, 2500, [seeded.old]),
        ("completed", 200, 1000, 5000, [seeded.old]),
    ]
    ((count, completed, errors),) = rows(
        """SELECT sum(runs)::int, sum(completed)::int, count(*) FILTER (WHERE errors <> '{}')::int
        FROM analytics_days WHERE model = %s""",
        seeded.model,
    )
    assert (count, completed, errors) == (7, 3, 1)
    latency = rows(
        """SELECT n, round(p50::numeric, 1)::float8, round(p95::numeric, 1)::float8
        FROM analytics_latency_days WHERE model = %s AND measured = 'duration_ms' ORDER BY bucket""",
        seeded.model,
    )
    assert latency == [(2, 2543.3, 5086.6), (1, 1386.8, 1386.8)]
    calls = rows("SELECT ok, latency_ms FROM analytics_tool_calls WHERE user_id = %s", seeded.ada.pk)
    assert sorted(calls) == [(False, 480), (True, 120)]
    ((day_calls, succeeded),) = rows(
        """SELECT calls, succeeded FROM analytics_tool_days
        WHERE tool = 'gym.search' AND day = '2026-01-05'"""
    )
    assert (day_calls, succeeded) == (2, 1)
    judged = rows("SELECT score FROM analytics_feedback WHERE user_id = %s", seeded.ada.pk)
    assert sorted(judged) == [(-1,), (1,)]
    names = rows("SELECT name FROM analytics_prompt_versions WHERE version_id = %s", seeded.old)
    assert names == [("coach",)]


def test_every_view_and_column_is_documented() -> None:
    page = (DOCS / "README.md").read_text()
    for view in VIEWS:
        line = next(line for line in page.splitlines() if line.startswith("|") and f"`{view}`" in line)
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {view} LIMIT 0")
            for column in cursor.description or ():
                assert re.search(rf"\b{column.name}\b", line), f"{view}.{column.name}"


def queries() -> list[tuple[str, str]]:
    board = json.loads((ROOT / "deploy" / "grafana" / "analytics.json").read_text())
    found = [(one["title"], one["targets"][0]["rawSql"]) for one in board["panels"]]
    return found + [("variable", one["query"]) for one in board["templating"]["list"][1:]]


@pytest.mark.parametrize(("title", "query"), queries())
def test_every_query_of_the_grafana_dashboard_runs_as_the_role(
    role: str, seeded: Seeded, title: str, query: str
) -> None:
    """Grafana's macros are written out as its manual says (Macros of the PostgreSQL data source)."""
    query = re.sub(r"\$__timeFilter\((\w+)\)", r"\1 BETWEEN '2026-01-01' AND '2026-02-01'", query)
    query = query.replace("$model", seeded.model)
    assert "$" not in query
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL ROLE {role}")
        cursor.execute(query)
        found = cursor.fetchall()
    assert found, title


def test_the_notebook_runs_as_the_role(
    role: str, seeded: Seeded, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from psycopg.conninfo import make_conninfo

    settings = connection.get_connection_params()
    kept = {
        name: settings[name]
        for name in ("host", "port", "user", "password", "dbname")
        if settings.get(name)
    }
    monkeypatch.setenv("PARLEY_ANALYTICS_URL", make_conninfo("", **kept, options=f"-c role={role}"))
    notebook = json.loads((DOCS / "example.ipynb").read_text())
    scope: dict[str, Any] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), scope)
    assert any(row["version"] == f"coach v{seeded.old % 100}" for row in scope["versions"])
    assert "first_token_p50" in capsys.readouterr().out
