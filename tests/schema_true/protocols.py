"""Objects of other people's protocols, read with the packages that those people publish.

Their models take members that they do not know; the few that Parley adds are the literals below.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator
from typing import Any, Final

import jsonschema_rs
from pydantic import BaseModel, TypeAdapter, ValidationError

from tests.schema_true.recording import Exchange, frames_of
from tests.support.paths import SCHEMAS

Check = Callable[[Any], Iterator[str]]
_OPENAI: Final = ("/v1/", "/compatible-mode/v1/")
_TEXT_RUN: Final = frozenset(
    {
        "status",
        "tool_start",
        "tool_result",
        "content_delta",
        "upstream_raw",
        "completed",
        "error",
        "heartbeat",
    }
)
_ADDED: Final[dict[str, frozenset[str]]] = {
    "ag-ui": frozenset(),
    "responses": frozenset({"store", "type"}),  # OpenAI has `store`, its package has not
    "completions": frozenset({"reasoning_content", "annotations"}),  # OpenAI streams the latter too
    "agent-api": frozenset(),
    "models": frozenset(),
}
"""Members that we send beyond those of the package, by wire."""


def faults(exchange: Exchange) -> Iterator[str]:
    """What is wrong with the objects of an answer, at the first of them."""
    where = f"{exchange.method} {exchange.path} {exchange.status}"
    if not exchange.is_read:
        return
    if exchange.method == "SOCKET":
        told: Iterator[tuple[str, Any]] = (_framed(frame) for _, frame in frames_of(exchange))
    elif exchange.kind in ("text/event-stream", "application/x-ndjson"):
        told = frames_of(exchange)
    elif exchange.kind == "application/json" and exchange.is_whole and exchange.method != "HEAD":
        yield from _faults_of_answer(where, exchange)
        return
    else:
        return
    for number, (event, data) in enumerate(told):
        for fault in faults_of_frame(event, data):
            yield f"{where}: frame {number}: {fault}"
            return


def _framed(frame: Any) -> tuple[str, Any]:
    """A frame of a socket or of a long poll."""
    return frame["event"], frame["data"]


def faults_of_frame(event: str, data: Any) -> Iterator[str]:
    """What is wrong with one frame, in whichever protocol it is."""
    if event == "refused":  # a socket's, before it closes
        missing = {"detail", "code", "request_id"} - data.keys()
        if missing:
            yield f"refused without {missing}"
        return
    wire = _wire_of(event, data)
    if wire is None:
        yield f"is of no protocol: {event} {json.dumps(data)[:300]}"
        return
    check = _checks()[wire]
    yield from check({"event": event, "data": data} if wire == "text" else data)


def _wire_of(event: str, data: Any) -> str | None:
    match data:
        case {"message_id": _, "request_id": _} if event in _TEXT_RUN:
            return "text"
        case {"object": "chat.completion.chunk"}:
            return "chunk"
        case {"object": str()}:
            return "agent-api"
        case {"type": str() as kind} if kind.isupper():
            return "ag-ui"
        case {"type": str() as kind} if kind == "error" or kind.startswith("response."):
            return "responses"
        case {"type": str(), "run_id": str(), "data": dict()}:
            return "runner"
        case {"error": {"message": _, "code": _}}:
            return "openai-error"
    return None


def _faults_of_answer(where: str, exchange: Exchange) -> Iterator[str]:
    """The same of an answer in JSON."""
    if exchange.status >= 300:
        return
    for name, value in _objects(exchange.path, exchange.json()):
        for fault in _checks()[name](value):
            yield f"{where}: {fault}"
            return


def _objects(path: str, body: Any) -> Iterator[tuple[str, Any]]:
    """The protocols' objects in an answer, each with the name of its check."""
    if path.startswith(_OPENAI):
        yield from _openai_objects(path, body)
    elif path == "/api/v1/agent/capabilities":
        yield "capabilities", body
    elif path.startswith("/process/task/") and body["result"] is not None:
        yield "agent-api", body["result"]
    elif path.startswith("/api/v1/agent/threads/") and "messages" in body:
        yield "ag-ui-messages", body["messages"]
    elif isinstance(body, dict) and body.get("object") == "response":
        yield ("response" if str(body.get("id")).startswith("resp_") else "agent-api"), body
    elif path.endswith("/events") and isinstance(body, dict) and "events" in body:
        yield from (("frame", one) for one in body["events"])


def _openai_objects(path: str, body: Any) -> Iterator[tuple[str, Any]]:
    if "error" in body and body.get("object") != "response":
        return  # sent after blanks, when the status had gone out
    match body.get("object"):
        case "response" if "deleted" not in body:  # of which the package has no model
            yield "response", body
        case "chat.completion":
            yield "completion", body
        case "model":
            yield "model", body
        case "list" if path.endswith("/models"):
            yield from (("model", one) for one in body["data"])
        case "list":
            yield "input-items", body


