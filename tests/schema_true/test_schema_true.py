"""The hook of the whole suite catches answers that are not as published, and the document says all."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from conversations.runs import client_queries
from tests.schema_true import plugin
from tests.schema_true.document import published
from tests.schema_true.recording import Exchange, records
from tests.support.client import Client

pytestmark = pytest.mark.once

_NOTES = {"title", "default", "description", "examples"}
_SAID = {"properties", "anyOf", "oneOf", "allOf", "$ref", "const", "enum"}
_VALUES = {"const", "enum", "example", "examples", "default", "links", "required"}
RUN = "/api/v1/agent/runs/0192f0c18a3b7c449d551a2b3c4d5e6f"
ERROR = {"detail": "No.", "code": "no", "request_id": "r"}
AT = {"run_id": "a" * 32, "type": "run.failed"}


def answered(path: str, status: int, body: Any, *, method: str = "GET", **headers: str) -> Exchange:
    exchange = Exchange(method, path, "here", is_whole=True)
    named = {name.replace("_", "-"): value for name, value in headers.items()} | {"x-request-id": "r"}
    exchange.head(status, iter(({"content-type": "application/json"} | named).items()))
    exchange.add(body if isinstance(body, bytes) else json.dumps(body).encode())
    return exchange


def streamed(path: str, *frames: tuple[str, Any], method: str = "GET") -> Exchange:
    """A stream that broke off behind its last whole frame."""
    written = [f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in frames]
    body = ": keep-alive\n\n" + "".join(written) + "data: {"
    return answered(path, 200, body.encode(), method=method, content_type="text/event-stream")


def test_no_schema_of_the_document_is_a_bare_object() -> None:
    raw = published().raw
    schemas = [*raw["components"]["schemas"].items(), *_schemas(raw["paths"])]
    assert [at for place, schema in schemas for at in _bare(schema, place)] == []


def _schemas(node: Any, at: str = "") -> Iterator[tuple[str, Any]]:
    """Every schema of the operations, with its place."""
    if isinstance(node, list):
        node = {str(place): value for place, value in enumerate(node)}
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "schema":
                yield at, value
            elif key not in _VALUES:
                yield from _schemas(value, f"{at}/{key}")


def _bare(node: Any, at: str) -> Iterator[str]:
    """Where a schema says nothing of its values, or `object` and no more: it must say why at least."""
    if node is True or (_is_open(node) and not node.get("description")):
        yield at
    for place, part in _parts(node) if isinstance(node, dict) else ():
        yield from _bare(part, f"{at}/{place}")


def _parts(node: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The schemas that a schema consists of."""
    for key, value in node.items():
        if key in ("properties", "patternProperties"):
            yield from value.items()
        elif key in ("anyOf", "oneOf", "allOf"):
            yield from ((f"{key}/{place}", one) for place, one in enumerate(value))
        elif key in ("items", "contentSchema", "additionalProperties") and isinstance(value, dict):
            yield key, value


def _is_open(node: Any) -> bool:
    if not isinstance(node, dict) or node.keys() & _SAID:
        return False
    kinds = node.get("type", [])
    kinds = kinds if isinstance(kinds, list) else [kinds]
    if "object" in kinds:
        return not isinstance(node.get("additionalProperties"), dict)
    return not node.keys() - _NOTES or ("array" in kinds and not node.keys() & {"items", "maxItems"})


def test_every_body_and_every_answer_in_json_has_a_schema() -> None:
    without = [
        f"{method} {path} {where}"
        for path, operations in published().raw["paths"].items()
        for method, operation in operations.items()
        for where, told in _contents(operation)
        for kind, media in told.items()
        if not media.get("schema")
        if "json" in kind or "stream" in kind
    ]
    assert without == []


