"""A run of any dialect reads the same in every other, with the real parser of each; and so does one
whose runner misbehaves."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import httpx
import pytest

from agents.api import streaming
from agents.dialects.recognition import DIALECTS
from conversations.log.follow import follow
from conversations.models import Run
from tests.agents.dialects.ag_ui.node import Clients
from tests.agents.dialects.ag_ui.readings import READINGS, Reading
from tests.agents.dialects.ag_ui.scripts import MISBEHAVING
from tests.support.client import Client

pytestmark = pytest.mark.usefixtures("scripted_runs")


def text_run(client: Client, question: str) -> str:
    alone: dict[str, Any] = {"enable_exercise_search": False, "enable_web_search": False}
    return str(client.start(question, result_mode="raw_passthrough", **alone)["run_id"])


def run_agent_input(client: Client, question: str) -> str:
    message = {"id": "m1", "role": "user", "content": question}
    asked = {"threadId": str(uuid4()), "runId": uuid4().hex, "messages": [message]}
    return str(post(client, "/api/v1/agent/runs", asked | MODEL)["taskId"])


def ag_ui(client: Client, question: str) -> str:
    message = {"id": "m1", "role": "user", "content": question}
    asked = {"threadId": str(uuid4()), "runId": uuid4().hex, "messages": [message]}
    modern = {"protocolVersion": "1.0"}
    return str(post(client, "/api/v1/agent/ag-ui", asked | MODEL | modern)["taskId"])


def agent_api(client: Client, question: str) -> str:
    message = {"role": "user", "content": [{"type": "text", "text": question}]}
    return str(post(client, "/process/task", {"model": "demo", "input": [message]})["task_id"])


def responses(client: Client, question: str) -> str:
    asked = {"model": "demo", "input": question, "background": True}
    return str(post(client, "/v1/responses", asked)["id"]).removeprefix("resp_")


def chat_completions(client: Client, question: str) -> str:
    asked = {"model": "demo", "stream": True, "messages": [{"role": "user", "content": question}]}
    path = "/v1/chat/completions?on_disconnect=continue"
    with client.http.stream("POST", path, json=asked) as response:
        first = next(line for line in response.iter_lines() if line.startswith("data: "))
    return str(json.loads(first[6:])["id"]).removeprefix("chatcmpl-")


def runner(client: Client, question: str) -> str:
    asked = {"model": "demo", "input": {"text": question}}
    streamed = client.http.stream("POST", "/api/v1/agent/runs?dialect=runner", json=asked)
    with streamed as response:
        first = next(line for line in response.iter_lines() if line.startswith("data: "))
    return str(json.loads(first[6:])["run_id"])


MODEL = {"forwardedProps": {"model": "demo"}}
BEGINNINGS: dict[str, Callable[[Client, str], str]] = {
    "text": text_run,
    "run-agent-input": run_agent_input,
    "ag-ui": ag_ui,
    "agent-api": agent_api,
    "responses": responses,
    "chat-completions": chat_completions,
    "runner": runner,
}


def post(client: Client, path: str, body: dict[str, Any]) -> dict[str, Any]:
    response = client.http.post(path, json=body, headers={"Accept": "application/json"})
    assert response.status_code in {200, 202}, response.text
    told: dict[str, Any] = response.json()
    return told


def test_every_dialect_is_begun_and_read_here() -> None:
    assert set(BEGINNINGS) == set(READINGS) == set(DIALECTS)


def read(client: Client, run_id: str, dialect: str) -> str:
    response = client.http.get(f"/api/v1/agent/runs/{run_id}/events", params={"dialect": dialect})
    assert response.status_code == 200, response.text
    return response.text


def readings(clients: Clients, client: Client, run_id: str) -> Reading:
    """What all clients agree on."""
    made = {name: reading(clients, read(client, run_id, name)) for name, reading in READINGS.items()}
    for name, reading in made.items():
        for other, seen in made.items():
            assert reading.agrees(seen), (name, reading, other, seen)
    return made["ag-ui"]


def begun(client: Client, question: str) -> dict[str, str]:
    return {name: begin(client, question) for name, begin in BEGINNINGS.items()}


EXPECTED: dict[str, tuple[str, str]] = {
    "everything": ("I look it up. 好的\u2028Here it is.", "ok"),
    "fails": ("I am", "provider_error"),
    "misbehaves": ("one two", "ok"),
    "leaves_all_open": ("begun, too", "ok"),
    "says_all_twice": ("once", "ok"),
    "says_what_nothing_can_hold": ("a\ufffdb\ufffdc\u2028d\u2029e\x85f\r\n", "ok"),
    "says_no_fact": ("well", "internal_error"),
    "breaks": ("I am", "internal_error"),
    "waits_in_vain": ("well", "internal_error"),
    "ends_with_nonsense": ("well", "internal_error"),
    "fails_in_odd_words": ("well", "odd\ufffd"),
    "answers_for_the_client": ("", "ok"),
}


def test_every_misbehaviour_is_expected() -> None:
    assert {made.__name__ for made in MISBEHAVING} <= set(EXPECTED)


@pytest.mark.parametrize("script", EXPECTED)
def test_a_run_begun_in_any_dialect_reads_the_same_in_every_other(
    clients: Clients, client: Client, script: str
) -> None:
    for name, run_id in begun(client, f"script {script}").items():
        seen = readings(clients, client, run_id)
        assert (seen.words, seen.end) == EXPECTED[script], name
        assert "secret" not in read(client, run_id, name)
        if script == "everything":
            assert seen.reasoning == "let me think"
            assert seen.answers is not None
            assert seen.answers["gone"] == 1
            assert set(seen.calls or ()) == {("search", '{"q": "鸟"}'), ("search", '{"q": "fish"}')}


def test_a_run_of_the_demo_model_with_its_tools(clients: Clients, client: Client) -> None:
    for run_id in begun(client, "练胸有什么动作？").values():
        seen = readings(clients, client, run_id)
        assert (len(seen.words) > 20, seen.end) == (True, "ok")


def test_an_approval_and_the_run_that_goes_on(clients: Clients, client: Client) -> None:
    for name, run_id in begun(client, "approve demo.note buy milk").items():
        asked = readings(clients, client, run_id)
        assert (asked.end, asked.approvals) == ("ok", ("demo.note",)), name
        waiting = client.http.get("/api/v1/agent/approvals", params={"status": "pending"}).json()
        [approval] = [one for one in waiting["approvals"] if one["run_id"] == run_id]
        path = f"/api/v1/agent/approvals/{approval['id']}"
        assert client.http.post(path, json={"approve": True}).status_code == 200
        after = Run.objects.get(client_run_id=f"continue-{run_id}", owner=client.user)
        client.wait_for(after.id.hex, "completed")
        seen = {r: READINGS[r](clients, read(client, after.id.hex, r)) for r in READINGS}
        assert len({(one.spoken, one.end) for one in seen.values()}) == 1, seen
        answers = [plain_answers(one) for one in seen.values() if one.answers is not None]
        assert len(set(answers)) == 1, seen
        assert "buy milk" in seen["text"].words
        assert [[*(seen[name].calls or ())] for name in ("agent-api", "responses")] == [[NOTE]] * 2


NOTE = ("demo.note", '{"text": "buy milk"}')


def plain_answers(reading: Reading) -> tuple[tuple[str, int], ...]:
    return tuple(sorted((reading.answers or {}).items()))


def test_a_run_that_is_cancelled(clients: Clients, client: Client) -> None:
    for run_id in begun(client, "script endless").values():
        client.http.post(f"/api/v1/agent/runs/{run_id}/cancel")
        client.wait_for(run_id, "cancelled")
        assert readings(clients, client, run_id).end == "cancelled"


@pytest.mark.parametrize("dialect", READINGS)
def test_a_run_that_is_deleted_under_its_reader_does_not_look_like_a_success(
    clients: Clients, client: Client, dialect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `follow` ends when the rows are gone."""
    run_id = text_run(client, "script everything")
    client.wait_for(run_id, "completed")

    async def erased(*given: Any, **more: Any) -> Any:
        async for batch in follow(*given, **more):
            if batch is None or batch.is_last:
                return
            yield batch

    monkeypatch.setattr(streaming, "follow", erased)
    assert READINGS[dialect](clients, read(client, run_id, dialect)).end == "thread_deleted"


