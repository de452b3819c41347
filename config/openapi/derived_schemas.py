"""Schemas derived from the types that parse request bodies, so that the two always agree."""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec
from pydantic import BaseModel

from agents.dialects.ag_ui import body as ag_ui_body
from agents.dialects.agent_api.entities import AgentRequest, AgentResponse
from agents.dialects.openai_chat import request as completion_request
from agents.dialects.openai_responses.request import ResponsesBody
from agents.dialects.run_agent_input import (
    LONGEST_NAME,
    LONGEST_RUN_ID,
    MOST_MESSAGES,
    RunAgentInputBody,
)
from agents.dialects.runner import RunnerBody
from agents.host_protocol.manifest import RunnerManifest
from agents.host_protocol.results import RunResult
from config import contracts
from config.openapi.builders import TEXT, Schema, any_of, array, open_object, ref

_REF: Final = "#/components/schemas/"


def _load_contract(name: str) -> Schema:
    """Return a published JSON Schema as a component schema."""
    whole: Schema = json.loads(contracts.read_all()[name])
    found: Schema = _describe({key: value for key, value in whole.items() if not key.startswith("$")})
    return found


def derived_schemas() -> dict[str, Schema]:
    """Return the schemas by name."""
    seeds = _derive(RunAgentInputBody, "RunAgentInput", _run_agent_input)
    return (
        seeds
        | {"NamedRunAgentInput": _named_thread(seeds["RunAgentInput"])}
        | _derive(ag_ui_body.Body, "AgUiInput", _ag_ui_input)
        | _derive(AgentRequest, "AgentRequest", _agent_request)
        | _derive(AgentResponse, "AgentResponse", _agent_response, mode="serialization")
        | _derive(ResponsesBody, "ResponsesRequest", _responses_request)
        | _derive(completion_request.CompletionBody, "CompletionRequest", _completion_request)
        | derive_structs(RunnerBody, RunnerManifest, RunResult)
        | {
            "TextRun": _load_contract("agent_run_create_request"),
            "TextRunAccepted": _load_contract("agent_run_create_response"),
            "LlmModel": _load_contract("llm_models_item"),
        }
        | _text_run_frame()
    )


def _named_thread(seeds: Schema) -> Schema:
    """Return the RunAgentInput of seed 001, whose thread has a name instead of an id."""
    text = "The client's name for the thread."
    name = TEXT | {"minLength": 1, "maxLength": LONGEST_NAME, "description": text}
    changes = {"description": "A RunAgentInput whose thread has a name (seed 001)."}
    return seeds | changes | {"properties": seeds["properties"] | {"threadId": name}}


def _derive(
    model: type[BaseModel], name: str, finish: Any, *, mode: Any = "validation"
) -> dict[str, Schema]:
    """Return the schema of a model under this name, and those of its parts with the name as a prefix."""
    whole = model.model_json_schema(ref_template=f"{_REF}{name}.{{model}}", mode=mode)
    parts = {f"{name}.{part}": schema for part, schema in whole.pop("$defs", {}).items()}
    finish(whole)
    return {part: _describe(schema) for part, schema in (parts | {name: whole}).items()}


def derive_structs(*kinds: Any) -> dict[str, Schema]:
    """Return the schemas of structs and of their parts by their own names."""
    _, found = msgspec.json.schema_components(kinds, ref_template=f"{_REF}{{name}}")
    return {name.removeprefix("_"): _describe(_translate(schema)) for name, schema in found.items()}


def _translate(node: Any) -> Any:
    r"""Replace Python's `\Z` by `$`, and drop the underscore of private names in references."""
    if isinstance(node, dict):
        return {key: _translate(value) for key, value in node.items()}
    if isinstance(node, list):
        return [_translate(value) for value in node]
    if isinstance(node, str):
        return node.replace(r"\Z", "$").replace(f"{_REF}_", _REF)
    return node


def _describe(node: Any, name: str = "") -> Any:
    """Describe each schema that allows anything; `name` is the member that the schema belongs to."""
    if isinstance(node, list):
        return [_describe(value, name) for value in node]
    if not isinstance(node, dict):
        return node
    found = {key: _describe(value, name) for key, value in node.items() if key != "properties"}
    if "properties" in node:
        found["properties"] = {
            key: _describe_member(value, key) for key, value in node["properties"].items()
        }
    elif found.get("type") in ("object", ["object", "null"]):
        found.setdefault("additionalProperties", True)
        found.setdefault("description", f"{name}: an object with any members.")
    return found


def _describe_member(schema: Any, name: str) -> Any:
    found = _describe(schema, name)
    if isinstance(found, dict) and not found.keys() - {"title", "default", "description"}:
        found.setdefault("description", f"{name}: any JSON.")
    return found


def _run_agent_input(whole: Schema) -> None:
    whole |= {"title": "RunAgentInput", "description": "A run of seed 000: one user message."}
    whole["properties"]["threadId"]["format"] = "uuid"
    whole["properties"]["runId"]["maxLength"] = LONGEST_RUN_ID
    whole["properties"]["messages"] |= {"minItems": 1, "maxItems": MOST_MESSAGES}


def _ag_ui_input(whole: Schema) -> None:
    whole["title"] = "AG-UI's RunAgentInput"
    whole["description"] = (
        "Keys may also be in snake_case. Messages of other roles and parts of other types are ignored."
    )
    whole["properties"]["messages"]["description"] = (
        "The whole conversation as the client shows it. A difference from the thread begins a branch."
    )
    whole["properties"]["parentRunId"]["description"] = "The run of the thread to continue from."


def _agent_request(whole: Schema) -> None:
    whole["description"] = "A request of the Agent API; unknown members are allowed."
    whole["properties"]["session_id"]["description"] = "The caller's name for the conversation."


def _agent_response(whole: Schema) -> None:
    whole["description"] = "A complete response of the Agent API."


def _responses_request(whole: Schema) -> None:
    """Describe `input`, which is parsed by hand because its items are of many types."""
    item = open_object("An input item; without a type it is a message (`role`, `content`).")
    members = whole["properties"]
    members["input"] = {
        "anyOf": [TEXT, array(item), {"type": "null"}],
        "description": "A text or a list of items. Required unless the request continues a response or "
        "a conversation, or decides an approval.",
    }
    for name, text in (
        ("background", "Not allowed together with `store: false`."),
        ("store", "`false`: delete all content when the run has ended."),
        ("instructions", "Instructions for this response only."),
    ):
        members[name]["description"] = text


def _completion_request(whole: Schema) -> None:
    """Describe `messages`, which are parsed by hand, and the members that are refused or ignored."""
    members = whole["properties"]
    members["messages"]["items"] = {
        "type": "object",
        "required": ["role"],
        "additionalProperties": True,
        "properties": {
            "role": {"enum": ["system", "developer", "user", "assistant", "tool"]},
            "content": {"description": "A text, content parts, or null beside tool calls."},
        },
    }
    for name, (taken, why) in completion_request.REFUSED.items():
        members[name] = {"enum": [None, *taken], "description": f"Other values are refused: {why}."}
    for name in sorted(completion_request.IGNORED):
        members[name] = {"description": "Accepted and ignored."}
    whole["additionalProperties"] = False


def _text_run_frame() -> dict[str, Schema]:
    """Return the schemas of a text run's frames: the data of each server-sent event."""
    parts: dict[str, Schema] = json.loads(contracts.read_all()["agent_run_sse_frame"])["$defs"]
    named = {f"TextRunFrame.{name}": _describe(part) for name, part in parts.items()}
    return named | {"TextRunFrame": any_of(*[ref(name) for name in named])}
