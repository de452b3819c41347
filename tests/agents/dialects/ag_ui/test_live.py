"""Unmodified AG-UI clients of both generations against the live server."""

from __future__ import annotations

import base64
from typing import Any
from uuid import uuid4

import pytest

from tests.agents.dialects.ag_ui.conftest import Open
from tests.agents.dialects.ag_ui.messages import WEATHER, Seen, params, shape, sound, user
from tests.support.client import Client
from tests.support.pictures import small_png

pytestmark = pytest.mark.once


def kinds(seen: Seen) -> list[str]:
    return [event["type"] for event in seen["events"]]


def test_text(open_agent: Open, generation: str) -> None:
    run_id = str(uuid4())
    seen = sound(open_agent().run(add=[user("练胸有什么动作？")], params=params(runId=run_id)))
    assert seen["outcome"] == "success"
    assert seen["messages"][-1]["role"] == "assistant"
    assert len(seen["messages"][-1]["content"]) > 20
    started, finished = seen["events"][0], seen["events"][-1]
    assert (started["runId"], finished["runId"]) == (run_id, run_id)
    assert started.get("protocolVersion") == ("1.0" if generation == "1.0.0" else None)
    assert finished["usage"][0]["outputTokens"] > 0
    steps = [e["stepName"] for e in seen["events"] if e["type"] == "STEP_FINISHED"]
    assert steps == ["intent", "execution"]
    stages = {e["metadata"]["parley"].get("stage") for e in seen["events"] if "metadata" in e}
    assert {"intent", "execution"} <= stages


@pytest.mark.usefixtures("scripted_runs")
def test_reasoning_tools_state_and_artifacts(open_agent: Open) -> None:
    seen = sound(open_agent().run(add=[user("go")], params=params("everything")))
    roles = [message["role"] for message in seen["messages"]]
    assert roles == [
        "user",
        "reasoning",
        "assistant",
        "assistant",
        "tool",
        "assistant",
        "tool",
        "activity",
        "assistant",
    ]
    assert seen["messages"][1]["content"] == "let me think"
    assert seen["messages"][2]["content"] == "I look it up. 好的\u2028"
    assert seen["messages"][3]["toolCalls"][0]["function"] == {
        "name": "search",
        "arguments": '{"q":"鸟"}',
    }
    assert seen["messages"][4]["content"] == '{"error":{"code":"gone","message":"No birds."}}'
    assert seen["messages"][-1]["content"] == "Here it is."
    assert seen["state"] == {"count": 1, "items": ["a", "b"], "deep": {"er": True}}
    usage = seen["events"][-1]["usage"]
    assert usage == [
        {
            "provider": "scripted",
            "model": "script-1",
            "inputTokens": 12,
            "outputTokens": 34,
            "totalTokens": 46,
            "cachedInputTokens": 5,
            "reasoningTokens": 6,
        }
    ]
    assert seen["pending"] == []
    shown = seen["messages"][-1]["metadata"]["parley"]["uiSchema"]
    assert (shown["version"], shown["status"]) == ("2.0", "success")
    [card] = [event for event in seen["events"] if event.get("name") == "parley.ui_schema"]
    assert card["value"] == {"messageId": seen["messages"][-1]["id"], "uiSchema": shown}


def test_the_client_sends_its_whole_history_and_nothing_is_said_twice(
    open_agent: Open, client: Client
) -> None:
    thread_id = str(uuid4())
    agent = open_agent(threadId=thread_id)
    for turn in range(1, 4):
        seen = sound(agent.run(add=[user(f"question {turn}")], params=params()))
    spoken = [message for message in seen["messages"] if message["role"] == "user"]
    assert [message["content"] for message in spoken] == [f"question {turn}" for turn in range(1, 4)]
    stored = client.history(thread_id)["messages"]
    assert [said["content"] for said in stored if said["role"] == "user"] == [
        f"question {turn}" for turn in range(1, 4)
    ]
    answers = [said["content"] for said in stored if said["role"] == "assistant"]
    assert answers == [
        m["content"] for m in seen["messages"] if m["role"] == "assistant" and m.get("content")
    ]


def test_frontend_tools_are_called_by_the_client_and_the_next_run_goes_on(
    open_agent: Open, generation: str
) -> None:
    agent = open_agent()
    asked = user('Please get_weather {"city": "Oslo"}')
    seen = sound(agent.run(add=[asked], params=params(tools=[WEATHER])))
    call = seen["called"][0]
    assert call["function"] == {"name": "get_weather", "arguments": '{"city":"Oslo"}'}
    assert "TOOL_CALL_RESULT" not in kinds(seen)
    if generation == "1.0.0":
        assert seen["pending"] == [call["id"]]
    answer = {"id": str(uuid4()), "role": "tool", "toolCallId": call["id"], "content": "12 °C, rain"}
    seen = sound(agent.run(add=[answer], params=params(tools=[WEATHER])))
    assert "12 °C, rain" in seen["messages"][-1]["content"]
    assert seen["pending"] == []


