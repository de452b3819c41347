"""Schemas derived from the types that parse and serialize, so that the two always agree."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import msgspec
from django.db.models import TextChoices
from pydantic import BaseModel

from agents.dialects.ag_ui import body as ag_ui_body
from agents.dialects.agent_api.entities import AgentRequest, AgentResponse
from agents.dialects.openai_chat import request as completion_request
from agents.dialects.openai_responses import request as responses_request
from agents.dialects.run_agent_input import (
    LONGEST_NAME,
    LONGEST_RUN_ID,
    MOST_MESSAGES,
    RunAgentInputBody,
)
from agents.dialects.runner import RunnerBody
from agents.host_protocol import results
from agents.host_protocol.results import RunResult
from config import contracts
from config.http.documentation.schema_builders import (
    COUNT,
    TEXT,
    Schema,
    any_of,
    array,
    open_object,
    record,
    ref,
)
from config.openapi.open_members import explain
from conversations.events import ActionRequested, MessageContent, StateUpdated

_REF: Final = "#/components/schemas/"
_STRUCTS: Final = (RunnerBody, RunResult, MessageContent, StateUpdated, ActionRequested)
_RESULTS: Final[dict[str, Any]] = {
    results.MESSAGE_DELTA: results.MessageDeltaData,
    results.MESSAGE_COMPLETED: results.MessageCompletedData,
    results.TOOL_STARTED: results.ToolStartedData,
    results.TOOL_COMPLETED: results.ToolCompletedData,
    results.STATE_UPDATED: results.StateUpdatedData,
    results.ACTION_REQUESTED: results.ActionRequestedData,
    results.RUN_COMPLETED: results.RunCompletedData,
    results.RUN_FAILED: results.RunFailedData,
}
_FILE_FACTS: Final = record(
    artifact_id=TEXT, artifact_type=TEXT, mime_type=TEXT, name=TEXT, size_bytes=COUNT, url=TEXT
)


def derived_schemas() -> dict[str, Schema]:
    """Return the schemas by name."""
    seeds = _derive(RunAgentInputBody, "RunAgentInput", _run_agent_input)
    return (
        seeds
        | {"NamedRunAgentInput": _named_thread(seeds["RunAgentInput"])}
        | _derive(ag_ui_body.Body, "AgUiInput", _ag_ui_input)
        | _derive(AgentRequest, "AgentRequest", _agent_request)
        | _agent_response()
        | _derive(responses_request.ResponsesBody, "ResponsesRequest", _responses_request)
        | _derive(completion_request.CompletionBody, "CompletionRequest", _completion_request)
        | _of_runners(derive_structs(*_STRUCTS, *_RESULTS.values()))
        | _load_contract("agent_run_create_request", "TextRun")
        | _load_contract("agent_run_create_response", "TextRunAccepted")
        | _load_contract("llm_models_item", "LlmModel")
        | _load_contract("ui_schema_renderer_2_0", "UiSchema")
        | _text_run_frame()
    )


def _derive(
    model: type[BaseModel], name: str, finish: Callable[[Schema], None], *, mode: Any = "validation"
) -> dict[str, Schema]:
    """Return the schema of a model under this name, and those of its parts with the name as a prefix."""
    whole = model.model_json_schema(ref_template=f"{_REF}{name}.{{model}}", mode=mode)
    parts = {f"{name}.{part}": schema for part, schema in whole.pop("$defs", {}).items()}
    finish(whole)
    return {part: explain(schema) for part, schema in (parts | {name: whole}).items()}


def derive_structs(*kinds: Any) -> dict[str, Schema]:
    """Return the schemas of structs and of their parts by their own names."""
    _, found = msgspec.json.schema_components(
        kinds, schema_hook=_choices, ref_template=f"{_REF}{{name}}"
    )
    return {name.removeprefix("_"): explain(_translate(schema)) for name, schema in found.items()}


def derive_rendered(*kinds: Any) -> dict[str, Schema]:
    """Return the schemas of structs that only render: a member with a default is always sent.

    Those that may be absent are UNSET by default, which is no value.
    """
    found = derive_structs(*kinds)
    for schema in found.values():
        members, required = schema["properties"], schema["required"]
        schema["required"] = [name for name in members if name in required or "default" in members[name]]
        for member in members.values():
            member.pop("default", None)
    return found


def _choices(kind: type) -> Schema:
    """Return the schema of one of the values of Django's choices, which msgspec does not know."""
    if issubclass(kind, TextChoices):
        return {"enum": kind.values}
    raise NotImplementedError


