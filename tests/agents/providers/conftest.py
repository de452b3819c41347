"""Tests of the provider clients against loopback providers: no database, no server of ours."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session", autouse=True)
def database() -> None:
    """None is made, and pytest-django refuses every statement."""


@pytest.fixture(scope="session")
def server() -> None:
    pytest.fail("A test under tests/agents/providers has no server: move it to another folder.")
