"""Stages for tests of Host calls, a tool that somebody must approve, and a collector of traces."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from pytest_django import Settings

from agents.tools import registry
from agents.tools.base import Tool
from agents.worker import run_traces
from config.telemetry import tracing
from conversations.runs import settling
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


@pytest.fixture
def collector(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Send the traces of this process to a collector, soon."""
    otlp = pytest.importorskip("tests.support.fakes.otlp_collector")
    with otlp.OtlpCollector() as running:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", running.url)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
        settings.OTEL_TRACES = True
        monkeypatch.setattr(settling, "_after_end", [])
        run_traces.trace_settled_runs()
        tracing.tracer()
        yield running
        settings.OTEL_TRACES = False
        tracing.stop()