def _load_contract(name: str, component: str) -> dict[str, Schema]:
    """Return a published JSON Schema under this name, and its parts with the name as a prefix."""
    whole = json.loads(contracts.read_all()[name].replace(b"#/$defs/", f"{_REF}{component}.".encode()))
    parts = {f"{component}.{part}": schema for part, schema in whole.pop("$defs", {}).items()}
    parts[component] = {key: value for key, value in whole.items() if not key.startswith("$")}
    return {part: explain(schema) for part, schema in parts.items()}


def _translate(node: Any) -> Any:
    r"""Replace Python's `\Z` by `$`, and drop the underscore of private names in references.

    An enumeration of one value becomes a constant.
    """
    if isinstance(node, dict):
        found = {key: _translate(value) for key, value in node.items()}
        match found.get("enum"):
            case [only]:
                found["const"] = only
                del found["enum"]
        return found
    if isinstance(node, list):
        return [_translate(value) for value in node]
    if isinstance(node, str):
        return node.replace(r"\Z", "$").replace(f"{_REF}_", _REF)
    return node


def _text_run_frame() -> dict[str, Schema]:
    """Return the schemas of a text run's frames: the data of each server-sent event."""
    parts = _load_contract("agent_run_sse_frame", "TextRunFrame")
    named = [ref(name) for name in parts if name != "TextRunFrame"]
    return parts | {"TextRunFrame": {"oneOf": named, "description": "The data of a text run's event."}}


def _of_runners(found: dict[str, Schema]) -> dict[str, Schema]:
    """Return the schemas with one result for each of its types, each with the data of its own."""
    data = {kind: ref(struct.__name__) for kind, struct in _RESULTS.items()}
    whole = found["RunResult"]
    some = [
        whole | {"properties": whole["properties"] | {"type": {"const": kind}, "data": schema}}
        for kind, schema in (data | {results.ARTIFACT_CREATED: _FILE_FACTS}).items()
    ]
    return found | {"RunResult": {"oneOf": some, "description": "A result of a runner (seed 003)."}}


def _agent_response() -> dict[str, Schema]:
    """Return the objects that the Agent API sends, which have the declared members and no others."""
    found = _derive(AgentResponse, "AgentResponse", lambda whole: None, mode="serialization")
    for schema in found.values():
        members = schema["properties"]
        if "object" in members:
            members["object"] = {"const": members["object"]["default"]}
            schema["additionalProperties"] = False
    found["AgentResponse"]["description"] = "A response of the Agent API, as far as it has come."
    objects = [name for name, schema in found.items() if "object" in schema["properties"]]
    text = "An AgentResponse, one of its messages or contents, possibly incomplete."
    return found | {"AgentApiObject": {"oneOf": [ref(name) for name in objects], "description": text}}


def _run_agent_input(whole: Schema) -> None:
    whole |= {"title": "RunAgentInput", "description": "A run of seed 000: one user message."}
    text = "A new one begins a conversation; that of another account is not found."
    whole["properties"]["threadId"] |= {"format": "uuid", "description": text}
    whole["properties"]["runId"]["maxLength"] = LONGEST_RUN_ID
    whole["properties"]["messages"] |= {"minItems": 1, "maxItems": MOST_MESSAGES}


def _named_thread(seeds: Schema) -> Schema:
    """Return the RunAgentInput of seed 001, whose thread has a name instead of an id."""
    text = "The client's name for the thread."
    name = TEXT | {"minLength": 1, "maxLength": LONGEST_NAME, "description": text}
    changes = {"description": "A RunAgentInput whose thread has a name (seed 001)."}
    return seeds | changes | {"properties": seeds["properties"] | {"threadId": name}}


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
    for name, taken in responses_request.SETTLED.items():
        members[name] = {"enum": [None, *taken], "description": "OpenAI's own default, or none."}


def _completion_request(whole: Schema) -> None:
    """Describe `messages`, which are parsed by hand, and the members that are refused or ignored."""
    members = whole["properties"]
    parts = array(open_object("A part of OpenAI's: `type`, and its text, image or file."))
    members["messages"]["items"] = {
        "type": "object",
        "required": ["role"],
        "additionalProperties": True,
        "properties": {
            "role": {"enum": ["system", "developer", "user", "assistant", "tool"]},
            "content": any_of(TEXT, parts, {"type": "null"}),
        },
    }
    for name, (taken, why) in completion_request.REFUSED.items():
        members[name] = {"enum": [None, *taken], "description": f"Other values are refused: {why}."}
    for name in sorted(completion_request.IGNORED):
        members[name] = {"description": "Accepted and ignored."}
    whole["additionalProperties"] = False
