"""The views for BI tools: what they say, who may read them, and every query that we hand out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from django.db import ProgrammingError, connection, transaction

from conversations.metrics.views_sql import CONTENTS, views
from tests import metrics_seed
from tests.metrics_seed import Seeded

DOCS = Path(__file__).parent.parent / "docs" / "analytics"
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
    board = json.loads((DOCS / "grafana.json").read_text())
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
