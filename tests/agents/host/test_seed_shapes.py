"""What seed 003 prints: results, a failure, an action, said as they stand; and what the audit keeps."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import Any
from uuid import uuid4

import pytest
from structlog.testing import capture_logs

from agents.host_protocol import parameters, results
from agents.host_protocol.host_api import HostApi
from agents.host_protocol.results import RunResult
from agents.host_protocol.run_context import AgentRunContext
from agents.models import HostCall, HostState
from conversations.models import Message
from tests.support.client import Client
from tests.support.host.hosted_runs import bound, finished, reply
from tests.support.host.stage import Stage, run
from tests.support.image_runs import content, uploaded
from tests.support.pictures import picture

pytestmark = pytest.mark.once

PRINTED: list[dict[str, Any]] = [
    {"type": "message.delta", "data": {"chunk": {"role": "assistant", "content": "hel"}}},
    {"type": "tool.call.started", "data": {"tool_call_id": "c1", "tool_name": "look", "parameters": {}}},
    {
        "type": "tool.call.completed",
        "data": {"tool_call_id": "c1", "tool_name": "look", "result": {"seen": 1}},
    },
    {"type": "message.completed", "data": {"message": {"role": "assistant", "content": "hello"}}},
    {
        "type": "state.updated",
        "data": {"scope": "conversation", "key": "external.session_id", "value": "abc"},
    },
    {
        "type": "action.requested",
        "data": {"action": "message.edit", "target": {"message_id": "m"}, "payload": {"text": "…"}},
    },
    {"type": "message.rated", "data": {"stars": 5}},
    {"type": "run.completed", "data": {}},
]


def test_the_printed_results_are_a_run(client: Client) -> None:
    async def says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
        for said in PRINTED:
            yield RunResult(run_id=context.run_id, **said)

    with bound(client.user, says), capture_logs() as lines:
        row, frames = finished(client, enable_exercise_search=False)
    assert (row["status"], reply(frames)) == ("completed", "hello")
    told = [frame.data for frame in frames if frame.event in ("tool_start", "tool_result")]
    assert [(one["tool_name"], one.get("result")) for one in told] == [
        ("look", None),
        ("look", {"seen": 1}),
    ]
    kept = HostState.objects.get(owner=client.user)
    assert (kept.scope, kept.key, kept.value) == ("conversation", "external.session_id", "abc")
    said_so = {
        line["event"]: line["log_level"]
        for line in lines
        if line["event"] in ("unknown result ignored", "action.requested refused")
    }
    assert said_so == {"unknown result ignored": "warning", "action.requested refused": "warning"}


def test_the_printed_failure_is_the_runs(client: Client) -> None:
    data = {"code": "runner.error", "message": "failed to call external agent", "retryable": False}

    async def says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
        yield RunResult(run_id=context.run_id, type="run.failed", data=data)

    with bound(client.user, says):
        row, frames = finished(client)
    assert row["error"] == {"code": "runner.error", "message": "failed to call external agent"}
    assert frames[-1].data["code"] == "runner.error"


@pytest.mark.parametrize(("scope", "result"), [("actor", "ok"), ("galaxy", "invalid_argument")])
def test_the_audit_says_who_asked_for_what_and_what_came_of_it(
    make_stage: Callable[..., Stage], scope: str, result: str
) -> None:
    stage, key = make_stage(), uuid4().hex

    async def ask() -> None:
        try:
            await stage.session().call(
                "state_set", parameters.SetState(scope, key, {"secret": "s3cret"})
            )
        except Exception:
            assert result != "ok"

    run(ask())
    row = HostCall.objects.get(run_id=stage.run.pk)
    assert (row.runner_id, row.binding_id, row.action) == ("plugin:acme/tester/default", 1, "state_set")
    assert (key in row.resource, row.scope, row.result) == (True, scope, result)
    assert "s3cret" not in str(HostCall.objects.filter(pk=row.pk).values())


def test_a_file_of_the_input_is_a_reference_whose_bytes_are_read(client: Client) -> None:
    """Seed §4.6: what is large is told by reference, and read by the artifact calls."""
    stored = uploaded(client, picture("PNG", (16, 16)))
    told: list[Any] = []

    async def says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
        (file,) = context.input.attachments
        about = await host.artifacts.metadata(file.artifact_id)
        read = await host.artifacts.read_range(file.artifact_id)
        told[:] = [context.input.text, file.mime_type, about.mime_type, read.content]
        yield results.message(context.run_id, "seen")

    blocks = [
        {"type": "text", "text": "look"},
        {"type": "binary", "mimeType": "image/png", "url": stored["url"]},
    ]
    given = {
        "threadId": str(uuid4()),
        "runId": "r",
        "messages": [{"id": "1", "role": "user", "content": blocks}],
    }
    with bound(client.user, says):
        accepted = client.http.post("/api/v1/agent/runs", json=given).json()
        client.wait_for(accepted["taskId"], "completed")
    assert told == ["look", "image/png", "image/png", content(client, stored["url"])]
    assert Message.objects.get(run_id=accepted["taskId"], role="assistant").content == "seen"
