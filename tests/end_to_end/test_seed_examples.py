"""The requests that the seeds print, as they stand, with a model and a signed URL of this server."""

from __future__ import annotations

import json
import time
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connection

from conversations.models import Message, Run
from tests.agents.dialects.agent_api.exchange import frames as agent_api_frames
from tests.support.client import Client, read_sse
from tests.support.image_runs import uploaded
from tests.support.pictures import picture
from tests.support.properties import json_schemas

pytestmark = pytest.mark.once

CITY = {"type": "string", "description": "城市名称"}
WEATHER = {
    "name": "get_weather",
    "description": "获取指定城市的天气信息",
    "parameters": {"type": "object", "properties": {"city": CITY}, "required": ["city"]},
}


def printed(run_id: str, content: Any, *tools: dict[str, Any]) -> dict[str, Any]:
    """A request of seed 000; its thread is new, because everybody tries the example's first."""
    return {
        "threadId": str(uuid4()),
        "runId": run_id,
        "state": {},
        "messages": [{"id": "msg-001", "role": "user", "content": content}],
        "tools": list(tools),
        "context": [],
        "forwardedProps": {},
    }


def answered(client: Client, given: dict[str, Any]) -> Run:
    """The run of a request that is taken, when it has ended well; history has question and answer."""
    response = client.http.post("/api/v1/agent/runs", json=given)
    assert response.status_code == 202, response.text
    run_id = response.json()["taskId"]
    client.wait_for(run_id, "completed")
    shown = client.history(given["threadId"])["messages"]
    assert (shown[0]["id"], shown[0]["role"], shown[-1]["role"]) == ("msg-001", "user", "assistant")
    return Run.objects.get(pk=run_id)


def test_seed_000s_text_request(client: Client) -> None:
    run = answered(client, printed("run-001", "帮我查一下北京今天的天气"))
    assert (run.client_run_id, run.request.get("tools", [])) == ("run-001", [])
    again = client.http.get("/api/v1/agent/history")  # without a threadId: the newest conversation
    assert again.json()["threadId"] == str(run.thread_id)


@pytest.mark.parametrize("path", ["/api/v1/agent/runs", "/api/v1/agent/run"])
def test_a_thread_is_told_everywhere_as_its_client_writes_it(client: Client, path: str) -> None:
    """Swift writes a UUID in capitals, and seed 001's client has names of its own."""
    name = str(uuid4()).upper() if path.endswith("runs") else "thread-123"
    given = printed("run-001", "hello") | {"threadId": name}
    accepted = client.http.post(path, json=given).json()
    assert accepted["threadId"] == name
    client.wait_for(accepted["taskId"], "completed")
    for query in ({}, {"content": "blocks"}, {"before": "9999-12-31"}, {"before": "0001-01-01"}):
        assert client.history(name, **query)["threadId"] == name
    with client.http.stream("GET", f"/api/v1/agent/runs/{accepted['taskId']}/events") as response:
        assert next(read_sse(response)).data["threadId"] == name


def test_seed_000s_request_with_an_image(client: Client) -> None:
    stored = uploaded(client, picture("PNG", (8, 8)))
    content = [
        {"type": "text", "text": "这张图片里的内容是什么?"},
        {"type": "binary", "mimeType": "image/png", "url": stored["url"]},
    ]
    run = answered(client, printed("run-002", content))
    said = Message.objects.get(run=run, role="user")
    assert said.content == "这张图片里的内容是什么?"
    assert said.metadata["user_message_attachments"]["path"] == stored["path"]


def test_seed_000s_request_with_a_tool(client: Client) -> None:
    run = answered(client, printed("run-003", "北京天气怎么样?", WEATHER))
    assert [tool["name"] for tool in run.request["tools"]] == ["get_weather"]
    assert [json.loads(schema) for schema in run.request["schemas"]] == [WEATHER["parameters"]]


def test_every_optional_member_of_seed_000s_messages_is_taken(client: Client) -> None:
    stored = uploaded(client, picture("PNG", (8, 8)))
    image = {"type": "binary", "mimeType": "image/png", "url": stored["url"]}
    image |= {"id": "file-1", "filename": "a.png"}
    call = {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}
    given = printed("run-004", [{"type": "text", "text": "?"}, image], WEATHER)
    given["parentRunId"] = "run-000"
    given["context"] = [{"description": "Page", "value": "the cart"}]
    given["messages"][0] |= {"name": "Ann", "encryptedValue": "u"}
    given["messages"] += [
        {"id": "2", "role": "system", "content": "be brief", "name": None, "encryptedValue": None},
        {"id": "3", "role": "assistant", "content": None, "name": None, "encryptedValue": None}
        | {"toolCalls": [call | {"encryptedValue": "c"}]},
        {"id": "4", "role": "tool", "toolCallId": "c1", "content": "none", "error": "no station"}
        | {"encryptedValue": "t"},
        {"id": "5", "role": "assistant", "content": "So.", "name": "bot", "encryptedValue": "a"},
    ]
    kept = answered(client, given).request
    assert (kept["parent_run_id"], kept["context"]) == ("run-000", given["context"])
    said = {message["client_id"]: message for message in kept["messages"]}
    assert (said["msg-001"]["name"], said["5"]["name"]) == ("Ann", "bot")
    sealed = [said[one].get("encrypted_value") for one in ("msg-001", "2", "3", "4", "5")]
    assert sealed == ["u", None, None, "t", "a"]
    assert said["4"]["error"] == "no station"


