"""A binding of a user's runs to a runner, and what came of a run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID, uuid4

from agents.host import bindings
from agents.models import HostCall, RunnerBinding
from tests.support.client import Client, reply
from tests.support.fakes.mcp_host import wait_until


@contextmanager
def bound(client: Client, runner_id: str, **grants: Any) -> Iterator[RunnerBinding]:
    """The user's runs go to this runner."""
    row = RunnerBinding.objects.create(
        name=f"b-{uuid4().hex[:12]}", runner_id=runner_id, user=client.user, position=1, **grants
    )
    bindings.clear_cache()
    try:
        yield row
    finally:
        row.delete()
        bindings.clear_cache()


def said(client: Client, text: str, **more: Any) -> tuple[str, str, dict[str, Any]]:
    """A run of this text to its end: its id, its answer, its row."""
    accepted = client.start(text, **more)
    run_id = accepted["run_id"]
    frames = client.watch(run_id)
    return run_id, reply(frames), client.wait_for(run_id, "completed", "failed")


def done(client: Client, *steps: list[Any], **more: Any) -> tuple[str, list[Any]]:
    """What came of the probe's steps in a run: its id and the answers."""
    run_id, answer, detail = said(client, json.dumps(steps), **more)
    assert detail["status"] == "completed", detail
    found: list[Any] = json.loads(answer)
    return run_id, found


def audited(run_id: str, count: int) -> list[tuple[str, str]]:
    """(action, result) of a run's calls, once there are so many."""

    def noted() -> list[tuple[str, str]] | None:
        rows = HostCall.objects.filter(run_id=UUID(run_id)).order_by("at", "id")
        found = [(row.action, row.result) for row in rows]
        return found if len(found) >= count else None

    rows: list[tuple[str, str]] = wait_until(noted)
    return rows
