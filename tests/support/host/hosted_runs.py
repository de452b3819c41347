"""Whole runs of a made-up runner."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID, uuid4

from agents.host import bindings
from agents.host_protocol.manifest import RunnerManifest
from agents.models import RunnerBinding
from tests.support.client import Client
from tests.support.host.stage import Says, Scripted, manifest, serving


@contextmanager
def bound(user: Any, says: Says, declared: RunnerManifest | None = None, **fields: Any) -> Iterator[str]:
    """A runner that serves this user's runs; its id."""
    runner_id = f"python:r{uuid4().hex[:10]}"
    made = declared or manifest(runner_id)
    rule = RunnerBinding.objects.create(
        name=uuid4().hex, runner_id=made.id, user=user, position=1, **fields
    )
    bindings.clear_cache()
    try:
        with serving(Scripted(made, says)):
            yield made.id
    finally:
        rule.delete()
        bindings.clear_cache()


def finished(client: Client, text: str = "hi", **more: Any) -> tuple[dict[str, Any], list[Any]]:
    """A text run to its end: its row, and its frames."""
    run_id = client.start(text, **more)["run_id"]
    frames = client.watch(run_id)
    return client.run(run_id), frames


def reply(frames: list[Any]) -> str:
    return "".join(frame.data["delta"] for frame in frames if frame.event == "content_delta")


def events_of(run_id: str) -> list[dict[str, Any]]:
    from conversations.models import EventBatch

    batches: Any = EventBatch.objects.filter(run_id=UUID(run_id)).order_by("first_seq")
    return [event for batch in batches for _, event in batch.events]  # the column is JSON
