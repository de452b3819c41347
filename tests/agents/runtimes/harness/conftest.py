"""The stub may be started."""

from __future__ import annotations

import sys

import pytest
from pytest_django import Settings

from tests.agents.runtimes.harness.harness_runs import STUB


@pytest.fixture(autouse=True)
def allowed(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.RUNNER_COMMANDS = [f"{sys.executable} {STUB} *", "/no/such/program"]
    settings.RUNNER_ENV = ["HARNESS_TOKEN", "HARNESS_SECRET"]
    monkeypatch.setenv("HARNESS_TOKEN", "given")
    monkeypatch.setenv("HARNESS_SECRET", "not-asked-for-here")
