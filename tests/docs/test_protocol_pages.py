"""The pages of docs/protocols/ name every member, event and code that the dialects know."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, Final

import pytest
from pydantic import BaseModel

from agents.dialects import generation, run_agent_input, runner, text_run
from agents.dialects.ag_ui import body as ag_ui
from agents.dialects.agent_api import entities
from agents.dialects.openai_chat import request as chat
from agents.dialects.openai_responses import request as responses
from agents.host_protocol import manifest, results, run_context
from conversations.cards import ui_hints, ui_nodes
from tests.support.doc_pages import DOCS
from tests.support.paths import ROOT, SCHEMAS

NODES: Final = (
    *ui_nodes.UiNode.__args__,
    *ui_nodes.UiAction.__args__,
    ui_nodes.UiSchemaRenderer,
    ui_nodes.KeyValueItem,
    ui_nodes.ListItem,
)
NOT_DESCRIBED: Final = {"object", "sequence_number", "code", "message", "usage", "status", "error"}
"""Members that a message of a request has in the package, and that no server reads."""


def members(*models: type[BaseModel]) -> set[str]:
    """The names of the fields on the wire."""
    return {field.alias or name for model in models for name, field in model.model_fields.items()}


def fields(*structs: Any) -> set[str]:
    return {name for struct in structs for name in struct.__struct_encode_fields__}


def tags(*structs: Any) -> set[str]:
    return {struct.__struct_config__.tag for struct in structs if struct.__struct_config__.tag}


def quoted(pattern: str, *files: str) -> set[str]:
    """The texts in these modules that fit the pattern."""
    return {text for file in files for text in re.findall(pattern, (ROOT / file).read_text())}


def frames() -> set[str]:
    schema = json.loads((SCHEMAS / "agent_run_sse_frame.schema.json").read_text())
    names = set(schema["properties"]["event"]["enum"])
    return names | {name for shape in schema["$defs"].values() for name in shape["properties"]}


AG_UI_EVENTS: Final = "agents/dialects/ag_ui/event_types.py"
RESPONSE_TYPES: Final = r"\"(response\.[a-z_.]+(?<!_arguments)(?<!_input))\""

KNOWN: Final[dict[str, list[set[str]]]] = {
    "text-run.md": [
        members(text_run.TextRunBody),
        set(generation.GenerationBody.model_fields),
        frames(),
    ],
    "run-agent-input.md": [
        members(run_agent_input.RunAgentInputBody, run_agent_input.Tool, run_agent_input.Context),
        members(*run_agent_input.Message.__args__, run_agent_input.BinaryBlock) - {"data"},
        quoted(r"_broken\(\s*\"([^\"]+)\"", "agents/dialects/run_agent_input.py"),
        quoted(r"\", \"([a-z_]+)\"\)", "agents/dialects/run_agent_input.py"),
    ],
    "ag-ui.md": [
        members(ag_ui.Body, ag_ui.Message, ag_ui.Resume, ag_ui.Tool, ag_ui.Context, ag_ui.BinaryPart),
        quoted(r"tag=\"([A-Z_]+)\"", AG_UI_EVENTS),
        quoted(r"\"(parley\.[a-z_]+)\"", AG_UI_EVENTS, "agents/dialects/ag_ui/encoder.py"),
    ],
    "agent-api.md": [
        members(entities.AgentRequest),
        members(entities.Message, *entities.AnyContent.__args__) - NOT_DESCRIBED,
        members(entities.AgentResponse),
        set(entities.MessageType.all_values()) - {"a2ui_response", "a2ui_action"},
        quoted(r"code=\"([a-z_]+)\"", "agents/dialects/agent_api/request.py"),
    ],
    "openai-responses.md": [
        set(responses.ResponsesBody.model_fields)
        - {"image", "access_programs", "background_options", "text", "reasoning"},
        quoted(RESPONSE_TYPES, "agents/dialects/openai_responses/encoder.py"),
        quoted(r"code=\"([a-z_]+)\"", "agents/dialects/openai_responses/request.py"),
    ],
    "openai-chat-completions.md": [
        set(chat.CompletionBody.model_fields) - {"stream_options"},
        set(chat.REFUSED) | chat.IGNORED,
        quoted(r"code=\"([a-z_]+)\"", "agents/dialects/openai_chat/request.py"),
    ],
    "runner-host.md": [
        fields(runner.RunnerBody, manifest.RunnerManifest, manifest.ContextPolicy, manifest.Permissions),
        fields(run_context.AgentRunContext, results.RunResult),
        set(results.TYPES) - {"processor.log"},
    ],
    "cards.md": [
        fields(ui_hints.UiHints, *NODES) | fields(ui_nodes.RendererMeta),
        tags(*ui_nodes.UiNode.__args__, *ui_nodes.UiAction.__args__),
    ],
    "thinkingml.md": [
        quoted(r"_require\(\s*\"([a-z_0-9]+)\"", "agents/runners/thinkingml/validate.py"),
        quoted(r"return \"([a-z_]+)\"", "agents/runners/thinkingml/queries.py"),
    ],
}


def words(page: str) -> set[str]:
    """The words in code on a page, as they stand and one by one, without its blocks."""
    text = re.sub(r"^```.*?^```$", "", (DOCS / "protocols" / page).read_text(), flags=re.M | re.S)
    codes = re.findall(r"`([^`]+)`", text)
    return {" ".join(code.split()) for code in codes} | set(re.findall(r"[\w.]+", " ".join(codes)))


def unnamed(known: Iterable[str], page: str) -> set[str]:
    """Those that the page does not name; `_CONTENT` or `.done` stands for a name with this ending."""
    said = words(page)
    endings = tuple(word for word in said if word.startswith(("_", ".")))
    return {name for name in known if name not in said and not name.endswith(endings)}


@pytest.mark.parametrize("page", KNOWN)
def test_a_page_names_all_that_its_protocol_knows(page: str) -> None:
    assert [unnamed(known, page) for known in KNOWN[page]] == [set()] * len(KNOWN[page])
