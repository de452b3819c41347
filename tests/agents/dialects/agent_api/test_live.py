"""The reference's own client, and plain HTTP, against the running server."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import pytest

from tests.agents.dialects.agent_api import oracle
from tests.agents.dialects.agent_api.exchange import TOOL, frames, process, said
from tests.support.client import Client, ScriptedModel
from tests.support.fakes.fake_model import FakeModel, text
from tests.support.pictures import picture

pytestmark = pytest.mark.once


def words(lines: list[dict[str, Any]]) -> str:
    return "".join(line["text"] for line in lines if line.get("type") == "text" and line["delta"])


def answer(response: dict[str, Any]) -> str:
    messages = [line for line in response["output"] if line["type"] == "message"]
    return "".join(message["content"][0]["text"] for message in messages)


def reference(client: Client) -> Any:
    return oracle.clients.HTTPAgentAPIClient(f"{client.url}/process", token=client.token)


def test_the_references_client_streams(client: Client) -> None:
    request = oracle.clients.create_simple_text_request("练胸有什么动作？", model="demo")
    seen = list(reference(client).stream(request))
    assert [event.sequence_number for event in seen] == [*range(len(seen))]
    assert (seen[0].status, seen[1].status, seen[-1].status) == ("created", "in_progress", "completed")
    deltas = [
        event.text for event in seen if isinstance(event, oracle.models.TextContent) and event.delta
    ]
    whole = [oracle.clients.extract_text_from_event(message) for message in seen[-1].output]
    assert "".join(deltas) == "".join(text for text in whole if text)
    kinds = [message.type for message in seen[-1].output]
    assert kinds == ["plugin_call", "plugin_call_output", "message"]


def test_the_references_async_client_streams(client: Client) -> None:
    async def watch() -> list[Any]:
        request = oracle.clients.create_simple_text_request("Which chest exercises?", model="demo")
        return [event async for event in reference(client).astream(request)]

    seen = asyncio.run(watch())
    assert [event.sequence_number for event in seen] == [*range(len(seen))]
    assert seen[-1].status == "completed"
    assert seen[-1].usage["total_tokens"] > 0


def test_every_address_gives_the_same_stream(client: Client) -> None:
    body = {"input": [said("chest")], "model": "demo"}
    shapes = []
    for path in ("/process", "/api/v1/agent/process", "/api/v1/agent/runs"):
        lines = frames(client.http.post(path, json=body))
        shapes.append([(line["object"], line["status"]) for line in lines])
    assert shapes[0] == shapes[1] == shapes[2]


def test_without_a_stream_the_outcome_is_the_answer(client: Client) -> None:
    for path in ("/process", "/api/v1/agent/runs"):
        response = client.http.post(
            path, json={"input": [said("chest")], "model": "demo", "stream": False}
        )
        assert response.headers["content-type"] == "application/json"
        whole = oracle.models.AgentResponse.model_validate_json(response.content)
        assert whole.status == "completed"
        assert whole.model_dump_json().encode() == response.content.lstrip()


def test_a_session_is_a_thread_of_the_callers_own(make_client: Callable[[], Client]) -> None:
    one, other = make_client(), make_client()
    session = "会话 7/α"
    first = frames(process(one, said("my name is Ada"), session_id=session))
    frames(process(one, said("again"), session_id=session))
    frames(process(other, said("hello"), session_id=session))
    assert first[0]["session_id"] == session
    assert len(threads(one)) == 1
    assert len(threads(other)) == 1
    assert threads(one)[0]["id"] != threads(other)[0]["id"]


def threads(client: Client) -> list[Any]:
    found: list[Any] = client.http.get("/api/v1/agent/threads").json()["threads"]
    return found


def test_a_new_session_is_named_and_can_be_gone_on_with(client: Client) -> None:
    first = frames(process(client, said("one")))
    session = first[0]["session_id"]
    again = frames(process(client, said("two"), session_id=session))
    assert again[0]["session_id"] == session
    assert [thread["id"] for thread in threads(client)] == [session]
    assert UUID(session)


def test_history_sent_again_is_not_said_again(client: Client) -> None:
    question = said("chest") | {"id": "q1"}
    first = frames(process(client, question, session_id="s"))
    output = first[-1]["output"]
    frames(process(client, question, *output, said("and legs?") | {"id": "q2"}, session_id="s"))
    told = client.history(threads(client)[0]["id"])["messages"]
    assert [entry["content"] for entry in told if entry["role"] == "user"] == ["chest", "and legs?"]


def test_calls_and_approvals_sent_again_are_not_said_again(client: Client) -> None:
    said_so_far: list[Any] = [said("approve demo.note buy milk") | {"id": "q1"}]
    asked = frames(process(client, *said_so_far, session_id="s"))[-1]["output"]
    said_so_far += [*asked, approval(asked[-1], approve=True)]
    made = frames(process(client, *said_so_far, session_id="s"))[-1]["output"]
    assert "buy milk" in made[-1]["content"][0]["text"]
    said_so_far += [*made, said("chest?") | {"id": "q2"}]
    found = frames(process(client, *said_so_far, session_id="s"))[-1]["output"]
    said_so_far += [*found, said('use get_weather {"city": "Ulm"}') | {"id": "q3"}]
    [call] = frames(process(client, *said_so_far, session_id="s", tools=[TOOL]))[-1]["output"]
    data = call["content"][0]["data"] | {"output": "21 °C"}
    output = {
        "type": "function_call_output",
        "role": "tool",
        "content": [{"type": "data", "data": data}],
    }
    said_so_far += [call, output]
    assert "21 °C" in words(frames(process(client, *said_so_far, session_id="s", tools=[TOOL])))
    [thread] = threads(client)
    stored = client.http.get(f"/api/v1/agent/threads/{thread['id']}").json()["messages"]
    calls = [call["id"] for message in stored for call in message.get("toolCalls", [])]
    assert len(calls) == len(set(calls)) == 3
    roles = [message["role"] for message in stored]
    assert (roles.count("user"), roles.count("tool")) == (3, 3)


def test_the_token_says_whose_run_it_is(make_client: Callable[[], Client]) -> None:
    one, other = make_client(), make_client()
    frames(process(one, said("hello"), user_id=str(other.user.pk)))
    assert (len(threads(one)), len(threads(other))) == (1, 0)


def test_a_reader_goes_on_where_it_was_cut(client: Client) -> None:
    whole = process(client, said("chest"), model="demo")
    lines = frames(whole)
    run_id = lines[0]["id"]
    for after in (0, 1, 5, len(lines) - 2):
        rest = client.http.get(
            f"/api/v1/agent/runs/{run_id}/events", headers={"Last-Event-ID": str(after)}
        )
        assert frames(rest) == lines[after + 1 :]
    again = client.http.get(f"/api/v1/agent/runs/{run_id}/events", params={"dialect": "agent-api"})
    assert again.content == whole.content


def test_a_request_with_an_id_runs_once(client: Client) -> None:
    name = f"req_{uuid4().hex}"
    first = frames(process(client, said("chest"), id=name))
    again = frames(process(client, said("chest"), id=name))
    assert first == again
    assert first[0]["id"] == name
    other = process(client, said("legs"), id=name)
    assert (other.status_code, other.json()["code"]) == (409, "run_id_already_used")


def test_a_run_of_any_dialect_can_be_read_in_these(client: Client) -> None:
    text_run = client.start()["run_id"]
    asked = {
        "threadId": str(uuid4()),
        "runId": "r",
        "messages": [{"id": "1", "role": "user", "content": "chest"}],
    }
    ag_ui_run = client.http.post("/api/v1/agent/runs", json=asked).json()["taskId"]
    for run_id in (text_run, ag_ui_run):
        for dialect in ("agent-api", "responses"):
            seen = client.http.get(f"/api/v1/agent/runs/{run_id}/events", params={"dialect": dialect})
            assert seen.status_code == 200
            assert '"completed"' in seen.text.rstrip().rsplit("\n", 1)[1]
    run_id = frames(process(client, said("chest")))[0]["id"]
    for dialect in ("text", "run-agent-input", "responses"):
        seen = client.http.get(f"/api/v1/agent/runs/{run_id}/events", params={"dialect": dialect})
        assert seen.status_code == 200
        assert seen.text


def test_a_clients_tool_is_called_and_answered(client: Client) -> None:
    question = said('use get_weather {"city": "Ulm"}')
    lines = frames(process(client, question, tools=[TOOL], session_id="s"))
    [call] = lines[-1]["output"]
    assert call["type"] == "function_call"
    told = call["content"][0]["data"]
    assert oracle.models.FunctionCall.model_validate(told).model_dump() == told
    assert json.loads(told["arguments"]) == {"city": "Ulm"}
    for kind in ("component_call_output", "function_call_output"):
        data = {"call_id": told["call_id"], "name": told["name"], "output": "21 °C"}
        output = {"type": kind, "role": "tool", "content": [{"type": "data", "data": data}]}
        assert "21 °C" in words(frames(process(client, output, tools=[TOOL], session_id="s")))


def test_an_image_goes_to_the_model(client: Client) -> None:
    image = base64.b64encode(picture("PNG", (32, 20))).decode()
    shown = {"type": "image", "image_url": f"data:image/png;base64,{image}"}
    message = {"role": "user", "content": [{"type": "text", "text": "what is it?"}, shown]}
    assert "32 × 20" in words(frames(process(client, message, model="demo")))


def test_a_large_image_fits_into_the_body(client: Client) -> None:
    image = base64.b64encode(picture("PNG", (800, 600))).decode()
    assert len(image) > 262_144
    shown = {"type": "image", "image_url": f"data:image/png;base64,{image}"}
    message = {"role": "user", "content": [{"type": "text", "text": "what is it?"}, shown]}
    assert "800 × 600" in words(frames(process(client, message, model="demo")))


def test_the_parameters_of_generation_reach_the_provider(
    client: Client, scripted: Callable[..., ScriptedModel], provider: FakeModel
) -> None:
    name = uuid4().hex
    provider.script(text("fine"), name=name)
    model = scripted(f"script:{name}")
    frames(process(client, said("hi"), model=model.name, temperature=0.25, max_tokens=77))
    [sent] = provider.requests_for(f"script:{name}")
    assert (sent.body["temperature"], sent.body["max_tokens"]) == (0.25, 77)


def test_a_task_runs_in_the_background(client: Client) -> None:
    started = client.http.post("/process/task", json={"input": [said("chest")], "model": "demo"})
    assert started.status_code == 200
    submitted = started.json()
    assert (submitted["status"], submitted["queue"]) == ("submitted", "runs")
    client.wait_for(submitted["task_id"], "completed")
    told = client.http.get(f"/process/task/{submitted['task_id']}").json()
    assert told["status"] == "finished"
    assert oracle.models.AgentResponse.model_validate(told["result"]).status == "completed"


def test_a_task_of_another_user_does_not_exist(make_client: Callable[[], Client]) -> None:
    started = (
        make_client().http.post("/process/task", json={"input": [said("chest")], "model": "demo"}).json()
    )
    other = make_client()
    assert other.http.get(f"/process/task/{started['task_id']}").status_code == 404
    assert other.http.get(f"/v1/responses/resp_{started['task_id']}").status_code == 404
    assert other.http.post(f"/v1/responses/resp_{started['task_id']}/cancel").status_code == 404
    assert other.http.get("/process/task/unknown").json()["code"] == "run_not_found"


def test_a_cancelled_run_is_canceled(client: Client, settings: Any) -> None:
    settings.DEMO_TOKEN_S = 0.2
    with client.http.stream(
        "POST", "/process", json={"input": [said("chest")], "model": "demo"}
    ) as stream:
        lines: list[dict[str, Any]] = []
        for line in stream.iter_lines():
            if line.startswith("data: "):
                lines.append(json.loads(line[6:]))
                if lines[-1].get("delta"):
                    client.http.post(f"/api/v1/agent/runs/{lines[0]['id']}/cancel")
    assert [line["status"] for line in lines[-3:]] == ["canceled"] * 3
    assert [line["object"] for line in lines[-3:]] == ["content", "message", "response"]
    assert lines[-1]["error"] is None


def test_leaving_does_not_stop_the_run_unless_asked_to(client: Client, settings: Any) -> None:
    for params, status in (({"on_disconnect": "cancel"}, "cancelled"), ({}, "completed")):
        settings.DEMO_TOKEN_S = 0.05
        body = {"input": [said("chest")], "model": "demo"}
        with client.http.stream("POST", "/process", json=body, params=params) as stream:
            first = next(line for line in stream.iter_lines() if line.startswith("data: "))
        if status == "completed":
            settings.DEMO_TOKEN_S = 0.01
        run_id = json.loads(first[6:])["id"].removeprefix("response_")
        assert client.wait_for(run_id, "completed", "cancelled")["status"] == status


def test_an_approval_is_taken(client: Client) -> None:
    """The answer reaches the run; there is nothing in it that would have to be a message."""
    data = {"approve": True, "id": None, "approval_request_id": "a1", "reason": None}
    asked = {
        "type": "mcp_approval_request",
        "role": "assistant",
        "content": [{"type": "data", "data": {"id": "a1"}}],
    }
    given = {
        "type": "mcp_approval_response",
        "role": "user",
        "content": [{"type": "data", "data": data}],
    }
    lines = frames(process(client, asked, given, session_id="s"))
    from conversations.models import Run

    stored = Run.objects.get(pk=UUID(lines[0]["id"].removeprefix("response_"))).request
    assert stored["answers"] == [
        {"interrupt_id": "a1", "status": "resolved", "payload": {"approved": True, "reason": ""}}
    ]


def approval(asked: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The message that answers a request for approval, as the web UI writes it."""
    told = asked["content"][0]["data"]
    data = {"id": None, "approval_request_id": told["id"], "reason": None} | more
    content = [{"type": "data", "data": data}]
    return {"type": "mcp_approval_response", "role": "user", "content": content}


