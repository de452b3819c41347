"""Tests of what needs no database and no server: `pytest tests/pure` answers in seconds."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session", autouse=True)
def database() -> None:
    """None is made, and pytest-django refuses every statement."""


@pytest.fixture(scope="session", autouse=True)
def no_window_begins() -> None:
    """There is no server whose limits count."""


@pytest.fixture(scope="session")
def server() -> None:
    pytest.fail("A test under tests/pure has no server: move it to one of the other folders.")
