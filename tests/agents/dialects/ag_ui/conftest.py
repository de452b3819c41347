"""Fixtures of the tests that drive the real AG-UI clients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest

from tests.agents.dialects.ag_ui.node import GENERATIONS, Clients, RealClient, start
from tests.agents.dialects.ag_ui.scripts import SCRIPTS, Scripted, named
from tests.support.client import Client

Open = Callable[..., RealClient]


@pytest.fixture(scope="session")
def clients() -> Iterator[Clients]:
    """Both generations of `@ag-ui/client`, in Node."""
    yield from start()


@pytest.fixture(params=GENERATIONS)
def generation(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def open_agent(clients: Clients, client: Client, generation: str) -> Open:
    """Open an `HttpAgent` on the live server for the test's user."""

    def make(**given: Any) -> RealClient:
        told = {
            "threadId": str(uuid4()),
            "url": f"{client.url}/api/v1/agent/ag-ui",
            "headers": {"Authorization": f"Bearer {client.token}"},
        }
        return clients.new(generation, **(told | given))

    return make


@pytest.fixture
def scripted_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs whose client names a script follow it."""
    from agents.runners.base import RunContext, Runner
    from agents.worker import execution

    usual = execution.runner_for

    class Either:
        def __init__(self, other: Runner) -> None:
            self._other = other

        def run(self, context: RunContext, host: Any) -> Any:
            scripted = named(context) in SCRIPTS
            return (Scripted() if scripted else self._other).run(context, host)

    monkeypatch.setattr(execution, "runner_for", lambda chosen: Either(usual(chosen)))
