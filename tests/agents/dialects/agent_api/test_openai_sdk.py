"""OpenAI's own Python SDK against the running server."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import openai
import pytest
from openai import OpenAI

from tests.support.client import Client
from tests.support.pictures import picture

pytestmark = pytest.mark.once

TOOL: Any = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather of a city.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
    "strict": True,
}


@pytest.fixture
def sdk(client: Client) -> Iterator[OpenAI]:
    base_url = f"{client.url}/compatible-mode/v1"
    with OpenAI(base_url=base_url, api_key=client.token, max_retries=0) as made:
        yield made


def test_the_other_base_url_is_the_same(sdk: OpenAI, client: Client) -> None:
    other = sdk.with_options(base_url=f"{client.url}/v1")
    made = other.responses.create(model="demo", input="chest")
    assert other.responses.retrieve(made.id).to_dict() == sdk.responses.retrieve(made.id).to_dict()


def test_create(sdk: OpenAI) -> None:
    made = sdk.responses.create(
        model="demo",
        input="Which chest exercises?",
        instructions="Be brief.",
        temperature=0.5,
        max_output_tokens=900,
        metadata={"a": "b"},
    )
    assert made.status == "completed"
    assert "Be brief." in made.output_text
    assert made.usage is not None
    assert made.usage.total_tokens > 0
    assert (made.model, made.instructions, made.temperature, made.metadata) == (
        "demo",
        "Be brief.",
        0.5,
        {"a": "b"},
    )


def test_stream(sdk: OpenAI) -> None:
    seen = list(sdk.responses.create(model="demo", input="练胸有什么动作？", stream=True))
    assert [event.sequence_number for event in seen] == [*range(len(seen))]
    deltas = "".join(event.delta for event in seen if event.type == "response.output_text.delta")
    assert seen[-1].type == "response.completed"
    assert seen[-1].response.output_text == deltas
    assert [item.type for item in seen[-1].response.output] == ["mcp_call", "message"]


def test_the_stream_helper(sdk: OpenAI) -> None:
    with sdk.responses.stream(model="demo", input="chest") as stream:
        kinds = {event.type for event in stream}
        last = stream.get_final_response()
    assert last.output_text
    assert {"response.created", "response.output_text.delta", "response.completed"} <= kinds


def test_tools_go_round(sdk: OpenAI) -> None:
    asked = sdk.responses.create(model="demo", input='use get_weather {"city": "Ulm"}', tools=[TOOL])
    [call] = asked.output
    assert call.type == "function_call"
    assert json.loads(call.arguments) == {"city": "Ulm"}
    told: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "21 °C"}
    answer = sdk.responses.create(
        model="demo", previous_response_id=asked.id, input=[told], tools=[TOOL]
    )
    assert "21 °C" in answer.output_text
    assert answer.previous_response_id == asked.id


def test_the_choice_of_no_tools_keeps_the_model_from_all_of_them(sdk: OpenAI) -> None:
    asked: Any = {"model": "demo", "input": 'chest: use get_weather {"city": "Ulm"}', "tools": [TOOL]}
    assert {item.type for item in sdk.responses.create(**asked).output} == {"function_call"}
    answered = sdk.responses.create(**asked, tool_choice="none")
    assert [item.type for item in answered.output] == ["message"]
    assert answered.tool_choice == "none"
    assert [tool.type for tool in answered.tools] == ["function"]


def test_tools_go_round_with_the_whole_history_in_the_input(sdk: OpenAI) -> None:
    said: list[Any] = [{"role": "user", "content": 'use get_weather {"city": "Ulm"}'}]
    asked = sdk.responses.create(model="demo", input=said, tools=[TOOL])
    said += [item.to_dict() for item in asked.output]
    said.append({"type": "function_call_output", "call_id": asked.output[0].call_id, "output": "21 °C"})  # type: ignore[union-attr]
    assert "21 °C" in sdk.responses.create(model="demo", input=said, tools=[TOOL]).output_text


def asked_for_approval(sdk: OpenAI) -> Any:
    asked = sdk.responses.create(model="demo", input="approve demo.note buy milk")
    request = asked.output[-1]
    assert request.type == "mcp_approval_request"
    assert (request.name, json.loads(request.arguments)) == ("demo.note", {"text": "buy milk"})
    return asked


def answered(sdk: OpenAI, asked: Any, approve: bool, **more: Any) -> Any:
    given = {"type": "mcp_approval_response", "approval_request_id": asked.output[-1].id}
    told: Any = given | {"approve": approve} | more
    return sdk.responses.create(model="demo", previous_response_id=asked.id, input=[told])


def test_a_call_is_approved(sdk: OpenAI) -> None:
    asked = asked_for_approval(sdk)
    made = answered(sdk, asked, approve=True)
    assert "buy milk" in made.output_text
    call = made.output[0]
    assert (call.type, call.status, call.approval_request_id) == (
        "mcp_call",
        "completed",
        asked.output[-1].id,
    )
    assert (call.name, json.loads(call.arguments)) == ("demo.note", {"text": "buy milk"})
    assert call.output
    assert call.id not in [item.id for item in asked.output]
    again = answered(sdk, asked, approve=True)
    made_again = [item for item in again.output if item.type == "mcp_call" and item.output]
    assert made_again == [], "it is asked for anew"


def test_a_call_is_refused_with_a_reason(sdk: OpenAI) -> None:
    asked = asked_for_approval(sdk)
    call = answered(sdk, asked, approve=False, reason="not today").output[0]
    assert (call.type, call.status, call.output) == ("mcp_call", "failed", None)
    told = call.to_dict()["error"]["content"][0]["text"]
    assert told.startswith("approval_refused")
    assert "not today" in told
    with pytest.raises(openai.ConflictError):
        answered(sdk, asked, approve=True)


def test_an_approval_names_its_conversation_and_an_unknown_one_none(sdk: OpenAI) -> None:
    """openai-agents sends an approval without `previous_response_id`."""
    asked = asked_for_approval(sdk)
    told: Any = {
        "type": "mcp_approval_response",
        "approval_request_id": asked.output[-1].id,
        "approve": True,
    }
    assert "buy milk" in sdk.responses.create(model="demo", input=[told]).output_text
    with pytest.raises(openai.NotFoundError):
        sdk.responses.create(model="demo", input=[told | {"approval_request_id": f"mcpr_{uuid4().hex}"}])


def test_a_long_answer_is_waited_for_with_blanks(client: Client, settings: Any) -> None:
    settings.HEARTBEAT_S, settings.DEMO_TOKEN_S = 0.002, 0.01
    told = client.http.post("/v1/responses", json={"model": "demo", "input": "hello"})
    assert told.content.startswith(b" ")
    assert told.json()["status"] == "completed"


def test_images(sdk: OpenAI) -> None:
    image = base64.b64encode(picture("PNG", (32, 20))).decode()
    parts: Any = [
        {"type": "input_text", "text": "what is it?"},
        {"type": "input_image", "image_url": f"data:image/png;base64,{image}", "detail": "auto"},
    ]
    made = sdk.responses.create(model="demo", input=[{"role": "user", "content": parts}])
    assert "32 × 20" in made.output_text


def test_retrieve(sdk: OpenAI) -> None:
    made = sdk.responses.create(model="demo", input="chest")
    assert sdk.responses.retrieve(made.id).to_dict() == made.to_dict()


def test_background_and_retrieve(sdk: OpenAI, client: Client) -> None:
    made = sdk.responses.create(model="demo", input="chest", background=True)
    assert made.status == "queued"
    client.wait_for(made.id.removeprefix("resp_"), "completed")
    assert sdk.responses.retrieve(made.id).output_text


def test_cancel(sdk: OpenAI, settings: Any) -> None:
    settings.DEMO_TOKEN_S = 0.2
    made = sdk.responses.create(model="demo", input="chest", background=True)
    assert sdk.responses.cancel(made.id).status == "cancelled"
    assert sdk.responses.retrieve(made.id).status == "cancelled"
    again = sdk.responses.cancel(made.id)
    assert again.status == "cancelled"


def test_a_stream_goes_on_after_any_event(sdk: OpenAI) -> None:
    whole = list(sdk.responses.create(model="demo", input="chest", stream=True))
    created: Any = whole[0]
    for after in (0, 3, len(whole) - 2):
        rest = list(sdk.responses.retrieve(created.response.id, stream=True, starting_after=after))
        assert [event.to_dict() for event in rest] == [event.to_dict() for event in whole[after + 1 :]]


def test_previous_response_id_is_the_same_thread(sdk: OpenAI, client: Client) -> None:
    first = sdk.responses.create(model="demo", input="chest")
    second = sdk.responses.create(model="demo", input="legs", previous_response_id=first.id)
    assert first.conversation
    assert second.conversation == first.conversation
    told = client.history(first.conversation.id)["messages"]
    assert [entry["content"] for entry in told if entry["role"] == "user"] == ["chest", "legs"]


def test_a_conversation_is_a_thread(sdk: OpenAI) -> None:
    first = sdk.responses.create(model="demo", input="chest", conversation="my talk")
    again = sdk.responses.create(model="demo", input="legs", conversation={"id": "my talk"})
    assert first.conversation == again.conversation


def test_what_is_wrong_is_an_error_of_the_sdk(sdk: OpenAI, make_client: Callable[[], Client]) -> None:
    with pytest.raises(openai.NotFoundError):
        sdk.responses.retrieve("resp_unknown")
    with pytest.raises(openai.NotFoundError):
        sdk.responses.create(model="demo", input="x", previous_response_id="resp_unknown")
    foreign = make_client().start()["run_id"]
    with pytest.raises(openai.NotFoundError):
        sdk.responses.create(model="demo", input="x", previous_response_id=f"resp_{foreign}")
    with pytest.raises(openai.NotFoundError) as missing:
        sdk.responses.create(model="no-such-model", input="x")
    assert (missing.value.code, missing.value.param) == ("model_not_found", "model")
    with pytest.raises(openai.AuthenticationError):
        sdk.with_options(api_key="nonsense").responses.create(model="demo", input="x")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"input": 7},
        {"input": [7]},
        {"input": [{"role": "boss", "content": "x"}]},
        {"input": [{"role": "user", "content": 7}]},
        {"input": [{"role": "user", "content": [{"type": "hologram"}]}]},
        {"input": [{"role": "user", "content": [{"type": "input_image"}]}]},
        {"input": [{"type": "function_call_output", "output": "x"}]},
        {"input": [{"type": "novel"}]},
        {"input": [{"type": "mcp_approval_response"}]},
        {"input": "x", "tools": [{"type": "web_search"}]},
        {"input": "x", "tools": [{"type": "function"}]},
        {"input": "x", "temperature": 9},
        {"input": "x", "previous_response_id": "resp_a", "conversation": "b"},
        {"input": "x", "text": {"format": {"type": "poem"}}},
    ],
)
def test_bad_input_is_refused(client: Client, body: dict[str, Any]) -> None:
    response = client.http.post("/v1/responses", json={"model": "demo", "stream": True} | body)
    assert response.status_code == 422
    assert {"detail", "code", "request_id"} <= response.json().keys()
