"""Seven runs whose every number is known: test_metrics.py counts them by hand.

Two people, four conversations, a Monday and a Tuesday long ago (2026-01-05 and -06, UTC).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import count
from random import SystemRandom
from typing import Any, Final
from uuid import UUID, uuid4

from django.contrib.auth import get_user_model

from config import database
from conversations.identifiers import uuid7
from conversations.metrics import rollups
from conversations.models import Feedback, Message, Run, Thread

MONDAY: Final = date(2026, 1, 5)
TUESDAY: Final = date(2026, 1, 6)
RANGE: Final = {"from": "2026-01-05", "to": "2026-01-06"}


@dataclass(frozen=True)
class Seeded:
    """Who and what was made; `model` is nobody else's, so a filter by it sees these runs alone."""

    model: str
    old: int
    new: int
    ada: Any
    bob: Any
    threads: tuple[Thread, ...]
    runs: tuple[Run, ...]


def seed() -> Seeded:
    """Make the runs and add up their two days."""
    model = f"m-{uuid4().hex[:12]}"
    old = SystemRandom().randrange(10**8, 10**9)
    users = get_user_model().objects
    ada, bob = users.create(username=f"ada-{uuid4().hex}"), users.create(username=f"bob-{uuid4().hex}")
    threads = tuple(Thread.objects.create(owner=owner) for owner in (ada, ada, bob, bob))
    places = {thread.pk: count(1) for thread in threads}

    def ran(thread: Thread, at: str, status: str, version: int = old, **more: Any) -> Run:
        created = datetime.fromisoformat(f"{at}+00:00")
        moments = {
            name: created + timedelta(milliseconds=more.pop(name))
            for name in ("started_at", "first_token_at", "finished_at")
            if name in more
        }
        return Run.objects.create(
            id=uuid7(int(created.timestamp() * 1000)),
            owner_id=thread.owner_id,
            thread=thread,
            thread_seq=next(places[thread.pk]),
            request_id="seeded",
            model=model,
            request={"metadata": {"order": 7}},
            status=status,
            deadline_at=datetime(2100, 1, 1, tzinfo=UTC),
            deadline_s=600,
            prompt_versions=[_version(version)],
            created_at=created,
            **{"dialect": "text", "runner": "chat"} | more | moments,
        )

    first = ran(
        threads[0],
        "2026-01-05T10:00:00",
        "completed",
        started_at=100,
        first_token_at=500,
        finished_at=2_500,
        input_tokens=100,
        output_tokens=50,
        cached_tokens=20,
        cost_usd="0.25",
    )
    second = ran(
        threads[0],
        "2026-01-05T10:20:00",
        "completed",
        started_at=200,
        first_token_at=1_000,
        finished_at=5_000,
        input_tokens=200,
        output_tokens=100,
        reasoning_tokens=40,
        cost_usd="0.5",
    )
    failed = ran(
        threads[1],
        "2026-01-05T11:00:00",
        "failed",
        started_at=100,
        finished_at=1_000,
        input_tokens=10,
        error_code="provider_error",
    )
    late = ran(
        threads[2],
        "2026-01-05T10:30:00",
        "failed",
        started_at=300,
        first_token_at=1_000,
        finished_at=600_000,
        error_code="deadline_exceeded",
    )
    stopped = ran(
        threads[2],
        "2026-01-05T23:30:00",
        "cancelled",
        started_at=100,
        finished_at=3_000,
        error_code="cancelled",
    )
    newer = ran(
        threads[3],
        "2026-01-06T00:10:00",
        "completed",
        old + 1,
        started_at=100,
        first_token_at=400,
        finished_at=1_400,
        input_tokens=60,
        output_tokens=30,
        unpriced_tokens=90,
        dialect="ag-ui",
        runner="demo",
    )
    live = ran(
        threads[3],
        "2026-01-06T01:00:00",
        "running",
        old + 1,
        started_at=100,
        lease_until=datetime(2100, 1, 1, tzinfo=UTC),
    )
    for run, score in ((first, 1), (second, -1), (newer, 1)):
        Feedback.objects.create(run=run, user_id=run.owner_id, score=score)
    _noted(first, "activity", "intent", 40)
    _noted(first, "assistant", "execution", 2_300)
    _noted(second, "assistant", "execution", 4_700)
    _noted(second, "assistant", "execution", 4_700)  # it spoke twice in one stage
    _called(first, "gym.search", 120, ok=True)
    _called(second, "gym.search", 480, ok=False)
    database.run_sync(rollups.roll_up_range(MONDAY, TUESDAY))
    runs = (first, second, failed, late, stopped, newer, live)
    return Seeded(model, old, old + 1, ada, bob, threads, runs)


def forget(seeded: Seeded) -> None:
    """Delete what was made; the live run among it would be waited for by others."""
    Run.objects.filter(pk__in=[run.pk for run in seeded.runs]).update(folded=True)
    Message.objects.filter(run__in=seeded.runs).delete()
    for run in seeded.runs:
        Run.objects.filter(pk=run.pk).delete()
    for thread in seeded.threads:
        thread.delete()


def _version(version: int) -> dict[str, Any]:
    return {
        "kind": "agent_system",
        "prompt_id": 7,
        "name": "coach",
        "version_id": version,
        "number": version % 100,
    }


def _noted(run: Run, role: str, stage: str, latency_ms: int) -> None:
    _message(run, role, {"stage": stage, "latency_ms": latency_ms})


def _called(run: Run, tool: str, latency_ms: int, *, ok: bool) -> None:
    outcome = {"stage": "tool_execution", "latency_ms": latency_ms, "tool_name": tool}
    _message(run, "tool", outcome | {"tool_agent_output": {"ok": ok}})


def _message(run: Run, role: str, metadata: dict[str, Any]) -> None:
    place: UUID = uuid7(int(run.created_at.timestamp() * 1000))
    Message.objects.create(
        id=place,
        owner_id=run.owner_id,
        thread_id=run.thread_id,
        run=run,
        role=role,
        content="said",
        metadata=metadata,
        created_at=run.created_at,
    )