@pytest.mark.usefixtures("scripted_runs")
def test_interrupts_end_a_run_and_an_answer_continues_it(open_agent: Open) -> None:
    agent = open_agent()
    seen = sound(agent.run(add=[user("pay")], params=params("asks")))
    assert seen["outcome"] == "interrupt"
    [interrupt] = seen["interrupts"]
    assert interrupt["toolCallId"] == seen["called"][0]["id"]
    refused = agent.run(add=[user("and?")], params=params("asks"))
    assert refused["failure"] is not None, "the client insists on an answer"
    resume = [{"interruptId": interrupt["id"], "status": "resolved", "payload": {"approved": True}}]
    seen = sound(agent.run(params=params("asks", resume=resume)))
    assert seen["messages"][-1]["content"] == "resolved: {'approved': True}"
    assert seen["interrupts"] == []


@pytest.mark.usefixtures("scripted_runs")
def test_a_cancelled_run_is_not_a_success(open_agent: Open, client: Client, generation: str) -> None:
    run_id = str(uuid4())
    agent = open_agent()
    cut = agent.run(add=[user("speak")], params=params("endless", runId=run_id), cutAfter=8)
    assert cut["failure"] is not None
    assert client.http.post(f"/api/v1/agent/runs/{run_id}/cancel").status_code == 202
    seen = agent.run(params=params("endless", runId=run_id))
    assert seen["failure"] is None
    if generation == "1.0.0":
        assert seen["outcome"] == "cancelled"
    else:
        assert [error["code"] for error in seen["errors"]] == ["cancelled"]


@pytest.mark.usefixtures("scripted_runs")
def test_a_client_that_leaves_stops_its_run_only_if_it_said_so(open_agent: Open, client: Client) -> None:
    stays, stops = str(uuid4()), str(uuid4())
    open_agent().run(add=[user("speak")], params=params("endless", runId=stays), abortAfter=6)
    told = params("endless", runId=stops)
    told["forwardedProps"]["onDisconnect"] = "cancel"
    open_agent().run(add=[user("speak")], params=told, abortAfter=6)
    client.wait_for(stops, "cancelled")
    assert client.run(stays)["status"] == "running"
    client.http.post(f"/api/v1/agent/runs/{stays}/cancel")
    client.wait_for(stays, "cancelled")


@pytest.mark.usefixtures("scripted_runs")
def test_a_failed_run_is_an_error_that_can_be_read(open_agent: Open) -> None:
    seen = sound(open_agent().run(add=[user("go")], params=params("fails")))
    assert seen["errors"] == [{"code": "provider_error", "message": "The model is out of order."}]


@pytest.mark.usefixtures("scripted_runs")
def test_a_runner_that_misbehaves_gives_a_stream_that_clients_take(open_agent: Open) -> None:
    seen = sound(open_agent().run(add=[user("go")], params=params("misbehaves")))
    assert seen["outcome"] == "success"
    assert next(m for m in seen["messages"] if m.get("content", "").startswith("one"))


def test_what_is_refused_is_refused_before_the_stream_in_words(open_agent: Open) -> None:
    seen = open_agent().run(add=[user("x" * 1_000_001)], params=params())
    assert seen["status"] == 422
    assert "too long" in str(seen["failure"])
    assert "xxxx" not in str(seen["failure"])


def test_another_body_under_a_known_run_id_is_refused(open_agent: Open) -> None:
    thread_id, run_id = str(uuid4()), str(uuid4())
    sound(open_agent(threadId=thread_id).run(add=[user("one")], params=params(runId=run_id)))
    other = open_agent(threadId=thread_id).run(add=[user("two")], params=params(runId=run_id))
    assert other["status"] == 409


@pytest.mark.usefixtures("scripted_runs")
def test_a_thread_is_replayed_and_its_live_run_followed(open_agent: Open, client: Client) -> None:
    thread_id = str(uuid4())
    connect = f"{client.url}/api/v1/agent/threads/{thread_id}/connect"
    agent = open_agent(threadId=thread_id)
    first = sound(agent.run(add=[user("hello")], params=params()))
    again = sound(open_agent(threadId=thread_id).run(connect=connect))
    assert shape(again) == shape(first)
    run_id = str(uuid4())
    agent.run(add=[user("go")], params=params("everything", runId=run_id), cutAfter=6)
    live = sound(open_agent(threadId=thread_id).run(connect=connect))
    ended = sound(open_agent(threadId=thread_id).run(connect=connect))
    assert shape(live) == shape(ended)
    assert shape(live)[-2][1] == "Here it is."
    assert ended["state"] == {"count": 1, "items": ["a", "b"], "deep": {"er": True}}


