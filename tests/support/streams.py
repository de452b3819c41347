"""A run that streams for long, and how many places its readers hold."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agents.intake import stream_slots
from tests.support.client import Client, ScriptedModel


@pytest.fixture
def run(client: Client, scripted: Callable[..., ScriptedModel]) -> Iterator[dict[str, Any]]:
    """A run that goes on for as long as it is watched."""
    accepted = client.start(model=scripted("hang-midway").name)
    yield accepted
    client.http.post(f"/api/v1/agent/runs/{accepted['run_id']}/cancel")


def until(is_so: Callable[[], bool], seconds: float = 10) -> None:
    """Wait for it, and fail past these seconds."""
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.02)


def held(client: Client) -> int:
    """How many streams of the client's user are open."""
    return len(stream_slots._streams.of_user(client.user.pk))
