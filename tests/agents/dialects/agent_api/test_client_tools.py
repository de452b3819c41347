"""Namespaces and custom tools by OpenAI's own SDK: what it gets, and what the model is told later."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest
from openai import OpenAI

from tests.clients.stories import said
from tests.support.client import Client, ScriptedModel
from tests.support.fakes.fake_model import FakeModel, text, tool_calls

pytestmark = pytest.mark.once

SPAWN = {"type": "function", "name": "spawn", "parameters": {"type": "object"}, "strict": False}
TOOLS: Any = [
    {"type": "namespace", "name": "agents", "description": "Helpers.", "tools": [SPAWN]},
    {"type": "custom", "name": "apply_patch", "description": "Change files."},
]
PATCH = "*** Begin Patch\n*** End Patch"


@pytest.fixture
def sdk(client: Client) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{client.url}/v1", api_key=client.token, max_retries=0) as made:
        yield made


def test_both_are_called_answered_and_named_again(
    sdk: OpenAI, scripted: Callable[..., ScriptedModel], provider: FakeModel
) -> None:
    name = uuid4().hex
    patch = json.dumps({"input": PATCH})
    provider.script(
        tool_calls(("c1", "agents__spawn", "{}"), ("c2", "apply_patch", patch)),
        text("Done."),
        text("As I said."),
        name=name,
    )
    more: Any = {"model": scripted(f"script:{name}").name, "tools": TOOLS}
    asked = sdk.responses.create(input="Go.", **more)
    spawn, custom = asked.output
    assert spawn.type == "function_call"
    assert (spawn.namespace, spawn.name) == ("agents", "spawn")
    assert custom.type == "custom_tool_call"
    assert (custom.name, custom.input) == ("apply_patch", PATCH)
    answers: Any = [
        {"type": "function_call_output", "call_id": "c1", "output": "made"},
        {"type": "custom_tool_call_output", "call_id": "c2", "output": "patched"},
    ]
    done = sdk.responses.create(input=answers, previous_response_id=asked.id, **more)
    assert done.output_text == "Done."
    by_reference: Any = [
        {"role": "user", "content": "Go."},
        *({"type": "item_reference", "id": item.id} for item in asked.output),
        *answers,
        {"role": "user", "content": "Again?"},
    ]
    sdk.responses.create(input=by_reference, **more)
    sent = [request.body for request in provider.requests_for(f"script:{name}")]
    told = [
        "user: Go.",
        "assistant calls agents__spawn {}",
        f"assistant calls apply_patch {json.dumps(json.loads(patch))}",
        "tool: made",
        "tool: patched",
    ]
    assert said(sent[1]) == told
    assert said(sent[2]) == [*told, "user: Again?"]
    offered = {tool["function"]["name"]: tool["function"]["description"] for tool in sent[0]["tools"]}
    assert offered["agents__spawn"] == "Helpers."
    assert offered["apply_patch"] == "Change files."