@pytest.mark.usefixtures("scripted_runs")
def test_what_was_streamed_and_what_is_stored_are_the_same_messages(
    open_agent: Open, client: Client
) -> None:
    thread_id = str(uuid4())
    agent = open_agent(threadId=thread_id)
    for told in (params("everything"), params(tools=[WEATHER])):
        sound(agent.run(add=[user("get_weather please")], params=told))
    seen = sound(agent.run(add=[user("thanks")], params=params()))
    connect = f"{client.url}/api/v1/agent/threads/{thread_id}/connect"
    stored = sound(open_agent(threadId=thread_id).run(connect=connect))

    def kept(some: Seen) -> list[Any]:
        left_out = {"reasoning", "activity"}
        return [
            {key: value for key, value in said.items() if key != "metadata"}
            for said in some["messages"]
            if said["role"] not in left_out
        ]

    def plain(messages: list[Any]) -> list[Any]:
        for said in messages:
            for call in said.get("toolCalls", []):
                call.pop("metadata", None)
        return messages

    assert plain(kept(stored)) == plain(kept(seen))
    detail = client.http.get(f"/api/v1/agent/threads/{thread_id}").json()
    assert plain(kept(detail)) == plain(kept(seen))
    assert detail["state"] == seen["state"]


def test_a_history_of_a_megabyte_is_taken_but_not_from_everybody(client: Client) -> None:
    long = [user("x" * 10_000) for _ in range(100)]
    body = {"threadId": str(uuid4()), "runId": "r", "messages": [*long, user("hello")]}
    strict = client.http.post("/api/v1/agent/runs", json=body)
    assert (strict.status_code, strict.json()["detail"]) == (
        413,
        "RunAgentInput payload exceeds size limit",
    )
    props = {"forwardedProps": {"model": "demo"}}
    taken = client.http.post(
        "/api/v1/agent/ag-ui", json=body | props, headers={"Accept": "application/json"}
    )
    assert taken.status_code == 202, taken.text
    client.wait_for(taken.json()["taskId"], "completed")
    with_all = client.http.post("/api/v1/agent/ag-ui", content=b" " * (33 * 1024 * 1024))
    assert with_all.status_code == 413


def test_another_users_thread_does_not_exist(open_agent: Open, make_client: Any, client: Client) -> None:
    thread_id = str(uuid4())
    sound(open_agent(threadId=thread_id).run(add=[user("hello")], params=params()))
    other = make_client()
    assert other.http.get(f"/api/v1/agent/threads/{thread_id}/connect").status_code == 404


def test_a_thread_may_have_a_name_that_is_no_uuid(open_agent: Open, client: Client) -> None:
    name = f"thread_{uuid4().hex[:8]}"
    agent = open_agent(threadId=name)
    seen = sound(agent.run(add=[user("hello")], params=params()))
    assert seen["events"][0]["threadId"] == name
    connect = f"{client.url}/api/v1/agent/threads/{name}/connect"
    again = sound(open_agent(threadId=name).run(connect=connect))
    assert shape(again) == shape(seen)


def test_the_capabilities_have_the_published_shape(client: Client) -> None:
    from ag_ui.core.capabilities import AgentCapabilities

    told = client.http.get("/api/v1/agent/capabilities").json()
    assert AgentCapabilities.model_validate(told).model_dump(by_alias=True, exclude_none=True) == told


@pytest.mark.parametrize("way", ["data", "url", "binary url", "binary data"])
def test_images_reach_the_model_and_come_back_with_fresh_urls(
    open_agent: Open, client: Client, way: str
) -> None:
    encoded = base64.b64encode(small_png()).decode()
    answer = client.http.post("/api/v1/agent/attachments", files={"file": ("x.png", small_png())})
    assert answer.status_code == 201, answer.text
    url = answer.json()["url"]
    parts = {
        "data": {
            "type": "image",
            "source": {"type": "data", "value": encoded, "mimeType": "image/png"},
        },
        "url": {"type": "image", "source": {"type": "url", "value": url, "mimeType": "image/png"}},
        "binary url": {"type": "binary", "mimeType": "image/png", "url": url},
        "binary data": {"type": "binary", "mimeType": "image/png", "data": encoded},
    }
    thread_id = str(uuid4())
    agent = open_agent(threadId=thread_id)
    shown = user([{"type": "text", "text": "What is this?"}, parts[way]])
    seen = agent.run(add=[shown], params=params())
    assert seen["failure"] is None, seen["failure"]
    assert "5 × 3" in seen["messages"][-1]["content"]
    again = agent.run(add=[user("and now?")], params=params())
    assert again["failure"] is None, "old parts are resolved by what is stored"
    detail = client.http.get(f"/api/v1/agent/threads/{thread_id}").json()
    text, image = detail["messages"][0]["content"]
    assert text == {"type": "text", "text": "What is this?"}
    place = image["source"]["value"].partition("/storage/")[2]
    assert client.http.get(f"/storage/{place}").content[:4] == b"\x89PNG"
    connect = f"{client.url}/api/v1/agent/threads/{thread_id}/connect"
    replayed = open_agent(threadId=thread_id).run(connect=connect)
    assert replayed["failure"] is None, replayed["failure"]
    assert [m["role"] for m in replayed["messages"]] == [m["role"] for m in detail["messages"]]


def test_a_file_that_is_no_image_is_refused_in_words(open_agent: Open) -> None:
    source = {"type": "data", "value": base64.b64encode(b"<svg/>").decode(), "mimeType": "image/png"}
    seen = open_agent().run(add=[user([{"type": "image", "source": source}])], params=params())
    assert seen["status"] in {415, 422}
    assert seen["failure"] is not None