@functools.cache
def _checks() -> dict[str, Check]:
    """By name; the packages take their time to import, so only who needs them does."""
    from ag_ui.core import Event, Message
    from ag_ui.core.capabilities import AgentCapabilities
    from openai.types import Model
    from openai.types.chat import ChatCompletion, ChatCompletionChunk
    from openai.types.responses import Response, ResponseStreamEvent
    from openai.types.responses.response_item_list import ResponseItemList

    return {
        "text": _text_run(),
        "ag-ui": _model(Event, "ag-ui"),
        "ag-ui-messages": _model(list[Message], "ag-ui"),
        "capabilities": _model(AgentCapabilities, "ag-ui"),
        "response": _model(Response, "responses", strict=True),
        "responses": _model(ResponseStreamEvent, "responses", strict=True),
        "input-items": _model(ResponseItemList, "responses", strict=True),
        "completion": _model(ChatCompletion, "completions", strict=True),
        "chunk": _model(ChatCompletionChunk, "completions", strict=True),
        "openai-error": _openai_error,
        "model": _model(Model, "models", strict=True),
        "agent-api": _agent_api,
        "runner": _result,
        "frame": lambda frame: faults_of_frame(*_framed(frame)),
    }


def _text_run() -> Check:
    schema = json.loads((SCHEMAS / "agent_run_sse_frame.schema.json").read_text())
    validator = jsonschema_rs.Draft202012Validator(schema)

    def check(frame: Any) -> Iterator[str]:
        error = next(iter(validator.iter_errors(frame)), None)
        if error is not None:
            yield f"{'/'.join(map(str, error.instance_path))}: {error.message[:300]}"

    return check


def _model(kind: Any, wire: str, *, strict: bool = False) -> Check:
    adapter: TypeAdapter[Any] = TypeAdapter(kind)

    def check(value: Any) -> Iterator[str]:
        try:
            read = adapter.validate_python(value, strict=strict)
        except ValidationError as error:
            yield _first(error)
            return
        if wire:
            yield from (f"{place} is not known" for place in _added(read, _ADDED[wire]))

    return check


def _first(error: ValidationError) -> str:
    told = error.errors(include_url=False)[0]
    return f"{'.'.join(map(str, told['loc']))}: {told['msg']}: {str(told['input'])[:200]}"


def _added(value: Any, known: frozenset[str], at: str = "") -> Iterator[str]:
    """Where a value holds what its models do not know."""
    if isinstance(value, BaseModel):
        more = value.model_extra or {}
        yield from (f"{at}.{name}" for name in more if name not in known)
        for name in value.model_fields_set - more.keys():
            yield from _added(getattr(value, name, None), known, f"{at}.{name}")
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from _added(item, known, f"{at}[{place}]")


def _openai_error(body: Any) -> Iterator[str]:
    error = body["error"]
    missing = {"message", "type", "param", "code"} - error.keys()
    if missing:
        yield f"an error without {missing}"


def _agent_api(value: Any) -> Iterator[str]:
    """A response, a message or a content, as the reference has them."""
    from tests.agents.dialects.agent_api.oracle import models

    kinds = {"response": models.AgentResponse, "message": models.Message}
    kind = kinds.get(value["object"])
    if value["object"] == "content":
        kind = _contents().get(value.get("type"))
    if kind is None:
        yield f"no object of the Agent API: {value['object']} {value.get('type')}"
        return
    yield from _agent_api_model(kind)(value)


@functools.cache
def _contents() -> dict[str, Any]:
    from tests.agents.dialects.agent_api.oracle import models

    return {
        "text": models.TextContent,
        "data": models.DataContent,
        "image": models.ImageContent,
        "audio": models.AudioContent,
        "file": models.FileContent,
        "refusal": models.RefusalContent,
    }


@functools.cache
def _agent_api_model(kind: Any) -> Check:
    return _model(kind, "agent-api")


def _result(value: Any) -> Iterator[str]:
    """A result of seed 003, and what its type holds; a type of another generation has no model here."""
    from langbot_plugin.api.entities.builtin.runner.result import RunnerResult

    yield from _runner_model(RunnerResult)(value)
    payload = _payloads().get(value["type"])
    if payload is not None:
        data = {key: said for key, said in value["data"].items() if (value["type"], key) not in _OLDER}
        yield from _runner_model(payload)(data)


_OLDER: Final = frozenset({("run.failed", "message")})
"""What the seed's generation has and the released one has not."""


@functools.cache
def _runner_model(kind: Any) -> Check:
    return _model(kind, "")


@functools.cache
def _payloads() -> dict[str, Any]:
    from langbot_plugin.api.entities.builtin.runner import result

    return {
        "message.delta": result.MessageDeltaPayload,
        "message.completed": result.MessageCompletedPayload,
        "tool.call.started": result.ToolCallStartedPayload,
        "tool.call.completed": result.ToolCallCompletedPayload,
        "state.updated": result.StateUpdatedPayload,
        "action.requested": result.ActionRequestedPayload,
        "run.completed": result.RunCompletedPayload,
        "run.failed": result.RunFailedPayload,
    }
