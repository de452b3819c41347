"""What breaks anywhere reaches Sentry once, with no word of what somebody said."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from os import environ
from pathlib import Path
from typing import Any

import psycopg
import pytest
import structlog
from django.core.exceptions import ImproperlyConfigured
from pytest_django import Settings
from websocket import create_connection

from agents.api import streaming
from agents.worker import execution
from agents.worker.lease_keeper import LeaseKeeper
from config import database, logs
from config.telemetry import sentry_dsn
from tests.conftest import Server
from tests.schema_true.recording import records
from tests.support.client import Client, ScriptedModel
from tests.support.paths import ROOT

sentry_sdk = pytest.importorskip("sentry_sdk")

from tests.support.fakes.sentry_server import SentryServer  # noqa: E402

SAID = "a prompt about my illness"
KEY = "sk-abcdefghijklmnopqrstuvwx"


class Broken(Exception):
    """An error whose message holds what nobody else may read."""

    def __init__(self) -> None:
        super().__init__(f"{SAID} {KEY}")


@pytest.fixture
def sentry(settings: Settings) -> Iterator[SentryServer]:
    """Let this process report, as SENTRY_DSN does at the start."""
    from config.telemetry import sentry_reports

    with SentryServer() as running:
        settings.SENTRY_DSN, settings.SENTRY_ENVIRONMENT = running.dsn, "tests"
        sentry_reports._reported.clear()
        logs.configure(settings.LOGGING | {"sentry": True})
        structlog.configure(cache_logger_on_first_use=False)
        yield running
        sentry_sdk.get_client().close(timeout=2)
        logs.configure(settings.LOGGING)
        structlog.configure(cache_logger_on_first_use=False)
    for body in running.raw:
        assert SAID.encode() not in body
        assert KEY.encode() not in body


def breaks(*_: Any, **__: Any) -> Any:
    local_prompt = SAID  # what a report of local variables would contain
    raise Broken from KeyError(local_prompt)


def settled(sentry: SentryServer) -> list[dict[str, Any]]:
    """Return all that came; what the client of this test logs is not ours."""
    sentry_sdk.flush(timeout=5)
    return [event for event in sentry.events if event.get("logger") != "websocket"]


def test_a_handler_that_skips_djangos_signals_reports_once(
    client: Client, sentry: SentryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    records.excuse()  # no operation has a 500 among its published answers
    monkeypatch.setattr("agents.api.runs.client_queries.fetch_run", breaks)
    run_id = "0" * 32
    headers = {"X-Request-Id": "request-of-the-test", "Cookie": f"a={KEY}"}
    answer = client.http.get(f"/api/v1/agent/runs/{run_id}?q={SAID}", headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (500, "internal_error")
    event = sentry.named("view failed")
    assert settled(sentry) == [event]
    assert event["tags"]["request_id"] == "request-of-the-test"
    assert event["environment"] == "tests"
    errors = event["exception"]["values"]
    assert [(one["type"], one["value"]) for one in errors] == [("KeyError", ""), ("Broken", "")]
    frames = [frame for one in errors for frame in (one.get("stacktrace") or {"frames": []})["frames"]]
    assert "breaks" in {frame["function"] for frame in frames}
    assert not any("vars" in frame or "context_line" in frame for frame in frames)
    assert "request" not in event
    assert "user" not in event
    assert client.token not in json.dumps(event)
    assert set(sentry.kinds) == {"event"}


def test_a_page_of_django_reports_once(
    server: Server, client: Client, sentry: SentryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("config.auth.sign_in_pages.AdminSignInForm.__init__", breaks)
    assert client.http.get("/admin/login/", headers={"X-Request-Id": "page"}).status_code == 500
    (event,) = settled(sentry)
    assert event["tags"]["request_id"] == "page"
    assert event["exception"]["values"][-1]["type"] == "Broken"


def test_an_answer_that_asks_to_come_again_is_no_error(
    client: Client, sentry: SentryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: Any, **__: Any) -> Any:
        raise psycopg.OperationalError("away")

    monkeypatch.setattr("agents.api.runs.client_queries.fetch_run", away)
    assert client.http.get(f"/api/v1/agent/runs/{'0' * 32}").status_code == 503
    assert settled(sentry) == []


def test_a_run_that_breaks_reports_once_with_its_id(
    client: Client,
    scripted: Callable[..., ScriptedModel],
    sentry: SentryServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    usual, model = execution.runner_for, scripted("unused").name
    monkeypatch.setattr(
        execution, "runner_for", lambda route: breaks() if route.name == model else usual(route)
    )
    run_id = client.start(SAID, model=model)["run_id"]
    client.watch(run_id)
    event = sentry.named("run failed")
    assert settled(sentry) == [event]
    assert event["tags"]["run_id"] == run_id


def test_a_socket_that_breaks_reports_once(
    client: Client, server: Server, sentry: SentryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = client.start(SAID)["run_id"]
    client.watch(run_id)
    monkeypatch.setattr(streaming, "to_json", breaks)
    url = f"{server.url.replace('http', 'ws')}/ws/agent/runs/{run_id}"
    opened = create_connection(url, timeout=10, header=[f"Authorization: Bearer {client.token}"])
    event = sentry.named("socket broke")
    opened.close()
    assert settled(sentry) == [event]


def test_the_thread_that_renews_leases_reports(
    server: Server, sentry: SentryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(LeaseKeeper, "_renew", breaks)
        event = sentry.named("renewing leases failed")
    assert event["exception"]["values"][-1]["type"] == "Broken"


def test_an_outage_of_the_database_is_a_warning_and_not_reported(
    sentry: SentryServer, caplog: pytest.LogCaptureFixture
) -> None:
    log = structlog.get_logger("tests")
    read_only = psycopg.errors.ReadOnlySqlTransaction("a replica")
    for error in (psycopg.OperationalError("away"), TimeoutError(), read_only):
        database.log_failure(log, "chore failed", error)
    assert settled(sentry) == []
    database.log_failure(log, "chore failed", psycopg.errors.UndefinedTable(SAID))
    assert sentry.named("chore failed")["exception"]["values"][0]["type"] == "UndefinedTable"


def test_the_same_error_is_reported_once_a_second(sentry: SentryServer) -> None:
    for _ in range(100):
        try:
            breaks()
        except Broken:
            logging.getLogger("somebody").exception("chore of %s failed", SAID)
    (event,) = settled(sentry)
    assert event["logentry"] == {"message": "chore of %s failed"}


def test_what_the_event_loop_says_of_a_task_or_callback_is_cut_to_its_kind(sentry: SentryServer) -> None:
    async def lose() -> None:
        loop = asyncio.get_running_loop()
        loop.call_soon(breaks, SAID)
        lost = loop.create_task(_break_later())
        await asyncio.wait({lost})
        del lost

    asyncio.run(lose())
    gc.collect()
    messages = sorted(event["logentry"]["message"] for event in settled(sentry))
    assert messages == ["Exception in callback breaks", "Task exception was never retrieved"]


def test_of_a_foreign_line_that_was_put_together_only_the_place_is_told(sentry: SentryServer) -> None:
    logging.getLogger("somebody").error(f"no answer to {SAID}")
    (event,) = settled(sentry)
    assert re.fullmatch(r"line \d+ of test_error_reports\.py", event["logentry"]["message"])


async def _break_later() -> None:
    await asyncio.sleep(0)
    breaks()


PROGRAM = """
import os, threading
os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
import django
django.setup()
def breaks(): raise ValueError("a prompt about my illness")
thread = threading.Thread(target=breaks)
thread.start()
thread.join()
raise RuntimeError("a prompt about my illness")
"""


def test_what_nothing_catches_in_a_thread_or_a_process_is_reported(tmp_path: Path) -> None:
    with SentryServer() as running:
        own = {"SENTRY_DSN": running.dsn, "VAR_DIR": str(tmp_path), "DATABASE_URL": "postgresql:///none"}
        command = [sys.executable, "-c", PROGRAM]
        more = {"PATH": environ["PATH"], "PYTHONPATH": str(ROOT)}
        subprocess.run(command, cwd=ROOT, env=own | more, capture_output=True, timeout=60, check=False)
        types = sorted(event["exception"]["values"][-1]["type"] for event in running.events)
    assert types == ["RuntimeError", "ValueError"]
    assert not any(SAID.encode() in body for body in running.raw)


@pytest.mark.parametrize(
    "wrong", ["https://sentry.example/1", f"https://{KEY}@sentry.example/no-number"]
)
def test_a_wrong_dsn_is_refused_by_name_and_not_shown(wrong: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=r"^SENTRY_DSN is no DSN") as refused:
        sentry_dsn.check(wrong)
    assert KEY not in str(refused.value)
