"""Stages for tests of Host calls, and a tool whose calls somebody must approve."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from agents.tools import registry
from agents.tools.base import Tool
from tests.support.host.stage import Stage, new_user, stage
from tests.support.mail import SEND, Mail


@pytest.fixture
def make_stage() -> Iterator[Callable[..., Stage]]:
    """Make stages, each of a user of its own."""
    made: list[Stage] = []

    def make(**more: Any) -> Stage:
        made.append(stage(new_user(), **more))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def mail(monkeypatch: pytest.MonkeyPatch) -> Mail:
    """Install the tool for one test, and one like it that needs no approval."""
    made = Mail()
    careful = Tool(
        "test.send", "Sends.", SEND, made.call, idempotent=False, timeout_s=90, requires_approval=True
    )
    free = replace(careful, name="test.free", requires_approval=False)
    known = {**registry._by_name(), careful.name: careful, free.name: free}
    monkeypatch.setattr(registry, "_by_name", lambda: known)
    return made