def test_metadata_is_jsonb_in_the_messages_row(client: Client) -> None:
    """Seed 001, database field: it can be queried where it lies."""
    accepted = client.start("卧推")
    client.watch(accepted["run_id"])
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_typeof(metadata)::text, metadata->>'run_id' FROM conversations_message"
            " WHERE metadata @> jsonb_build_object('run_id', %s::text) AND role = 'tool'",
            [accepted["run_id"]],
        )
        assert cursor.fetchall() == [("jsonb", accepted["run_id"])]


@pytest.mark.parametrize("headers", [{}, {"X-Request-Id": "app-7"}], ids=["bare", "with an id"])
def test_seed_002s_request(client: Client, headers: dict[str, str]) -> None:
    given = {
        "model": "global:demo",
        "text": "帮我查一下今天的训练相关新闻，并给出一份三分化建议",
        "conversation_id": None,
        "metadata": {"client": "app", "client_run_id": "<opaque>"},
        "result_mode": "xml_plaintext",
        "enable_exercise_search": True,
        "exercise_top_k": 5,
        "enable_web_search": False,
        "web_search_top_k": 5,
    }
    json_schemas.validator("agent_run_create_request").validate(given)
    response = client.http.post("/api/v1/agent/runs", json=given, headers=headers)
    accepted = response.json()
    assert response.status_code == 202
    json_schemas.validator("agent_run_create_response").validate(accepted)
    assert accepted == {
        "run_id": accepted["run_id"],
        "message_id": accepted["run_id"],
        "conversation_id": str(UUID(accepted["conversation_id"])),
    }
    assert UUID(accepted["run_id"]).hex == accepted["run_id"]
    frames = client.watch(accepted["run_id"])
    told = {(frame.data["message_id"], frame.data["request_id"]) for frame in frames}
    assert told == {(accepted["run_id"], response.headers["x-request-id"])}
    assert headers.get("X-Request-Id", response.headers["x-request-id"]) == told.pop()[1]
    (search,) = [frame.data for frame in frames if frame.event == "tool_start"]
    assert search["tool_name"] == "gymbro.exercise.search"
    assert search["args"] == {"query": given["text"], "top_k": 5}
    last = frames[-1]
    assert (last.event, last.data["result_mode_effective"]) == ("completed", "xml_plaintext")
    assert last.data["metadata"]["thinkingml"] == "ok"
    assert client.run(accepted["run_id"])["metadata"] == given["metadata"]


def test_a_run_is_watched_where_messages_are_watched(client: Client) -> None:
    """Seed 002: the events are those of `/messages/{message_id}/events`."""
    accepted = client.start("卧推")
    whole = client.watch(accepted["run_id"])
    address = f"/api/v1/messages/{accepted['message_id']}/events"
    query = {"conversation_id": accepted["conversation_id"]}
    with client.http.stream("GET", address, params=query) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        assert list(read_sse(response)) == whole


def test_seed_004s_query(client: Client) -> None:
    given = {
        "input": [
            {
                "role": "user",
                "content": [{"type": "text", "text": "描述这张图片"}],
                "type": "message",
            }
        ],
        "stream": True,
        "model": "demo",
    }
    begun = int(time.time())
    lines = agent_api_frames(client.http.post("/process", json=given))
    assert [(lines[place]["object"], lines[place]["status"]) for place in (0, -2, -1)] == [
        ("response", "created"),
        ("message", "completed"),
        ("response", "completed"),
    ]
    pieces = [line for line in lines if line.get("type") == "text" and line["delta"]]
    (whole,) = [line for line in lines if line.get("type") == "text" and not line["delta"]]
    assert {(one["status"], one["index"], one["msg_id"]) for one in pieces} == {
        ("in_progress", 0, whole["msg_id"])
    }
    assert (whole["status"], whole["text"]) == ("completed", "".join(one["text"] for one in pieces))
    assert whole["msg_id"] == lines[-2]["id"]
    last = lines[-1]
    assert last["output"][-1]["id"] == whole["msg_id"]
    assert (last["error"], last["usage"]["total_tokens"] > 0) == (None, True)
    assert begun <= lines[0]["created_at"] <= last["completed_at"] <= time.time()
    assert {line["id"] for line in lines if line["object"] == "response"} == {last["id"]}
    assert last["id"] == f"response_{UUID(last['id'].removeprefix('response_'))}"
