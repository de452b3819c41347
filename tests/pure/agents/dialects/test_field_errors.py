"""What a client is told of a wrong body: its own keys, our words, and nothing of what it sent."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.dialects import run_agent_input, text_run
from agents.dialects.ag_ui import dialect as ag_ui
from agents.dialects.agent_api import dialect as agent_api
from agents.dialects.openai_responses import dialect as responses
from config import errors
from config.errors import InvalidRequest

SECRET = "SECRET-" + "z" * 3_000
FRAME: dict[str, Any] = {"threadId": "550e8400-e29b-41d4-a716-446655440000", "runId": "r"}
ROLES = "'user', 'assistant', 'system', 'developer', 'reasoning', 'tool', 'activity'"


def user(content: Any) -> dict[str, Any]:
    return FRAME | {"messages": [{"id": "1", "role": "user", "content": content}]}


def refusal(dialect: Any, body: dict[str, Any]) -> dict[str, Any]:
    with pytest.raises(InvalidRequest) as caught:
        dialect.parse(body, request_id="")
    said = errors.body(caught.value)
    assert SECRET[:80] not in json.dumps(said)
    return said


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (
            FRAME | {"messages": [{"id": "1", "role": SECRET, "content": "x"}]},
            (["messages", 0, "role"], f"must be one of {ROLES}", "union_tag_invalid"),
        ),
        (
            FRAME | {"messages": [{"id": "1", "content": "x"}]},
            (["messages", 0, "role"], "is required", "union_tag_not_found"),
        ),
        (
            user([{"type": "binary", "mimeType": [SECRET], "url": "u"}]),
            (["messages", 0, "content", 0, "mimeType"], "must be a string", "string_type"),
        ),
        (
            user([{"type": "text"}]),
            (["messages", 0, "content", 0, "text"], "is required", "missing"),
        ),
        (
            user([{"type": "text", "text": "x"}, {"type": SECRET}]),
            (
                ["messages", 0, "content", 1, "type"],
                "must be one of 'text', 'binary'",
                "union_tag_invalid",
            ),
        ),
        (user(7), (["messages", 0, "content"], "must be a string or an array", "string_type")),
        (
            FRAME
            | {"messages": [{"id": "1", "role": "user", "content": "x", "user": {"id": SECRET}}, 7]},
            (["messages", 1], "must be an object", "model_attributes_type"),
        ),
        (
            user("x") | {"tools": [{"name": "t"}, {"name": ""}]},
            (["tools", 1, "name"], "must have at least 1 characters", "string_too_short"),
        ),
        (
            user("x") | {"context": [{"description": "d", "value": {SECRET: 1}}]},
            (["context", 0, "value"], "must be a string", "string_type"),
        ),
        (
            user("x") | {"forwardedProps": {"generation": {"top_p": SECRET}}},
            (["forwardedProps", "generation", "top_p"], "must be a number", "float_type"),
        ),
    ],
)
def test_the_place_is_a_path_in_the_body_and_the_words_are_ours(
    body: dict[str, Any], found: tuple[list[Any], str, str]
) -> None:
    path, words, kind = found
    said = refusal(run_agent_input, body)
    assert said["errors"] == [{"loc": ["body", *path], "msg": words, "type": kind}]
    where = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)[1:]
    assert said["detail"] == f"The body is not a valid RunAgentInput: {where} {words}."


def test_a_long_key_is_cut() -> None:
    (found,) = refusal(text_run, {"model": "m", "text": "t", SECRET: 1})["errors"]
    assert found == {"loc": ["body", SECRET[:64]], "msg": "is not known here", "type": "extra_forbidden"}


def test_many_errors_are_told_up_to_twenty() -> None:
    messages = [{"role": "user", "content": SECRET}] * 150
    found = refusal(run_agent_input, FRAME | {"messages": messages})["errors"]
    assert [one["loc"] for one in found] == [["body", "messages", place, "id"] for place in range(20)]


_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.sampled_from(["x", SECRET]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "role", "type", "content", "text", "user", "name", "input", "data"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
_KEYS = (
    *("threadId", "runId", "messages", "tools", "context", "model", "text", "input", "generation"),
    *("metadata", "conversation", "state", "stream", "forwardedProps", "exercise_top_k"),
)


@pytest.mark.parametrize("dialect", [text_run, run_agent_input, ag_ui, agent_api, responses])
@given(body=st.dictionaries(st.sampled_from(_KEYS), _VALUES, max_size=8))
def test_no_refusal_repeats_what_was_sent_or_names_a_class(dialect: Any, body: dict[str, Any]) -> None:
    try:
        dialect.parse(body, request_id="")
    except InvalidRequest as refused:
        said = json.dumps(errors.body(refused))
        assert SECRET[:80] not in said
        assert not any(
            inside in said for inside in ("tagged-union", "Block", "Struct", "list[", "nullable")
        )
        for found in refused.facts.get("errors", []):
            assert _is_there(body, found["loc"][1:]), found


def _is_there(node: Any, path: list[Any]) -> bool:
    """Whether each key but the last, which may be missing, is one of the body."""
    for key in path[:-1]:
        if not (
            isinstance(node, (dict, list))
            and key in (node if isinstance(node, dict) else range(len(node)))
        ):
            return False
        node = node[key]
    return True