def test_a_thread_deleted_while_it_is_read_gives_its_readers_an_end(
    clients: Clients, client: Client
) -> None:
    thread_id = str(uuid4())
    message = {"id": "m1", "role": "user", "content": "script endless"}
    asked = {"threadId": thread_id, "runId": "r", "messages": [message]} | MODEL
    with client.http.stream("POST", "/api/v1/agent/ag-ui", json=asked) as stream:
        texts, body = stream.iter_text(), ""
        while body.count("TEXT_MESSAGE_CONTENT") < 2:
            body += next(texts)
        assert client.http.delete(f"/api/v1/agent/threads/{thread_id}").status_code == 204
        body += "".join(texts)
    assert READINGS["ag-ui"](clients, body).end in {"cancelled", "thread_deleted"}


def test_either_generation_reads_a_thread_that_the_other_began(clients: Clients, client: Client) -> None:
    """An older client refuses the word `cancelled`, and pending calls."""
    for version in ("1.0", None):
        thread_id, message = str(uuid4()), {"id": "m1", "role": "user", "content": "script endless"}
        asked = {"threadId": thread_id, "runId": "r", "messages": [message], "protocolVersion": version}
        run_id = str(post(client, "/api/v1/agent/ag-ui", asked | MODEL)["taskId"])
        client.http.post(f"/api/v1/agent/runs/{run_id}/cancel")
        client.wait_for(run_id, "cancelled")
        url = f"{client.url}/api/v1/agent/threads/{thread_id}/connect?protocolVersion="
        headers = {"Authorization": f"Bearer {client.token}"}
        for generation, said in (("0.0.59", "0"), ("1.0.0", "1.0")):
            agent = clients.new(generation, threadId=thread_id, headers=headers)
            seen = agent.run(connect=url + said)
            assert (seen["failure"], seen["warnings"]) == (None, [])
            assert (seen["outcome"] == "cancelled") == (said == "1.0")