def kinds(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """The last of each kind of message in a response's output."""
    return {message["type"]: message["content"][0] for message in lines[-1]["output"]}


def test_a_call_is_approved_and_made(client: Client) -> None:
    asked = frames(process(client, said("approve demo.note buy milk"), session_id="s"))
    [request] = [line for line in asked[-1]["output"] if line["type"] == "mcp_approval_request"]
    told = request["content"][0]["data"]
    assert (told["name"], json.loads(told["arguments"])) == ("demo.note", {"text": "buy milk"})
    lines = frames(process(client, request, approval(request, approve=True), session_id="s"))
    assert "buy milk" in words(lines)
    assert lines[-1]["status"] == "completed"
    made = kinds(lines)
    assert list(made) == ["plugin_call", "plugin_call_output", "message"]
    before, call = kinds(asked)["plugin_call"]["data"], made["plugin_call"]["data"]
    assert call == before, "the call that was asked for, under its id"
    assert made["plugin_call_output"]["data"]["call_id"] == call["call_id"]
    ids = [message["id"] for message in (*asked[-1]["output"], *lines[-1]["output"])]
    assert len(ids) == len(set(ids))
    other = process(client, approval(request, approve=False))
    assert other.status_code == 404  # another conversation has no such approval
    late = process(client, approval(request, approve=False), session_id="s")
    assert (late.status_code, late.json()["code"]) == (409, "approval_already_answered")


def test_the_references_client_refuses_a_call(client: Client) -> None:
    def asking(*messages: Any) -> list[Any]:
        made = [oracle.models.Message.model_validate(message) for message in messages]
        request = oracle.models.AgentRequest(input=made, model="demo", session_id="s")
        return list(reference(client).stream(request))

    asked = asking(said("approve demo.note buy milk"))
    request = asked[-1].output[-1].model_dump()
    assert request["type"] == "mcp_approval_request"
    seen = asking(request, approval(request, approve=False, reason="not today"))
    assert seen[-1].status == "completed"
    [output] = [message for message in seen[-1].output if message.type == "plugin_call_output"]
    told = json.loads(output.content[0].data["output"])["error"]
    assert told["code"] == "approval_refused"
    assert "not today" in told["message"]


TEXT = {"type": "text", "text": "x"}


@pytest.mark.parametrize(
    "body",
    [
        {"input": "text"},
        {"input": [{"role": "boss", "content": [TEXT]}]},
        {"input": [{"role": "user", "content": "plain"}]},
        {"input": [{"role": "user", "content": [{"type": "hologram"}]}]},
        {"input": [{"role": "user", "content": [{"text": "untyped"}]}]},
        {"input": [], "n": 9},
        {"input": [], "temperature": "hot"},
        {"input": [{"role": "user", "content": [TEXT], "sequence_number": 1.5}]},
        {"input": [], "stream": "perhaps"},
        {"input": [{"role": "user", "content": [{"type": "image", "image_url": "data:text/plain,x"}]}]},
        {
            "input": [
                {
                    "role": "user",
                    "content": [{"type": "image", "image_url": "https://127.0.0.1/a.png"}],
                }
            ]
        },
        {"input": [{"type": "function_call_output", "role": "tool", "content": []}]},
        {"input": []},
        {"input": [{"role": "user", "type": "message"}]},
        {"input": [{"role": "user", "content": [{"type": "file", "filename": "a.pdf"}]}]},
        {"input": [{"role": "system", "content": [{"type": "image", "image_url": "https://x/y"}]}]},
        {"input": [said("hi"), said("hello", "assistant")]},
        {"input": [said("21 °C", "tool")]},
        {"input": [said("hi")], "n": 3},
        {"input": [said("hi")], "tools": [{"type": "web_search"}]},
        {"input": [], "model": "no-such-model"},
        {"input": [], "session_id": "x" * 600},
        {},
    ],
)
def test_bad_input_is_refused_before_the_stream(client: Client, body: dict[str, Any]) -> None:
    response = client.http.post("/process", json=body)
    assert response.status_code == 422
    assert {"detail", "code", "request_id"} <= response.json().keys()


def test_every_type_of_message_and_unknown_fields_pass(client: Client) -> None:
    kinds = [kind for kind in oracle.models.MessageType.all_values() if "approval_response" not in kind]
    assert len(kinds) == 16
    data = {"type": "data", "data": {"call_id": "c1", "name": "f", "arguments": "{}", "output": "o"}}
    messages = [
        {"role": "user", "type": kind, "content": [TEXT, data], "unknown": 1}
        for kind in (*kinds, "novel")
    ]
    more: Any = {"biz_params": {"a": 1}, "n": 1, "seed": 7, "stop": "END", "model": "demo"}
    assert frames(process(client, *messages, **more))[-1]["status"] == "completed"


def test_every_type_of_content_passes(client: Client) -> None:
    contents = [
        TEXT | {"status": "created"},
        {"type": "data", "data": {"a": [1]}},
        {"type": "file", "filename": "a.txt", "file_data": "YQ==", "file_size": 3},
        {"type": "refusal", "refusal": "no"},
        {"type": "image", "image_url": None},
    ]
    assert frames(process(client, {"role": "user", "content": contents}))[-1]["status"] == "completed"


def test_what_the_assistant_has_shown_is_told_to_no_model_again(client: Client) -> None:
    """A client brings back the whole history, with what a runner has made."""
    shown = [
        TEXT,
        {"type": "image", "image_url": "https://127.0.0.1/a.png"},
        {"type": "audio", "data": "UklGR", "format": "wav"},
        {"type": "file", "file_id": "0" * 32, "file_url": "/api/v1/agent/artifacts/" + "0" * 32},
        {"type": "video", "video_url": "https://example.com/v.mp4"},
    ]
    said_before = {"role": "assistant", "content": shown}
    told = frames(process(client, said("hi"), said_before, said("and?")))
    assert told[-1]["status"] == "completed"


def test_into_silence_comes_a_message_that_holds_nothing(client: Client, settings: Any) -> None:
    """Comments are invisible to the clients of this wire; its web UI passes over heartbeats."""
    settings.HEARTBEAT_S, settings.DEMO_TOKEN_S = 0.005, 0.03
    body = {"input": [said("hello")], "model": "demo"}
    response = client.http.post("/process", json=body)
    blocks = response.text.removesuffix("\n\n").split("\n\n")
    beats = [block for block in blocks if '"type":"heartbeat"' in block]
    assert beats
    assert all(block.startswith("data: ") for block in beats), "they have no place in the stream"
    told = json.loads(beats[0].removeprefix("data: "))
    parsed = oracle.clients.parse_event_from_json(told)
    assert type(parsed) is oracle.models.Message
    assert parsed.model_dump() == told
    assert (parsed.type, parsed.sequence_number, parsed.content) == ("heartbeat", None, None)
    assert frames(response)[-1]["status"] == "completed"
    heard = reference(client).stream(oracle.clients.create_simple_text_request("hello", model="demo"))
    assert "heartbeat" in {getattr(event, "type", "") for event in heard}


def test_a_run_that_fails_ends_with_an_error_message_and_a_failed_response(
    client: Client, scripted: Callable[..., ScriptedModel]
) -> None:
    model = scripted("status-400")
    lines = frames(process(client, said("hi"), model=model.name))
    last = lines[-1]
    assert (last["status"], last["error"]["code"]) == ("failed", "provider_bad_request")
    error = last["output"][-1]
    assert (error["type"], error["role"], error["status"]) == ("error", "assistant", "completed")
    assert {"code": error["code"], "message": error["message"]} == last["error"]
    assert error["content"][0]["text"] == error["message"]


def test_a_tools_words_reach_the_model_as_the_output_of_their_call(
    client: Client, scripted: Callable[..., ScriptedModel], provider: FakeModel
) -> None:
    call = {"call_id": "c1", "name": "get_weather", "arguments": '{"city": "Ulm"}'}
    asked = {
        "type": "function_call",
        "role": "assistant",
        "content": [{"type": "data", "data": call}],
    }
    outputs = (
        said("21 °C", "tool"),  # the one call that waits
        said("21 °C", "tool") | {"metadata": {"tool_call_id": "c1"}},
        said("21 °C", "tool") | {"call_id": "c1"},
    )
    for output in outputs:
        name = uuid4().hex
        provider.script(text("warm"), name=name)
        model = scripted(f"script:{name}")
        told = [said("weather?"), asked, output]
        frames(process(client, *told, model=model.name, tools=[TOOL]))
        [sent] = provider.requests_for(f"script:{name}")
        assert [message["role"] for message in sent.body["messages"]][-2:] == ["assistant", "tool"]
        last = sent.body["messages"][-1]
        assert (last["tool_call_id"], last["content"]) == ("c1", "21 °C")


def test_several_calls_and_outputs_of_one_message_all_reach_the_model(
    client: Client, scripted: Callable[..., ScriptedModel], provider: FakeModel
) -> None:
    """The package makes one message of an OpenAI message with several calls."""
    calls = [
        {"id": f"c{n}", "function": {"name": "get_weather", "arguments": f'{{"city": "{city}"}}'}}
        for n, city in enumerate(("Ulm", "Bern"))
    ]
    asked = oracle.models.Message.from_openai_message({"role": "assistant", "tool_calls": calls})
    outputs = [
        oracle.models.Message.from_openai_message(
            {"role": "tool", "tool_call_id": f"c{n}", "content": words}
        )
        for n, words in enumerate(("21 °C", "19 °C"))
    ]
    name = uuid4().hex
    provider.script(text("warm"), name=name)
    model = scripted(f"script:{name}")
    told = [message.model_dump(exclude_none=True) for message in (asked, *outputs)]
    frames(process(client, said("weather?"), *told, model=model.name, tools=[TOOL]))
    [sent] = provider.requests_for(f"script:{name}")
    made = sent.body["messages"][-3]
    assert [one["id"] for one in made["tool_calls"]] == ["c0", "c1"]
    answers = [(one["tool_call_id"], one["content"]) for one in sent.body["messages"][-2:]]
    assert answers == [("c0", "21 °C"), ("c1", "19 °C")]


def test_the_response_has_the_name_that_the_client_gives_it(client: Client) -> None:
    """`response_id` of the seed, as the package's A2A adapter sends it; its `id` means the same."""
    name = f"task-{uuid4().hex}"
    first = frames(process(client, said("chest"), response_id=name))
    assert {line["id"] for line in first if line["object"] == "response"} == {name}
    assert frames(process(client, said("chest"), response_id=name)) == first
    both = process(client, said("chest"), response_id=name, id="another")
    assert (both.status_code, both.json()["code"]) == (422, "response_id_ambiguous")


def test_a_providers_refusal_comes_as_a_refusal(
    client: Client, scripted: Callable[..., ScriptedModel]
) -> None:
    model = scripted("refusal")
    lines = frames(process(client, said("hi"), model=model.name))
    [message] = lines[-1]["output"]
    [content] = message["content"]
    assert (message["type"], content["type"]) == ("message", "refusal")
    assert content["refusal"] == words(lines) == "I can't."
    parsed = oracle.models.Message.model_validate(message)
    assert type(parsed.content[0]) is oracle.models.RefusalContent
    assert lines[-1]["status"] == "completed"
