"""Runs of the server that is attacked: started over REST, watched to their end on every wire."""

from __future__ import annotations

from contextlib import suppress
from typing import Final, NamedTuple
from uuid import uuid4

import httpx

from tests.hostile.gate import Gate, check
from tests.hostile.prepare import KEY

TERMINAL: Final = frozenset({"completed", "failed", "cancelled", "interrupted"})
RUNS: Final = "/api/v1/agent/runs"


class Started(NamedTuple):
    run_id: str
    thread_id: str


def start(gate: Gate, model: str, text: str = "Hello") -> Started:
    """Begin a run of the model, with every tool that there is."""
    thread_id = str(uuid4())
    body = {
        "threadId": thread_id,
        "runId": str(uuid4()),
        "state": {},
        "messages": [{"id": "m1", "role": "user", "content": text}],
        "tools": [],
        "context": [],
        "forwardedProps": {"model": model},
    }
    answer = gate.http.post(RUNS, json=body)
    check(answer, answer.content)
    assert answer.status_code == 202, answer.text
    return Started(answer.json()["taskId"], thread_id)


def latest(gate: Gate) -> Started:
    """The run that was begun last."""
    return Started(*gate.newest())


def outcome(gate: Gate, run: Started) -> str:
    """How the run ended: its status, or the code of its failure."""
    told = gate.http.get(f"{RUNS}/{run.run_id}").json()
    assert told["status"] in TERMINAL, told
    return str((told.get("error") or {}).get("code") or told["status"])


def said(gate: Gate, run: Started) -> None:
    """Read the run wherever it can be read; no key is in any of it, and no failure of ours."""
    for dialect in ("text", "ag-ui", "responses", "agent-api", "chat-completions"):
        _read(gate, f"{RUNS}/{run.run_id}/events?dialect={dialect}", "text/event-stream")
    for path in (f"{RUNS}/{run.run_id}", f"/api/v1/agent/threads/{run.thread_id}?reasoning=true"):
        _read(gate, path, "application/json")


def _read(gate: Gate, path: str, accept: str) -> None:
    tail = b""
    with gate.http.stream("GET", path, headers={"Accept": accept}) as answer:
        assert answer.status_code < 500 or answer.status_code in (503, 507), path
        with suppress(httpx.StreamConsumed):
            for piece in answer.iter_raw():
                assert KEY.encode() not in tail + piece, path
                tail = (tail + piece)[-len(KEY) :]


def cancel(gate: Gate, run: Started) -> None:
    """Ask for the run's end."""
    assert gate.http.post(f"{RUNS}/{run.run_id}/cancel").status_code == 202