GETS = (
    "/api/v1/agent/runs/{run}",
    "/api/v1/agent/runs/{run}/events",
    "/api/v1/agent/threads",
    "/api/v1/agent/threads/{thread}",
    "/api/v1/agent/threads/{thread}/connect",
    "/api/v1/agent/capabilities",
    "/api/v1/agent/approvals",
    "/api/v1/agent/history?threadId={thread}",
    "/process/task/{run}",
    "/v1/responses/resp_{run}",
    "/v1/responses/resp_{run}?stream=true",
)


def test_head_gives_the_headers_of_get_and_takes_no_place(client: Client) -> None:
    begun = client.start("script everything")
    client.wait_for(begun["run_id"], "completed")
    for path in GETS:
        at = path.format(run=begun["run_id"], thread=begun["conversation_id"])
        looked, got = client.http.head(at), client.http.get(at)
        assert (looked.status_code, looked.content) == (200, b""), at
        assert looked.headers["content-type"] == got.headers["content-type"], at
    assert client.http.head("/api/v1/agent/runs/unknown/events").status_code == 404
    assert client.http.head("/process").status_code == 405


@pytest.mark.parametrize(
    ("accept", "streamed"),
    [
        ("text/event-stream", True),
        ("text/event-stream;q=0.1, application/json", True),
        ("application/json, Text/Event-Stream", True),
        ("text/event-stream;q=0", False),
        ("application/json, text/event-stream; q=0.000", False),
        ("application/json", False),
    ],
)
def test_a_stream_comes_only_to_who_accepts_one(client: Client, accept: str, streamed: bool) -> None:
    message = {"id": "m1", "role": "user", "content": "script everything"}
    asked = {"threadId": str(uuid4()), "runId": "r", "messages": [message]} | MODEL
    posted: list[httpx.Response] = [
        client.http.post(path, json=body, headers={"Accept": accept})
        for path, body in (
            ("/api/v1/agent/ag-ui", asked),
            ("/api/v1/agent/runs", asked | {"runId": "s"}),
            ("/api/v1/agent/runs", {"model": "demo", "text": "script everything"}),
        )
    ]
    assert [found.status_code == 200 for found in posted] == [streamed] * 3
    run_id = client.start("script everything")["run_id"]
    client.wait_for(run_id, "completed")
    read = client.http.get(f"/api/v1/agent/runs/{run_id}/events", headers={"Accept": accept})
    assert read.headers["content-type"].startswith("text/event-stream") == streamed
