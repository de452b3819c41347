"""Every time that a runner is told, or a client of the runner dialect, is epoch seconds (seed 003)."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, Callable
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from agents.host_protocol import parameters, results
from agents.host_protocol.host_api import HostApi
from agents.host_protocol.results import RunResult
from agents.host_protocol.run_context import AgentRunContext
from tests.support.client import Client
from tests.support.host.stage import Scripted, manifest, serving

pytestmark = pytest.mark.once


def test_whoever_reads_a_time_as_the_sdk_does_gets_now(make_client: Callable[..., Client]) -> None:
    staff = make_client(is_staff=True, is_superuser=True)
    told: dict[str, Any] = {}

    async def says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
        if not told:
            told["first"] = True
            yield results.artifact(context.run_id, b"x", name="x.txt")
            return
        event = (await host.events.page()).items[-1]
        record = await host.calls.call(
            "run_append_result",
            parameters.AppendResult(
                target_run_id=context.run_id, result=results.delta(context.run_id, "ok")
            ),
        )
        told["times"] = [
            context.trigger.timestamp,
            context.event.event_time,
            (await host.history.page()).items[0].created_at,
            event.event_time,
            event.created_at,
            record.created_at,
        ]

    declared = manifest(f"plugin:acme/p{uuid4().hex[:6]}/default")
    path = f"/api/v1/agent/runners/{declared.id}/run"
    talk = {"input": {"text": "hi"}, "conversation": {"conversation_id": uuid4().hex}}
    begun = int(time.time())
    with serving(Scripted(declared, says)):
        frames = [
            json.loads(line) for _ in "12" for line in staff.http.post(path, json=talk).iter_lines()
        ]
    told["times"] += [frame["timestamp"] for frame in frames]
    assert [type(one) for one in told["times"]] == [int] * len(told["times"])
    read = [datetime.fromtimestamp(one, UTC).timestamp() for one in told["times"]]
    assert len(read) > 8
    assert begun - 1 <= min(read) <= max(read) <= time.time()
