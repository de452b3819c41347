"""The offline model's answer in a form: it fits where there is room, and it is never large."""

from __future__ import annotations

import json
import time
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.runners.demo.form_answers import fill_schema
from tests.support.properties.deep_schemas import arrays, doubling

LARGEST = 2 * 1024 * 1024  # a character may be six in JSON
TREE: dict[str, Any] = {
    "type": "object",
    "properties": {"children": {"type": "array", "minItems": 2, "items": {"$ref": "#"}}},
    "required": ["children"],
}
LONG = "x" * 60_000


def example(schema: dict[str, Any], question: str = "Squat") -> Any:
    return json.loads(fill_schema(schema, question))


@pytest.mark.parametrize(
    ("schema", "answer"),
    [
        ({"type": "object", "properties": {"a": {"type": "string"}}}, {"a": "Squat"}),
        (
            {"properties": {"a": {"enum": ["Push", "Squat"]}, "b": {"const": [1]}}},
            {"a": "Squat", "b": [1]},
        ),
        ({"properties": {"a": {"type": ["null", "integer"], "minimum": 5}}}, {"a": 5}),
        ({"properties": {"a": {"minLength": 7}, "b": {"maxLength": 2}}}, {"a": "Squat..", "b": "Sq"}),
        (
            {"properties": {"a": {"type": "array", "minItems": 2, "items": {"type": "boolean"}}}},
            {"a": [True] * 2},
        ),
        ({"properties": {"a": {"anyOf": [{"type": "null"}]}}}, {"a": None}),
        ({"properties": {"a": {"minimum": -1e300, "type": "number"}}}, {"a": -1000}),
        (doubling(20), {"a": 1}),
        ({"type": "object", "$ref": "#"}, {}),
    ],
)
def test_an_example_is_what_the_schema_asks_for(schema: dict[str, Any], answer: Any) -> None:
    assert example(schema) == answer


_HOSTILE: dict[str, dict[str, Any]] = {
    "arrays": arrays(8),
    "a tree": TREE,
    "a loop of references": {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}},
    "a long reference": {
        "properties": {"a": {"type": "array", "minItems": 1000, "items": {"$ref": LONG}}}
    },
    "a large constant": {
        "properties": {"a": {"type": "array", "minItems": 1000, "items": {"const": LONG}}}
    },
    "a large option": {
        "properties": {"a": {"type": "array", "minItems": 1000, "items": {"enum": [{"a": LONG}]}}}
    },
    "many options": {
        "properties": {
            "a": {"type": "array", "minItems": 1000, "items": {"enum": [f"{n}" for n in range(9_000)]}}
        }
    },
    "many names": {
        "properties": {
            "a": {
                "type": "array",
                "minItems": 1000,
                "items": {"required": [str(n) for n in range(9_000)], "type": "object"},
            }
        }
    },
}


@pytest.mark.parametrize("name", _HOSTILE)
def test_whatever_a_schema_asks_for_the_answer_is_of_some_size(name: str) -> None:
    begun = time.process_time()
    for question in ("Squat", "x" * 4_000_000):
        assert len(fill_schema(_HOSTILE[name], question)) < LARGEST
    assert time.process_time() - begun < 5


_names = st.sampled_from(["a", "b"])
_leaves = st.one_of(
    st.just({"$ref": "#"}),
    st.just({"$ref": "#/properties/a"}),
    st.just({"type": "string"}),
    st.builds(lambda value: {"const": value}, st.integers() | st.text(max_size=3)),
)


def _around(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    members = st.dictionaries(_names, inner, max_size=2)
    return st.one_of(
        st.builds(
            lambda word, found: {word: [found, found]}, st.sampled_from(["anyOf", "allOf"]), inner
        ),
        st.builds(
            lambda size, found: {"type": "array", "minItems": size, "items": found}, st.integers(), inner
        ),
        st.builds(lambda found: {"type": "object", "properties": found, "required": [*found]}, members),
    )


@given(st.recursive(_leaves, _around, max_leaves=12), st.text(max_size=9))
def test_an_answer_has_its_bound_whatever_refers_to_what(schema: dict[str, Any], question: str) -> None:
    assert len(fill_schema({"type": "object", "properties": {"a": schema}}, question)) < LARGEST


_plain = st.recursive(
    st.sampled_from([{"type": "integer"}, {"type": "null"}, {"type": "boolean"}, {"const": "x"}]),
    lambda inner: (
        st.builds(
            lambda found: {"type": "object", "properties": found, "required": [*found]},
            st.dictionaries(_names, inner, max_size=2),
        )
        | st.builds(
            lambda size, found: {"type": "array", "minItems": size, "items": found},
            st.integers(0, 3),
            inner,
        )
    ),
    max_leaves=10,
)


@given(_plain)
def test_an_answer_for_which_there_is_room_fits(schema: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator(schema).validate(example(schema))
