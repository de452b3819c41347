"""The builders, line for line against the reference package's, and what ours can do beyond it."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.dialects import agent_api
from agents.dialects.agent_api import entities
from tests.agents.dialects.agent_api import oracle
from tests.support.paths import shared
from tests.support.properties import strategies
from tests.support.properties.effort import examples

GOLDEN = shared("specs", "golden")
_IDS = re.compile(r"(?:msg|response)_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIMES = re.compile(r'("(?:created|completed)_at":)\d+')

SETTERS = {
    "add_text_delta": strategies.texts() | st.none(),
    "add_delta": strategies.texts(),
    "set_text": strategies.texts(),
    "set_refusal": strategies.texts(),
    "set_image_url": st.text(max_size=40),
    "set_data": strategies.OBJECTS,
    "add_data_delta": strategies.OBJECTS,
}
TYPES = st.sampled_from(["text", "image", "data", "refusal", "file", "audio", "bogus"])
PLACES = st.integers(0, 3)
STEPS = st.one_of(
    st.tuples(
        st.just("message"),
        st.sampled_from(["assistant", "tool"]),
        st.sampled_from(entities.MessageType.all_values()),
    ),
    st.tuples(st.just("content"), PLACES, TYPES),
    st.tuples(st.just("complete_content"), PLACES, PLACES),
    st.tuples(st.just("complete_message"), PLACES),
    st.tuples(st.just("update"), PLACES, PLACES, st.text(max_size=3), st.integers()),
    *(st.tuples(st.just(name), PLACES, PLACES, value) for name, value in SETTERS.items()),
    st.sampled_from([("created",), ("in_progress",), ("completed",)]),
)


def normalised(line: str) -> str:
    """The line with ids and times that two builders can share."""
    seen: dict[str, str] = {}
    line = _IDS.sub(lambda found: seen.setdefault(found[0], f"id_{len(seen)}"), line)
    return _TIMES.sub(r"\g<1>0", line)


class Played:
    """One program, played on one set of builders; every object that it gives is a line."""

    def __init__(self, builders: Any) -> None:
        self.response = builders.ResponseBuilder(session_id="s")
        self.done: set[tuple[int, int]] = set()
        self.streamed: set[tuple[int, int]] = set()

    def play(self, program: list[tuple[Any, ...]]) -> Iterator[str]:
        for step in program:
            try:
                made = self._step(*copy.deepcopy(step))
            except ValueError as error:
                yield str(error)
                continue
            if made is not None:
                yield normalised(made.model_dump_json())
        yield normalised(self.response.get_response_data().model_dump_json())

    def _step(self, name: str, *given: Any) -> Any:
        if name in ("created", "in_progress", "completed"):
            return getattr(self.response, name)()
        if name == "message":
            return self.response.create_message_builder(*given).get_message_data()
        messages = self.response.message_builders
        if given[0] >= len(messages):
            return None
        message = messages[given[0]]
        if name == "content":
            return message.create_content_builder(given[1]).get_content_data()
        if name == "complete_message":
            return message.complete()
        if given[1] >= len(message.content_builders):
            return None
        content = message.content_builders[given[1]]
        if name == "complete_content":
            return self._complete(given[0], given[1], content)
        if name == "update":
            return content.update_data(*given[2:])
        return self._say(name, given[0], given[1], content, *given[2:])

    def _say(self, name: str, message: int, place: int, content: Any, value: Any) -> Any:
        """No whole text after its pieces: there ours means to differ."""
        if name == "set_text" and (message, place) in self.streamed:
            return None
        made = getattr(content, name)(value)
        if name in ("add_text_delta", "add_delta"):
            self.streamed.add((message, place))
        return made

    def _complete(self, message: int, place: int, content: Any) -> Any:
        """Once, and in the order of the index: else ours means to differ."""
        before = {(message, earlier) for earlier in range(place)}
        if (message, place) in self.done or not before <= self.done:
            return None
        self.done.add((message, place))
        return content.complete()


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(STEPS, max_size=25).map(lambda steps: [("message", "assistant", "message"), *steps]))
def test_every_line_is_the_reference_builders(program: list[tuple[Any, ...]]) -> None:
    assert list(Played(agent_api).play(program)) == list(Played(oracle.builders).play(program))


@given(st.lists(strategies.texts(), max_size=5))
def test_the_whole_stream_is_the_reference_builders(tokens: list[str]) -> None:
    def lines(builders: Any) -> list[str]:
        made = builders.ResponseBuilder(session_id="s").generate_streaming_response(tokens)
        return [normalised(event.model_dump_json()) for event in made]

    assert lines(agent_api) == lines(oracle.builders)


DELTAS = st.lists(strategies.OBJECTS, max_size=4)


@given(strategies.OBJECTS, DELTAS)
def test_data_is_merged_as_the_reference_merges_it(
    base: dict[str, Any], deltas: list[dict[str, Any]]
) -> None:
    def line(builders: Any) -> str:
        content = builders.ResponseBuilder().create_message_builder().create_content_builder("data")
        content.set_data(copy.deepcopy(base))
        for delta in deltas:
            content.add_data_delta(copy.deepcopy(delta))
        return normalised(content.complete().model_dump_json())

    assert line(agent_api) == line(oracle.builders)


def test_merge_rules_of_the_contract() -> None:
    content = agent_api.ResponseBuilder().create_message_builder().create_content_builder("data")
    content.set_data({"s": "a", "n": 1, "b": True, "l": [1], "d": {"x": "p"}, "t": "str", "z": None})
    content.add_data_delta(
        {"s": "b", "n": 2, "b": False, "l": [2, 3], "d": {"x": "q", "w": 0}, "t": 5, "z": 1}
    )
    merged = {"s": "ab", "n": 3, "b": False, "l": [1, 2, 3], "d": {"x": "pq", "w": 0}, "t": 5, "z": 1}
    assert content.complete().model_dump()["data"] == merged


def test_completing_twice_changes_nothing() -> None:
    content = agent_api.ResponseBuilder().create_message_builder().create_content_builder()
    content.set_text("AB")
    content.add_delta("CD")
    assert content.complete().model_dump()["text"] == "ABCD"
    assert content.complete().model_dump()["text"] == "ABCD"


def test_a_whole_text_after_its_pieces_is_not_said_twice() -> None:
    """In the order of the seed's own example; the package's text would be Hello WorldHello World."""
    content = agent_api.ResponseBuilder().create_message_builder().create_content_builder()
    content.add_text_delta("Hello")
    content.add_text_delta(" World")
    assert content.set_text("Hello World").model_dump()["text"] == "Hello World"
    assert content.complete().model_dump()["text"] == "Hello World"


def test_the_seeds_snippets_run() -> None:
    """Seed 004, builders §7: a message of two contents, and data that grow."""
    response = agent_api.ResponseBuilder(session_id="session_123")
    message = response.create_message_builder(role="assistant", message_type="message")
    words = message.create_content_builder("text", index=0)
    words.set_text("这是一张图片:")
    words.complete()
    image = message.create_content_builder("image", index=1)
    image.set_image_url("https://example.com/image.jpg")
    image.complete()
    assert [content.type for content in message.complete().content or []] == ["text", "image"]
    data = response.create_message_builder().create_content_builder("data", index=0)
    data.set_data({"type": "function_call", "name": "get_weather", "arguments": '{"city": "Beijing"}'})
    data.add_data_delta({"status": "processing"})
    data.add_data_delta({"result": "sunny"})
    assert data.complete().model_dump()["data"] == {
        "type": "function_call",
        "name": "get_weather",
        "arguments": '{"city": "Beijing"}',
        "status": "processing",
        "result": "sunny",
    }


def test_contents_stand_in_the_order_of_their_index() -> None:
    message = agent_api.ResponseBuilder().create_message_builder()
    words = message.create_content_builder("text", index=0)
    picture = message.create_content_builder(content_type="image", index=1)
    picture.set_image_url("https://example.com/a.png")
    picture.complete()
    words.set_text("look")
    words.complete()
    held = message.complete().content or []
    assert [content.type for content in held] == ["text", "image"]


def test_audio_files_and_video_can_be_set() -> None:
    message = agent_api.ResponseBuilder().create_message_builder()
    made = [
        message.create_content_builder("audio").set_audio("UklGR", "wav"),
        message.create_content_builder("file").set_file(file_id="f1", filename="a.pdf"),
        message.create_content_builder("video").set_video_url("https://example.com/v.mp4"),
    ]
    for content in made:
        same = type(content).__name__
        again = getattr(oracle.models, same).model_validate_json(content.model_dump_json())
        assert again.model_dump_json() == content.model_dump_json()
    with pytest.raises(ValueError, match="set_audio only supported for audio content"):
        message.create_content_builder("text").set_audio("x")


def test_a_response_can_end_badly() -> None:
    response = agent_api.ResponseBuilder(response_id="r")
    assert json.loads(response.failed("500", "boom").model_dump_json())["error"] == {
        "code": "500",
        "message": "boom",
    }
    assert [response.canceled().status, response.rejected().status] == ["canceled", "rejected"]


@pytest.mark.skipif(not GOLDEN.exists(), reason="the contracts are not here")
def test_every_golden_line_is_ours_too() -> None:
    lines = (GOLDEN / "agentscope_cases.jsonl").read_text().splitlines()
    checked = 0
    for case in map(json.loads, lines):
        kind = getattr(entities, case.get("cls", ""), None)
        if kind is not None:
            line = json.dumps(case["json"], ensure_ascii=False, separators=(",", ":"))
            assert kind.model_validate_json(line).model_dump_json() == line, case["case"]
            checked += 1
    assert checked > 90
