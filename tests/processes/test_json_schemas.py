"""What evaluates JSON Schemas: small pairs at once, all others in processes that can be stopped."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import jsonschema
import msgspec
import psutil
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agents import json_schemas
from agents.json_schemas import Undecided, UnusableSchema, helpers
from agents.json_schemas.evaluation import Question, evaluate
from tests.support.fakes.mcp_host import wait_until
from tests.support.paths import ROOT
from tests.support.properties.deep_schemas import doubling

TREE: dict[str, Any] = {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["b"]}
ENDLESS = doubling(60)


def faults(instance: Any, schema: dict[str, Any]) -> tuple[str, ...]:
    return asyncio.run(json_schemas.find_faults(msgspec.json.encode(instance), schema))


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[helpers.Helper]]:
    """The helpers that start from now on; those of other tests are left out."""
    made: list[helpers.Helper] = []
    idle: list[helpers.Helper] = []
    real = helpers.Helper

    def start() -> helpers.Helper:
        made.append(real())
        return made[-1]

    monkeypatch.setattr(helpers, "Helper", start)
    monkeypatch.setattr(helpers, "_idle", idle)
    yield made
    for helper in made:
        helper.end()


def is_gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def is_working(made: list[helpers.Helper], number: int) -> bool:
    """Whether that many helpers have started, the newest with its question before it."""
    if len(made) < number:
        return False
    return psutil.Process(made[-1].pid).cpu_times().user > 0.3


# --- verdicts ------------------------------------------------------------------------------------


def test_faults_are_named_with_their_place_and_no_more_than_three() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "integer"}}}}
    assert faults({"a": [1, "x"]}, schema) == ('$.a[1]: "x" is not of type "integer"',)
    assert len(faults({"a": ["x"] * 100}, schema)) == 3
    assert faults({"a": [1]}, schema) == ()


def test_references_within_the_schema_are_followed_by_a_helper(started: list[helpers.Helper]) -> None:
    assert faults({"a": {"a": {}, "b": 1}, "b": 2}, TREE) == ('$.a.a: "b" is a required property',)
    assert len(started) == 1


def test_a_small_schema_without_references_needs_no_helper(started: list[helpers.Helper]) -> None:
    nullable = {"type": "object", "properties": {"a": {"anyOf": [{"type": "null"}, {"type": "string"}]}}}
    assert faults({"a": None}, nullable) == ()
    assert started == []


def test_what_is_no_json_and_what_is_no_schema_are_told() -> None:
    assert asyncio.run(json_schemas.find_faults(b"{", {"type": "object"})) == ("it is no JSON",)
    assert asyncio.run(json_schemas.find_faults(b"\xff", TREE)) == ("it is no JSON",)
    with pytest.raises(UnusableSchema):
        faults({}, {"type": "no-such-type"})
    with pytest.raises(UnusableSchema, match="elsewhere"):
        faults({}, {"$ref": "http://127.0.0.1:1/schema"})


_names = st.sampled_from(["a", "b", "c"])
_values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "bb"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_names, inner, max_size=3),
    max_leaves=12,
)
_leaves = st.one_of(
    st.just({}),
    st.builds(
        lambda kind: {"type": kind}, st.sampled_from(["object", "array", "integer", "string", "null"])
    ),
    st.builds(lambda value: {"const": value}, _values),
    st.builds(lambda values: {"enum": values}, st.lists(_values, min_size=1, max_size=3)),
    st.just({"minimum": 1}),
    st.just({"maxItems": 1, "maxLength": 1, "required": ["a"]}),
)


def _around(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    several = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        st.builds(
            lambda word, found: {word: found}, st.sampled_from(["anyOf", "oneOf", "allOf"]), several
        ),
        st.builds(
            lambda word, found: {word: found},
            st.sampled_from(["not", "items", "additionalProperties", "contains", "propertyNames"]),
            inner,
        ),
        st.builds(lambda found: {"properties": found}, st.dictionaries(_names, inner, max_size=3)),
        st.builds(lambda a, b, c: {"if": a, "then": b, "else": c}, inner, inner, inner),
        st.builds(lambda found: {"dependentSchemas": found}, st.dictionaries(_names, inner, max_size=2)),
    )


schemas = st.recursive(_leaves, _around, max_leaves=15)


@given(schemas, _values)
def test_a_verdict_is_that_of_another_implementation(schema: dict[str, Any], instance: Any) -> None:
    assert (faults(instance, schema) == ()) == jsonschema.Draft202012Validator(schema).is_valid(instance)


def _nested(word: str, levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "integer"}
    for _ in range(levels):
        schema = {word: [schema, {"type": "null"}]}
    return schema


@given(schemas | st.builds(_nested, st.sampled_from(["anyOf", "oneOf", "allOf"]), st.just(80)), _values)
@example({"required": [f"{n}" for n in range(50)]}, {})
@example({"enum": [{"a": n} for n in range(500)]}, {"a": -1})
@pytest.mark.parametrize("listed", [False, True])
def test_what_is_evaluated_at_once_takes_no_time_at_its_largest(
    listed: bool, schema: dict[str, Any], instance: Any
) -> None:
    whole = msgspec.json.encode({"items": schema})
    limit = json_schemas._SMALL_TO_LIST if listed else json_schemas._SMALL
    times = limit // len(whole) // (len(msgspec.json.encode(instance)) + 1) - 1
    question = Question(whole, msgspec.json.encode([instance] * max(0, times)), listed)
    assert json_schemas._is_cheap(question)
    begun = time.thread_time()  # of this thread: the server of the suite has another
    evaluate(question)
    assert time.thread_time() - begun < 2  # where it is not linear it is minutes


# --- processes -----------------------------------------------------------------------------------


def test_a_question_that_takes_too_long_ends_its_helper_and_the_next_has_another(
    started: list[helpers.Helper], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(helpers, "LIMIT_S", 1.0)
    with pytest.raises(Undecided, match="too long"):
        faults({"a": "x"}, ENDLESS)
    assert [is_gone(helper.pid) for helper in started] == [True]
    monkeypatch.undo()
    assert faults({"b": 1}, TREE) == ()


def test_a_loop_goes_on_while_helpers_work(
    started: list[helpers.Helper], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(helpers, "LIMIT_S", 1.0)

    async def main() -> int:
        asked = [json_schemas.find_faults(b'{"a": "x"}', ENDLESS) for _ in range(3)]
        waiting = asyncio.gather(*asked, return_exceptions=True)
        turns = 0
        while not waiting.done():
            await asyncio.sleep(0.01)
            turns += 1
        assert [type(problem) for problem in waiting.result()] == [Undecided] * 3
        return turns

    assert asyncio.run(main()) > 20
    assert len(started) == 3  # two at once, and one in the place of the first that was ended


def test_a_helper_killed_while_it_works_is_replaced_once(
    started: list[helpers.Helper], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(helpers, "LIMIT_S", 60.0)

    async def main() -> None:
        asked = asyncio.create_task(json_schemas.find_faults(b'{"a": "x"}', ENDLESS))
        for number in (1, 2):
            await asyncio.to_thread(wait_until, partial(is_working, started, number))
            os.kill(started[-1].pid, signal.SIGKILL)
        with pytest.raises(Undecided, match="has ended"):
            await asked

    asyncio.run(main())
    assert [is_gone(helper.pid) for helper in started] == [True, True]


def test_a_helper_killed_while_it_is_idle_costs_no_answer(started: list[helpers.Helper]) -> None:
    assert faults({"b": 1}, TREE) == ()
    os.kill(started[0].pid, signal.SIGKILL)
    assert faults({}, TREE) == ('$: "b" is a required property',)
    assert len(started) == 2


def test_an_idle_helper_ends(started: list[helpers.Helper], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helpers, "IDLE_S", 0.05)
    assert faults({"b": 1}, TREE) == ()
    wait_until(lambda: not psutil.pid_exists(started[0].pid))
    assert faults({"b": 1}, TREE) == ()
    assert len(started) == 2


def test_a_helper_has_no_variables_and_little_memory(started: list[helpers.Helper]) -> None:
    assert faults({"b": 1}, TREE) == ()
    process = psutil.Process(started[0].pid)
    assert process.environ().keys() <= {"LC_CTYPE"}  # which Python sets by itself
    soft, _ = resource.prlimit(process.pid, resource.RLIMIT_AS)
    assert 0 < soft <= 2**30


def test_an_instance_that_needs_too_much_memory_ends_only_the_helper(
    started: list[helpers.Helper],
) -> None:
    many = b'{"b": [' + b"[]," * 20_000_000 + b"1]}"
    with pytest.raises(Undecided):
        asyncio.run(json_schemas.find_faults(many, TREE))
    assert faults({"b": 1}, TREE) == ()


_ASKS = """
import json, sys
from agents.json_schemas import helpers
from agents.json_schemas.evaluation import Question

class Told(helpers.Helper):
    def __init__(self):
        super().__init__()
        print(self.pid, flush=True)

helpers.Helper = Told
helpers.evaluate_in_helper(Question(*(text.encode() for text in json.loads(sys.argv[1])))).exception()
sys.stdin.read()
"""


@pytest.mark.parametrize("schema", [TREE, ENDLESS], ids=["idle", "at work"])
def test_helpers_end_with_the_process_that_asks(schema: dict[str, Any]) -> None:
    question = json.dumps([json.dumps(schema), '{"a": "x"}'])
    with subprocess.Popen(
        [sys.executable, "-c", _ASKS, question], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as asking:
        assert asking.stdout is not None
        pid = int(asking.stdout.readline())
        asking.kill()
    wait_until(lambda: is_gone(pid), 30)
