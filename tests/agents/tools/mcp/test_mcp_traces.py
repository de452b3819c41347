"""The server of a tool is told of the span of its call (SEP-414), before that span is made."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import pytest

from agents.models import McpServer
from tests.support.client import Client, ScriptedModel, read_sse
from tests.support.fakes.fake_model import FakeModel, text, tool_calls
from tests.support.fakes.mcp_host import McpHost

pytestmark = pytest.mark.once


def test_the_span_of_a_call_is_the_parent_of_what_its_server_does(
    client: Client,
    scripted: Callable[..., ScriptedModel],
    provider: FakeModel,
    host: Callable[..., McpHost],
    enter: Callable[..., McpServer],
    offered: Callable[..., Any],
    collector: Any,
) -> None:
    one = host()
    enter(one)
    offered(one.label)
    name, tool = uuid4().hex, f"{one.label}__trace"
    provider.script(tool_calls(("c1", tool, "{}")), text("Done."), name=name)
    body = {
        "threadId": str(uuid4()),
        "runId": uuid4().hex,
        "messages": [{"id": "1", "role": "user", "content": "go"}],
        "forwardedProps": {"model": scripted(f"script:{name}").name},
    }
    trace_id = uuid4().hex
    sent = {"traceparent": f"00-{trace_id}-00f067aa0ba902b7-01", "tracestate": "vendor=opaque"}
    run_id = client.http.post("/api/v1/agent/runs", json=body, headers=sent).json()["taskId"]
    with client.http.stream("GET", f"/api/v1/agent/runs/{run_id}/events") as response:
        seen = [frame.data for frame in read_sse(response)]
    (result,) = (json.loads(one["content"]) for one in seen if one["type"] == "TOOL_CALL_RESULT")
    told = result["structured"]
    collector.wait_for(lambda span: span.attributes.get("parley.run.id") == UUID(run_id).hex)
    call = next(span for span in collector.spans if span.name == f"execute_tool {tool}")
    assert told == {"traceparent": f"00-{trace_id}-{call.span_id}-01", "tracestate": "vendor=opaque"}
    assert call.trace_id == trace_id
    assert call.attributes["gen_ai.tool.call.id"] == "c1"
    chats = [span for span in collector.spans if span.attributes.get("gen_ai.operation.name") == "chat"]
    reasons = [span.attributes["gen_ai.response.finish_reasons"] for span in chats]
    assert reasons == [["tool_calls"], ["stop"]]
