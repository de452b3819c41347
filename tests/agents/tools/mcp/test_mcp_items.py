"""Tools of a real MCP server on the wires that have words for them: what it offers, calls, approvals."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from openai import OpenAI

from agents.models import McpServer
from tests.agents.dialects.ag_ui.readings import blocks
from tests.support.client import Client, ScriptedModel
from tests.support.fakes.fake_model import FakeModel, text, tool_calls
from tests.support.fakes.mcp_host import McpHost

pytestmark = pytest.mark.once


def test_discovery_calls_and_approvals_name_their_server(
    host: Callable[..., McpHost],
    enter: Callable[..., McpServer],
    offered: Callable[..., Any],
    client: Client,
    provider: FakeModel,
    scripted: Callable[..., ScriptedModel],
) -> None:
    one = host()
    row = enter(one, requires_approval=True, allowed_tools=["add", "fail"], all_tools=False)
    offered(one.label)
    name, add = uuid4().hex, f"{one.label}__add"
    provider.script(tool_calls(("c1", add, '{"a": 2, "b": 3}')), text("Five."), name=name)
    model = scripted(f"script:{name}").name
    with OpenAI(base_url=f"{client.url}/v1", api_key=client.token, max_retries=0) as sdk:
        asked = sdk.responses.create(model=model, input="2 + 3?")
        items: list[Any] = list(asked.output)
        listed, call, request = items
        assert (listed.type, call.type, request.type) == (
            "mcp_list_tools",
            "mcp_call",
            "mcp_approval_request",
        )
        assert {item.server_label for item in (listed, call, request)} == {one.label}
        tools = {tool.name: tool for tool in listed.tools}
        assert sorted(tools) == sorted([add, f"{one.label}__fail"])
        assert tools[add].description == "Adds two numbers."
        assert tools[add].annotations == {"readOnlyHint": True}
        assert sorted(tools[add].input_schema["properties"]) == ["a", "b"]
        told: Any = {
            "type": "mcp_approval_response",
            "approval_request_id": request.id,
            "approve": True,
        }
        made = sdk.responses.create(model=model, input=[told], previous_response_id=asked.id)
    more: list[Any] = list(made.output)
    again, done, _ = more
    assert (again.type, done.type) == ("mcp_list_tools", "mcp_call")
    assert (done.server_label, done.approval_request_id) == (one.label, request.id)
    assert json.loads(done.output or "") == {"structured": {"sum": 5}}
    assert made.output_text == "Five."
    assert one.noted() == ["add 2 3"]
    for run_id, wanted in (
        (asked.id, ["mcp_list_tools", "mcp_call", "mcp_approval_request"]),
        (made.id, ["mcp_list_tools", "mcp_call", "mcp_call_output", "message"]),
    ):
        read = client.http.get(
            f"/api/v1/agent/runs/{run_id}/events", params={"dialect": "agent-api"}
        ).text
        output = json.loads(blocks(read)[-1]["data"])["output"]
        assert [message["type"] for message in output] == wanted
        labels = [message["content"][0].get("data", {}).get("server_label") for message in output]
        assert {label for label in labels if label} == {one.label}
    row.delete()
    offered(one.label, none=True)