def _contents(operation: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "body", operation.get("requestBody", {}).get("content", {})
    for status, declared in operation["responses"].items():
        yield status, declared.get("content", {})


@pytest.mark.parametrize(
    ("exchange", "told"),
    [
        (answered(RUN, 418, ERROR), "GET /api/v1/agent/runs/{run_id}: status 418 is not declared"),
        (answered(RUN, 404, {"detail": "No."}), '404: the body: "code" is a required property'),
        (answered(RUN, 503, ERROR), "503: the header Retry-After is missing"),
        (answered(RUN, 404, b"{"), "the body is no JSON"),
        (answered(RUN, 404, ERROR, content_type="text/html"), "404: text/html is not declared"),
        (answered(RUN, 405, ERROR, method="PUT"), "405: the header Allow is missing"),
        (answered(RUN, 200, ERROR, method="PUT"), "status 200 is not declared"),
        (answered("/process", 422, ERROR, method="POST"), '"error" is a required property'),
        (answered("/compatible-mode/v1/models", 401, ERROR), '"error" is a required property'),
    ],
)
def test_an_answer_that_is_not_as_the_document_says_is_told(exchange: Exchange, told: str) -> None:
    found = list(plugin.faults(exchange))
    assert any(told in fault for fault in found), found


TEXT = {"message_id": "a" * 32, "request_id": "r"}
CHUNK = {
    "id": "c",
    "object": "chat.completion.chunk",
    "created": 1,
    "model": "m",
    "service_tier": "default",
    "system_fingerprint": None,
}
CHOICE = {"index": 0, "delta": {}, "logprobs": None}
EVENTS = f"{RUN}/events"


@pytest.mark.parametrize(
    ("path", "name", "good", "bad"),
    [
        (EVENTS, "heartbeat", TEXT | {"ts": 1}, TEXT | {"ts": "now"}),
        (
            "/api/v1/agent/threads/t/connect",
            "",
            {"type": "TEXT_MESSAGE_END", "messageId": "m"},
            {"type": "TEXT_MESSAGE_END", "message": "m"},
        ),
        (
            "/v1/chat/completions",
            "",
            CHUNK | {"choices": [CHOICE | {"finish_reason": "stop"}]},
            CHUNK | {"choices": [CHOICE | {"finish_reason": "ended"}]},
        ),
        (
            "/v1/responses",
            "response.output_text.done",
            {
                "type": "response.output_text.done",
                "sequence_number": 1,
                "item_id": "i",
                "output_index": 0,
                "content_index": 0,
                "text": "t",
                "logprobs": [],
            },
            {"type": "response.output_text.done", "sequence_number": 1, "text": "t"},
        ),
        (
            "/process",
            "",
            {"object": "content", "type": "text", "text": "t", "index": 0},
            {"object": "content", "type": "text", "text": 7, "index": 0},
        ),
        (
            "/api/v1/agent/runners/builtin:demo/run",
            "run.failed",
            AT | {"data": {"error": "e", "code": "c", "message": "e"}},
            AT | {"data": {"error": "e", "code": "c", "words": "e"}},
        ),
    ],
)
def test_a_frame_that_its_protocol_does_not_know_is_told(
    path: str, name: str, good: Any, bad: Any
) -> None:
    method = "GET" if path.startswith("/api/v1/agent/threads") or path == EVENTS else "POST"
    assert list(plugin.faults(streamed(path, (name, good), method=method))) == []
    found = list(plugin.faults(streamed(path, (name, good), (name, bad), method=method)))
    assert found
    assert all("frame 1" in fault for fault in found)


def test_a_frame_of_no_protocol_and_one_of_a_socket_are_told() -> None:
    assert "is of no protocol" in "".join(plugin.faults(streamed(EVENTS, ("", {"hello": 1}))))
    socket = Exchange("SOCKET", "/ws/agent/runs/1", "here")
    socket.head(101, iter([("content-type", "application/x-ndjson")]))
    wrong = TEXT | {"ts": "now"}
    for data in (TEXT | {"ts": 1}, wrong):
        socket.add(json.dumps({"event": "heartbeat", "data": data}).encode() + b"\n")
    assert "frame 1" in "".join(plugin.faults(socket))


def told_soon() -> list[str]:
    """What is wrong with an answer that its client may have read before the server has recorded it."""
    until = time.monotonic() + 10
    while not (found := list(plugin.told())) and time.monotonic() < until:
        time.sleep(0.01)
    return found


@pytest.mark.parametrize("changed", [{"status": "gone"}, {"secret": "s"}])
def test_what_the_server_answers_is_looked_at(
    client: Client, monkeypatch: pytest.MonkeyPatch, changed: dict[str, Any]
) -> None:
    run_id = client.start()["run_id"]
    client.wait_for(run_id, "completed")
    assert list(plugin.told()) == []
    detail = client.run(run_id) | changed

    async def wrong(given: str, *, user_id: Any) -> dict[str, Any]:
        return detail

    monkeypatch.setattr(client_queries, "fetch_run_detail", wrong)
    client.run(run_id)
    found = told_soon()
    assert len(found) == 1
    assert found[0].startswith("GET /api/v1/agent/runs/{run_id} 200: ")
    assert next(iter(changed)) in found[0]
    assert records.test in found[0]


def test_a_test_with_a_wrong_answer_fails(request: pytest.FixtureRequest) -> None:
    records.end(answered(f"/api/v1/agent/threads/{uuid4()}", 418, ERROR))
    with pytest.raises(pytest.fail.Exception, match="status 418 is not declared"):
        plugin.check(request.node)
    plugin.check(request.node)  # and once told, it is over


def test_what_an_excused_test_has_asked_need_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    records.end(answered(RUN, 500, ERROR))
    assert len(list(plugin.told())) == 1
    monkeypatch.setattr(records, "excused", {"here"})
    records.end(answered(RUN, 500, ERROR))
    assert list(plugin.told()) == []
