"""Who waits for approval holds no worker: all of them die, and the answer is carried out once."""

from __future__ import annotations

import time
from typing import Any

import httpx
import pytest

from tests.faults.stack import Stack

pytestmark = [pytest.mark.faults, pytest.mark.timeout(120)]


def test_an_approval_outlives_every_worker(stack: Stack) -> None:
    headers = {"Authorization": f"Bearer {stack.token}"}
    with httpx.Client(base_url=stack.url, headers=headers, timeout=30, trust_env=False) as http:
        said = {"model": "demo", "text": "approve demo.note and survive"}
        accepted = http.post("/api/v1/agent/runs", json=said).json()
        run = _ended(http, accepted["run_id"])
        (waiting,) = run["interrupts"]
        for worker in stack.workers:
            worker.kill()
        decided = http.post(f"/api/v1/agent/approvals/{waiting['id']}", json={"approve": True})
        assert decided.json()["status"] == "approved"
        assert http.get(f"/api/v1/agent/runs/continue-{run['run_id']}").json()["status"] == "queued"
        stack.workers[0].launch()
        after = _ended(http, f"continue-{run['run_id']}")
        assert (after["status"], after["attempt"]) == ("completed", 1)
        told = http.get(f"/api/v1/agent/approvals/{waiting['id']}").json()
        assert told["told_run_id"] == after["run_id"]
        events = http.get(
            f"/api/v1/agent/runs/{after['run_id']}/events?after=0",
            headers={"Accept": "application/json"},
        ).json()["events"]
        results = [event["data"] for event in events if event["event"] == "tool_result"]
        assert [result["result"] for result in results] == [{"noted": "and survive"}]


def _ended(http: httpx.Client, run_id: str) -> dict[str, Any]:
    until = time.monotonic() + 30
    while True:
        run: dict[str, Any] = http.get(f"/api/v1/agent/runs/{run_id}").json()
        if run["status"] in ("completed", "failed", "cancelled"):
            return run
        assert time.monotonic() < until, run["status"]
        time.sleep(0.05)
