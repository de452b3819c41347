"""The Agent API's constants and objects by the seed's names, line for line the reference package's."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.dialects import agent_api
from tests.agents.dialects.agent_api import oracle
from tests.support.paths import ROOT
from tests.support.properties import strategies

SEED_TYPES = {
    "MESSAGE": "message",
    "FUNCTION_CALL": "function_call",
    "FUNCTION_CALL_OUTPUT": "function_call_output",
    "PLUGIN_CALL": "plugin_call",
    "PLUGIN_CALL_OUTPUT": "plugin_call_output",
    "COMPONENT_CALL": "component_call",
    "COMPONENT_CALL_OUTPUT": "component_call_output",
    "MCP_LIST_TOOLS": "mcp_list_tools",
    "MCP_APPROVAL_REQUEST": "mcp_approval_request",
    "MCP_TOOL_CALL": "mcp_call",
    "MCP_APPROVAL_RESPONSE": "mcp_approval_response",
    "REASONING": "reasoning",
    "HEARTBEAT": "heartbeat",
    "ERROR": "error",
}


def constants(of: type) -> dict[str, str]:
    return {name: value for name, value in vars(of).items() if isinstance(value, str) and name[0] != "_"}


@pytest.mark.parametrize("name", ["MessageType", "ContentType", "Role", "RunStatus"])
def test_the_constants_are_the_packages(name: str) -> None:
    assert constants(getattr(agent_api, name)) == constants(getattr(oracle.models, name))


def test_the_seeds_types_of_messages_are_there_and_all_values_lists_them() -> None:
    ours = agent_api.MessageType.all_values()
    assert ours == oracle.models.MessageType.all_values()
    assert SEED_TYPES.items() <= constants(agent_api.MessageType).items()
    assert len(ours) == len(set(ours)) == len(SEED_TYPES) + 3


def test_a_functions_parameters_are_a_model_or_a_schema_as_it_was_given() -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    given_as = agent_api.FunctionParameters.model_validate(schema)
    tool = agent_api.FunctionTool(name="f", description="d", parameters=given_as)
    assert tool.parameters is given_as
    theirs = oracle.models.FunctionParameters(**schema)
    assert given_as.model_dump_json() == theirs.model_dump_json()
    kept = schema | {"additionalProperties": False}
    assert agent_api.FunctionTool(name="f", parameters=kept).parameters == kept


@pytest.mark.parametrize("name", ["FunctionCall", "FunctionCallOutput", "McpCall", "McpCallOutput"])
def test_the_data_of_calls_are_the_packages(name: str) -> None:
    told = {"call_id": "c", "name": "f", "arguments": "{}", "output": "o", "server_label": "s"}
    ours, theirs = (getattr(models, name)(**told) for models in (agent_api, oracle.models))
    assert ours.model_dump_json() == theirs.model_dump_json()


PARTS = st.one_of(
    st.tuples(st.just("TextContent"), st.fixed_dictionaries({"text": strategies.texts()})),
    st.tuples(st.just("ImageContent"), st.fixed_dictionaries({"image_url": st.text(max_size=9)})),
)
STEPS = st.one_of(
    st.tuples(st.just("add_delta_content"), PARTS, st.none()),
    st.tuples(st.just("add_delta_content"), PARTS, st.integers(0, 3)),
    st.tuples(st.just("add_content"), PARTS, st.none() | st.integers(0, 3)),
    st.tuples(st.just("content_completed"), st.integers(0, 4)),
)


def played(models: Any, program: list[tuple[Any, ...]]) -> list[str]:
    """The program on one package's message: each line that it gives, and the message at the end."""
    message = models.Message(id="msg_1", role="assistant")
    said = []
    for name, *step in copy.deepcopy(program):
        try:
            made = getattr(message, name)(*_arguments(models, message, name, step))
        except (IndexError, TypeError) as error:
            said.append(type(error).__name__)
            continue
        said.append(made.model_dump_json() if made is not None else "None")
    return [*said, message.model_dump_json()]


def _arguments(models: Any, message: Any, name: str, step: list[Any]) -> list[Any]:
    if name == "content_completed":
        return step
    (kind, value), index = step
    held = message.content or []
    if index is not None and index < len(held):  # a delta is of the type of what it is added to
        kind, value = type(held[index]).__name__, _value_of(type(held[index]).__name__)
    delta = index is not None and name == "add_delta_content"
    return [getattr(models, kind)(index=index, delta=delta, **value)]


def _value_of(kind: str) -> dict[str, Any]:
    return {"text": "more"} if kind == "TextContent" else {"image_url": "/more"}


@given(st.lists(STEPS, max_size=12))
def test_the_methods_of_a_message_give_the_packages_lines(program: list[tuple[Any, ...]]) -> None:
    assert played(agent_api, program) == played(oracle.models, program)


def test_data_grow_by_deltas_and_nothing_of_them_is_lost() -> None:
    """The package drops numbers, objects and new keys of a delta; its own ContentBuilder does not."""
    message = agent_api.Message(role="assistant")
    message.add_delta_content(agent_api.DataContent(data={"arguments": '{"ci', "n": 1}))
    more = {"arguments": 'ty": 1}', "n": 2, "status": "done"}
    event = message.add_delta_content(agent_api.DataContent(index=0, delta=True, data=more))
    assert event is not None
    assert (event.status, event.data) == ("in_progress", more)
    whole = message.content_completed(0)
    assert whole is not None
    assert whole.model_dump()["data"] == {"arguments": '{"city": 1}', "n": 3, "status": "done"}
    with pytest.raises(TypeError, match="text cannot be added to a content of data"):
        message.add_delta_content(agent_api.TextContent(index=0, delta=True, text="x"))


def test_the_builders_need_neither_django_nor_settings() -> None:
    """People build responses in a script of their own, beside the project and not inside it."""
    script = (
        "import sys\n"
        "from agents.dialects.agent_api import ResponseBuilder, MessageType, RunStatus\n"
        "made = ResponseBuilder(session_id='s').generate_streaming_response(['Hello'])\n"
        "last = [event.model_dump() for event in made][-1]\n"
        "assert last['status'] == RunStatus.Completed, last\n"
        "assert MessageType.all_values()\n"
        "loaded = {name.partition('.')[0] for name in sys.modules}\n"
        "assert not loaded & {'django', 'celery', 'channels', 'psycopg'}, loaded\n"
    )
    environment = {name: value for name, value in os.environ.items() if name not in _OF_THE_PROJECT} | {
        "PYTHONPATH": str(ROOT)
    }
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT.parent,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


_OF_THE_PROJECT = {"DJANGO_SETTINGS_MODULE", "DATABASE_URL", "PYTHONPATH", "COVERAGE_PROCESS_START"}
