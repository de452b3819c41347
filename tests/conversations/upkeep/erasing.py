"""A word that is kept wherever a run's words are kept, and the tables in which it is found."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from django.db import connection

from agents.intake.rerun import rerun
from agents.models.host import HostArtifact, HostState
from config.database import run_sync
from conversations.models import Feedback, Run
from tests.support.client import Client

TABLES = """
SELECT quote_ident(table_schema) || '.' || quote_ident(table_name) FROM information_schema.tables
WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('pg_catalog', 'information_schema')
"""


def tables_with(canary: str) -> set[str]:
    """Every table with a row that holds it in any column, also as bytes."""
    found = set()
    with connection.cursor() as cursor:
        cursor.execute(TABLES)
        for (table,) in cursor.fetchall():
            cursor.execute(
                f"SELECT EXISTS (SELECT FROM {table} t WHERE t::text LIKE ANY(%s))",
                [[f"%{canary}%", f"%{canary.encode().hex()}%"]],
            )
            if cursor.fetchone() == (True,):
                found.add(table.removeprefix("public."))
    return found


def new_canary() -> str:
    """A word that stands nowhere else."""
    return f"canary-{uuid4().hex}"


def ran(client: Client, text: str, **more: Any) -> Run:
    """A run of the demo that has ended."""
    accepted = client.start(text, **more)
    client.wait_for(accepted["run_id"], "completed")
    return Run.objects.get(pk=accepted["run_id"])


def run_again(staff: Client, run: Run) -> Run:
    """The run that staff made again, once it has ended."""
    accepted = run_sync(rerun(run.pk, by=staff.user.pk, version_id=None))
    staff.wait_for(accepted.run_id.hex, "completed")
    return Run.objects.get(pk=accepted.run_id)


def keep_in_every_room(run: Run, canary: str) -> None:
    """What tools, runners and people keep beside a conversation."""
    who = {"owner_id": run.owner_id, "runner_id": "r"}
    HostState.objects.create(
        binding_id=0, scope="actor", scope_key=str(run.owner_id), key=canary, value=[canary], **who
    )
    HostArtifact.objects.create(
        thread_id=run.thread_id,
        run_id=run.pk,
        artifact_type="note",
        mime_type="text/plain",
        name="note",
        size=len(canary),
        sha256="",
        content=canary.encode(),
        **who,
    )
    Feedback.objects.create(run=run, user_id=run.owner_id, score=1, comment=canary, tags=[canary])
