"""The text run's own words: what it takes, and every frame it can say (specs/text-run.md §1–§2)."""

from __future__ import annotations

import json
from typing import Any, get_args
from uuid import UUID

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.dialects import text_run
from agents.dialects.base import Frame, RunHead
from agents.requests import InputMessage, RunRequest, ToolUse
from config import errors
from config.errors import InvalidRequest
from conversations import events
from conversations.events import Fact, RunEvent
from tests.support.client import FRAME
from tests.support.paths import SCHEMAS
from tests.support.properties.strategies import AT, FACTS, RUNS, numbered, texts

BODY = jsonschema.Draft202012Validator(
    json.loads((SCHEMAS / "agent_run_create_request.schema.json").read_text())
)
RUN_ID = UUID("0199c3c0-1111-7222-8333-444455556666")
THREAD_ID = UUID("5b7f1c9e-9a64-4c63-9a57-0f6f4c1f7f10")
HEAD = RunHead(RUN_ID, THREAD_ID, "req-1")
IDS = {"message_id": "0199c3c0111172228333444455556666", "request_id": "req-1"}
ECHO = "do-not-repeat-this"


def parse(**body: Any) -> RunRequest:
    return text_run.parse(body, request_id="req-1")


def refusal(body: dict[str, Any]) -> dict[str, Any]:
    """The error body for a body that is refused; it never repeats what was sent."""
    with pytest.raises(InvalidRequest) as caught:
        text_run.parse(body, request_id="req-1")
    said = errors.body(caught.value)
    assert ECHO not in json.dumps(said)
    said.pop("request_id")
    return said


def search(query: str, top_k: int = 5) -> ToolUse:
    return ToolUse("gymbro.exercise.search", {"query": query, "top_k": top_k})


def web(query: str, top_k: int = 5) -> ToolUse:
    return ToolUse("web_search.exa", {"query": query, "top_k": top_k})


# --- parse ----------------------------------------------------------------------------------------


def test_the_smallest_body_has_every_default() -> None:
    assert parse(model="global:xai", text="练胸") == RunRequest(
        dialect="text",
        model="global:xai",
        messages=(InputMessage("user", "练胸"),),
        request_id="req-1",
        prefetch=(search("练胸"), web("练胸")),
        server_tools=(),
    )


def test_the_largest_body_is_taken_whole() -> None:
    metadata = {"client": "ios", "nested": {"list": [1, 2.5, None, "三"]}, "": False}
    asked = parse(
        model="xai",
        text=" squat ",
        conversation_id=str(THREAD_ID),
        metadata=metadata,
        result_mode="auto",
        enable_exercise_search=True,
        exercise_top_k=10,
        enable_web_search=False,
        web_search_top_k=1,
    )
    assert asked == RunRequest(
        dialect="text",
        model="xai",
        messages=(InputMessage("user", " squat "),),
        request_id="req-1",
        thread_id=str(THREAD_ID),
        metadata=metadata,
        result_mode="auto",
        prefetch=(search(" squat ", 10),),
        server_tools=(),
    )


GOOD: list[dict[str, Any]] = [
    {"conversation_id": str(THREAD_ID)},
    {"conversation_id": None},
    {"conversation_id": "conv-17"},
    {"conversation_id": 123},
    {"conversation_id": []},
    {"conversation_id": {}},
    {"conversation_id": True},
    {"generation": {"temperature": None, "stop": None, "reasoning_effort": None}},
    {"metadata": {}},
    {"metadata": {"anything": [{"at": "all"}]}},
    {"result_mode": "xml_plaintext"},
    {"result_mode": "raw_passthrough"},
    {"result_mode": "auto"},
    {"enable_exercise_search": False},
    {"exercise_top_k": 1},
    {"exercise_top_k": 10},
    {"exercise_top_k": 5.0},
    {"enable_web_search": True},
    {"web_search_top_k": 1},
    {"web_search_top_k": 10},
    {"text": "\u200b"},
    {"text": "x" * 100_000},
]


@pytest.mark.parametrize("more", GOOD)
def test_what_the_schema_allows_is_accepted(more: dict[str, Any]) -> None:
    body = {"model": "demo", "text": "squat"} | more
    BODY.validate(body)
    assert text_run.parse(body, request_id="req-1").messages == (InputMessage("user", body["text"]),)


@pytest.mark.parametrize("key", sorted(set(text_run.TextRunBody.model_fields) - {"model", "text"}))
def test_null_is_as_if_left_out(key: str) -> None:
    BODY.validate({"model": "demo", "text": "squat", key: None})
    assert parse(model="demo", text="squat", **{key: None}) == parse(model="demo", text="squat")


@pytest.mark.parametrize("mode", ["xml_plaintext", "raw_passthrough", "auto", None])
def test_the_result_mode_is_kept(mode: str | None) -> None:
    assert parse(model="demo", text="squat", result_mode=mode).result_mode == mode


@pytest.mark.parametrize("enabled", [True, False])
def test_the_exercise_search_can_be_switched_off(enabled: bool) -> None:
    asked = parse(model="demo", text="squat", enable_exercise_search=enabled, exercise_top_k=3)
    assert asked.prefetch == (*((search("squat", 3),) if enabled else ()), web("squat"))


@pytest.mark.parametrize(
    ("given_id", "thread_id"),
    [
        ("5b7f1c9e-9a64-4c63-9a57-0f6f4c1f7f10", "5b7f1c9e-9a64-4c63-9a57-0f6f4c1f7f10"),
        ("5B7F1C9E-9A64-4C63-9A57-0F6F4C1F7F10", "5b7f1c9e-9a64-4c63-9a57-0f6f4c1f7f10"),
        ("5b7f1c9e9a644c639a570f6f4c1f7f10", "5b7f1c9e-9a64-4c63-9a57-0f6f4c1f7f10"),
        ("5b7f1c9e-9a64-4c63-9a57-0f6f4c1f7f1", None),
        ("5b7f1c9e-9a64-4c63-9a57-0f6f4c1f7fzz", None),
        ("conv-17", None),
        ("", None),
        (" ", None),
        ("x" * 10_000, None),
        (123, None),
        (0, None),
        (True, None),
        ([], None),
        ([str(THREAD_ID)], None),
        ({}, None),
        ({ECHO: 1}, None),
    ],
)
def test_a_malformed_conversation_id_asks_for_a_new_conversation(
    given_id: Any, thread_id: str | None
) -> None:
    assert parse(model="demo", text="squat", conversation_id=given_id).thread_id == thread_id


@pytest.mark.parametrize("model", [{}, {"model": None}, {"model": ""}, {"model": " \n\t"}])
def test_a_run_without_a_model_is_told_where_to_find_one(model: dict[str, Any]) -> None:
    assert not BODY.is_valid({"text": ECHO} | model)
    assert refusal({"text": ECHO} | model) == {
        "detail": "model is required: take a name from GET /api/v1/llm/models.",
        "code": "model_required",
    }


@pytest.mark.parametrize("said", [{}, {"text": None}, {"text": ""}, {"text": " \n\t\u3000\x1c"}])
def test_a_run_without_text_is_told_so(said: dict[str, Any]) -> None:
    assert not BODY.is_valid({"model": ECHO} | said)
    assert refusal({"model": ECHO} | said) == {
        "detail": "text is required: it is what the user says.",
        "code": "text_required",
    }


_STRING = ("must be a string", "string_type")
_INTEGER = ("must be a whole number", "int_type")
_BOOLEAN = ("must be true or false", "bool_type")
_OBJECT = ("must be an object", "dict_type")
_MODE = ("must be 'xml_plaintext', 'raw_passthrough' or 'auto'", "literal_error")
_LEAST = ("must be at least 1", "greater_than_equal")
_MOST = ("must be at most 10", "less_than_equal")
_EXTRA = ("is not known here", "extra_forbidden")
BAD: list[tuple[str, Any, tuple[str, str]]] = [
    ("model", 7, _STRING),
    ("model", [ECHO], _STRING),
    ("model", True, _STRING),
    ("text", 7, _STRING),
    ("text", [{"type": "text", "text": ECHO}], _STRING),
    ("text", False, _STRING),
    ("metadata", ECHO, _OBJECT),
    ("metadata", [ECHO], _OBJECT),
    ("result_mode", ECHO, _MODE),
    ("result_mode", "", _MODE),
    ("result_mode", "AUTO", _MODE),
    ("result_mode", 1, _MODE),
    ("enable_exercise_search", ECHO, _BOOLEAN),
    ("enable_exercise_search", 1, _BOOLEAN),
    ("enable_web_search", "true", _BOOLEAN),
    ("enable_web_search", 0, _BOOLEAN),
    *(
        (key, value, why)
        for key in ("exercise_top_k", "web_search_top_k")
        for value, why in [
            (0, _LEAST),
            (-1, _LEAST),
            (11, _MOST),
            (10**30, _MOST),
            ("5", _INTEGER),
            (2.5, _INTEGER),
            (True, _INTEGER),
            ([5], _INTEGER),
        ]
    ),
    ("temperature", ECHO, _EXTRA),
    ("Model", ECHO, _EXTRA),
    ("messages", [ECHO], _EXTRA),
    ("messages", None, _EXTRA),
]


@pytest.mark.parametrize(("key", "value", "why"), BAD)
def test_a_wrong_field_is_named_and_its_value_is_not_repeated(
    key: str, value: Any, why: tuple[str, str]
) -> None:
    body = {"model": "demo", "text": "squat", key: value}
    assert not BODY.is_valid(body)
    assert refusal(body) == {
        "detail": f"The body is not a valid text run: {key} {why[0]}.",
        "code": "invalid_request",
        "errors": [{"loc": ["body", key], "msg": why[0], "type": why[1]}],
    }


def test_every_wrong_field_is_named_at_once() -> None:
    said = refusal({"model": 1, "text": 2, "exercise_top_k": 0, "extra": 3})
    assert [error["loc"][1] for error in said["errors"]] == ["model", "text", "exercise_top_k", "extra"]


def test_a_model_name_longer_than_any_is_refused() -> None:
    assert not BODY.is_valid({"model": "m" * 201, "text": "squat"})
    assert refusal({"model": "m" * 201, "text": "squat"})["errors"] == [
        {
            "loc": ["body", "model"],
            "msg": "may have at most 200 characters",
            "type": "string_too_long",
        }
    ]


# --- the encoder, by literals ----------------------------------------------------------------------


def encode(some: list[RunEvent], head: RunHead = HEAD) -> list[Frame]:
    """All frames of a run, each checked against the published schema."""
    encoder = text_run.encoder(head)
    frames = [frame for event in some for frame in encoder.feed(event)]
    for frame in frames:
        check(frame)
    return frames


def check(frame: Frame) -> None:
    FRAME.validate({"event": frame.event, "data": json.loads(frame.data)})
    assert b"\n" not in frame.data
    assert b"\r" not in frame.data


def said(frames: list[Frame]) -> list[tuple[str, dict[str, Any], int | None]]:
    """Name, data without the two ids (which must be right), and SSE id of each frame."""
    shown = []
    for frame in frames:
        data = json.loads(frame.data)
        assert {key: data.pop(key) for key in IDS} == IDS
        shown.append((frame.event, data, frame.id))
    return shown


OPENING: list[Fact] = [
    events.RunQueued(1),
    events.RunStarted(1, AT + 600_000),
    events.StageStarted("execution"),
    events.ToolCallStarted("prefetch-1", "gymbro.exercise.search", {"query": "卧推", "top_k": 5}),
    events.ToolCallCompleted(
        "prefetch-1", "gymbro.exercise.search", True, 12, {"total": 0, "results": []}
    ),
    events.ModelRouted("xai", "grok-4", 3, "up-1"),
    events.MessageDelta("m", "卧推"),
    events.MessageDelta("m", ""),
    events.ReasoningDelta("m", "thinking"),
    events.MessageDelta("m", "，好。"),
]
OPENING_FRAMES: list[tuple[str, dict[str, Any], int | None]] = [
    ("status", {"state": "queued"}, 1),
    ("status", {"state": "working"}, 2),
    ("tool_start", {"tool_name": "gymbro.exercise.search", "args": {"query": "卧推", "top_k": 5}}, 4),
    (
        "tool_result",
        {
            "tool_name": "gymbro.exercise.search",
            "ok": True,
            "elapsed_ms": 12,
            "result": {"total": 0, "results": []},
        },
        5,
    ),
    (
        "status",
        {
            "state": "routed",
            "provider": "xai",
            "resolved_model": "grok-4",
            "endpoint_id": 3,
            "upstream_request_id": "up-1",
        },
        6,
    ),
    ("content_delta", {"seq": 1, "delta": "卧推"}, 7),
    ("content_delta", {"seq": 2, "delta": "，好。"}, 10),
]


def test_a_typical_run_gives_these_frames() -> None:
    ending: list[Fact] = [
        events.MessageCompleted(events.MessageBody("m", "assistant", "卧推，好。")),
        events.StageCompleted("execution", 40),
        events.RunCompleted("stop", events.Usage(11, 2, 7, 5)),
    ]
    assert said(encode(numbered([*OPENING, *ending]))) == [
        *OPENING_FRAMES,
        (
            "completed",
            {
                "reply_len": 5,
                "reply_snapshot_included": False,
                "provider": "xai",
                "resolved_model": "grok-4",
                "endpoint_id": 3,
                "upstream_request_id": "up-1",
                "result_mode": "raw_passthrough",
                "result_mode_effective": "raw_passthrough",
                "metadata": {
                    "finish_reason": "stop",
                    "usage": {"input_tokens": 11, "output_tokens": 2},
                },
            },
            13,
        ),
    ]


def test_a_failed_run_gives_these_frames() -> None:
    failure = events.RunFailed("provider_stream_interrupted", "It broke off.", True)
    assert said(encode(numbered([*OPENING, failure]))) == [
        *OPENING_FRAMES,
        (
            "error",
            {
                "code": "provider_stream_interrupted",
                "message": "It broke off.",
                "error": "It broke off.",
                "provider": "xai",
                "resolved_model": "grok-4",
                "endpoint_id": 3,
                "result_mode": "raw_passthrough",
                "result_mode_effective": "raw_passthrough",
            },
            11,
        ),
    ]


def test_a_run_cancelled_in_its_first_tool_gives_these_frames() -> None:
    problem = events.Problem("cancelled", "The run ended before the tool answered.")
    ending: list[Fact] = [
        events.ToolCallCompleted("prefetch-1", "gymbro.exercise.search", False, 0, error=problem),
        events.StageCompleted("execution", 40),
        events.RunFailed("cancelled", "The run was cancelled."),
    ]
    head = RunHead(RUN_ID, THREAD_ID, "req-1", result_mode="auto")
    assert said(encode(numbered([*OPENING[:4], *ending]), head)) == [
        *OPENING_FRAMES[:3],
        (
            "tool_result",
            {
                "tool_name": "gymbro.exercise.search",
                "ok": False,
                "elapsed_ms": 0,
                "error": {"code": "cancelled", "message": "The run ended before the tool answered."},
            },
            5,
        ),
        (
            "error",
            {
                "code": "cancelled",
                "message": "The run was cancelled.",
                "error": "The run was cancelled.",
                "provider": None,
                "resolved_model": None,
                "endpoint_id": None,
                "result_mode": "auto",
                "result_mode_effective": None,
            },
            7,
        ),
    ]


def test_a_run_cancelled_while_it_waits_gives_two_frames() -> None:
    failure = events.RunFailed("cancelled", "The run was cancelled.")
    frames = encode(numbered([events.RunQueued(2), failure]))
    assert [(frame.event, frame.id) for frame in frames] == [("status", 1), ("error", 2)]


def test_silence_is_filled_with_a_heartbeat_that_has_no_place_in_the_log() -> None:
    beat = text_run.encoder(HEAD).heartbeat(AT)
    check(beat)
    assert said([beat]) == [("heartbeat", {"ts": AT}, None)]


def test_a_retried_model_is_routed_again_and_the_last_route_stands() -> None:
    frames = encode(
        numbered(
            [
                events.ModelRouted("a", "one", 1, "up-1"),
                events.ModelRouted("b", "two", 2),
                events.RunCompleted("stop"),
            ]
        )
    )
    last = json.loads(frames[-1].data)
    assert [last[k] for k in ("provider", "resolved_model", "endpoint_id", "upstream_request_id")] == [
        "b",
        "two",
        2,
        None,
    ]


FRAMES_OF: dict[type, set[str]] = {
    events.RunQueued: {"status"},
    events.RunStarted: {"status"},
    events.ModelRouted: {"status"},
    events.ModelCompleted: set(),
    events.StageStarted: set(),
    events.StageCompleted: set(),
    events.ReasoningDelta: set(),
    events.MessageDelta: {"content_delta"},
    events.MessageCompleted: set(),
    events.ToolCallStarted: {"tool_start"},
    events.ToolCallCompleted: {"tool_result"},
    events.ArtifactCreated: set(),
    events.StateUpdated: set(),
    events.ActionRequested: set(),
    events.UpstreamRaw: {"upstream_raw"},
    events.RunCompleted: {"completed"},
    events.RunFailed: {"error"},
}


def test_the_table_of_frame_types_knows_every_fact() -> None:
    assert set(FRAMES_OF) == set(FACTS) == set(get_args(Fact))


@given(st.one_of(list(FACTS.values())))
def test_a_fact_gives_only_its_own_frame_types(fact: Fact) -> None:
    names = {frame.event for frame in encode(numbered([fact]))}
    match fact:
        case events.MessageDelta(_, words) | events.UpstreamRaw(_, words):
            silent = not words
        case _:
            silent = False
    assert names == (set() if silent else FRAMES_OF[type(fact)])


PIECE = events.UpstreamRaw("openai.chat_completions", '{"choices":[]}')
DELTA = events.MessageDelta("m", "x")
DONE = events.RunCompleted("stop")
FAILED = events.RunFailed("provider_error", "It broke.")


def test_a_raw_piece_gives_this_frame() -> None:
    piece = events.UpstreamRaw("anthropic.messages", "{", "message_start", truncated=True)
    assert said(encode(numbered([PIECE, piece]))) == [
        (
            "upstream_raw",
            {
                "seq": 1,
                "raw": '{"choices":[]}',
                "dialect": "openai.chat_completions",
                "upstream_event": None,
                "raw_truncated": False,
            },
            1,
        ),
        (
            "upstream_raw",
            {
                "seq": 2,
                "raw": "{",
                "dialect": "anthropic.messages",
                "upstream_event": "message_start",
                "raw_truncated": True,
            },
            2,
        ),
    ]


@pytest.mark.parametrize(
    ("asked", "facts", "effective"),
    [
        (None, [DELTA, DONE], "raw_passthrough"),
        ("raw_passthrough", [DELTA, DONE], "raw_passthrough"),
        ("raw_passthrough", [FAILED], "raw_passthrough"),
        ("xml_plaintext", [DELTA, DONE], "xml_plaintext"),
        ("xml_plaintext", [FAILED], "xml_plaintext"),
        ("auto", [DELTA, DONE], "xml_plaintext"),
        ("auto", [DELTA, PIECE, FAILED], "xml_plaintext"),
        ("auto", [PIECE, DELTA, DONE], "raw_passthrough"),
        ("auto", [PIECE, FAILED], "raw_passthrough"),
        ("auto", [events.MessageDelta("m", ""), PIECE, DONE], "raw_passthrough"),
        ("auto", [events.ReasoningDelta("m", "x"), DONE], None),
        ("auto", [FAILED], None),
    ],
)
def test_the_last_frame_tells_the_mode_asked_for_and_the_one_it_came_to(
    asked: str | None, facts: list[Fact], effective: str | None
) -> None:
    last = encode(numbered(facts), RunHead(RUN_ID, THREAD_ID, "req-1", result_mode=asked))[-1]
    modes = json.loads(last.data)
    assert (modes["result_mode"], modes["result_mode_effective"]) == (
        asked or "raw_passthrough",
        effective,
    )


def test_what_is_said_of_the_reply_stands_in_the_metadata_of_the_last_frame() -> None:
    completed = events.RunCompleted("stop", metadata={"thinkingml": "missing_phase"})
    (frame,) = encode(numbered([completed]))
    assert json.loads(frame.data)["metadata"] == {
        "finish_reason": "stop",
        "usage": {"input_tokens": 0, "output_tokens": 0},
        "thinkingml": "missing_phase",
    }


def test_a_runner_that_leaves_names_and_reasons_empty_gives_frames_of_the_schema() -> None:
    nameless: list[Fact] = [
        events.ToolCallStarted("c", ""),
        events.ToolCallCompleted("c", "", False, -1, error=events.Problem("", "")),
        events.RunFailed("", ""),
    ]
    names = [frame.event for frame in encode(numbered(nameless))]
    assert names == ["tool_start", "tool_result", "error"]


def test_a_run_that_was_never_routed_ends_without_a_route() -> None:
    frames = encode(numbered([events.RunCompleted("length")]))
    assert said(frames) == [
        (
            "completed",
            {
                "reply_len": 0,
                "reply_snapshot_included": False,
                "provider": None,
                "resolved_model": None,
                "endpoint_id": None,
                "upstream_request_id": None,
                "result_mode": "raw_passthrough",
                "result_mode_effective": "raw_passthrough",
                "metadata": {
                    "finish_reason": "length",
                    "usage": {"input_tokens": 0, "output_tokens": 0},
                },
            },
            1,
        )
    ]


# --- the encoder, by properties --------------------------------------------------------------------


def deltas(frames: list[Frame]) -> list[dict[str, Any]]:
    return [json.loads(frame.data) for frame in frames if frame.event == "content_delta"]


def spoken(some: list[RunEvent]) -> str:
    return "".join(event.fact.text for event in some if isinstance(event.fact, events.MessageDelta))


@given(RUNS)
def test_deltas_of_any_run_join_to_its_text_and_count_from_one(some: list[RunEvent]) -> None:
    frames = encode(some)
    pieces = deltas(frames)
    assert "".join(piece["delta"] for piece in pieces) == spoken(some)
    assert [piece["seq"] for piece in pieces] == list(range(1, len(pieces) + 1))
    assert all(1 <= len(piece["delta"]) <= 256 for piece in pieces)
    last = json.loads(frames[-1].data)
    assert last.get("reply_len", len(spoken(some))) == len(spoken(some))


@given(RUNS)
def test_exactly_the_last_frame_of_an_event_carries_its_seq(some: list[RunEvent]) -> None:
    encoder = text_run.encoder(HEAD)
    for event in some:
        places = [frame.id for frame in encoder.feed(event)]
        assert places in ([], [None] * (len(places) - 1) + [event.seq])


@given(RUNS)
def test_the_last_frame_of_any_run_is_its_only_ending(some: list[RunEvent]) -> None:
    names = [frame.event for frame in encode(some)]
    ending = "completed" if isinstance(some[-1].fact, events.RunCompleted) else "error"
    assert [name for name in names if name in {"completed", "error"}] == [ending]
    assert names[-1] == ending


HEADS = st.sampled_from(["xml_plaintext", "raw_passthrough", "auto", None]).map(
    lambda mode: RunHead(RUN_ID, THREAD_ID, "req-1", result_mode=mode)
)


@given(RUNS, HEADS)
def test_a_reader_that_resumes_anywhere_gets_the_rest_of_the_whole(
    some: list[RunEvent], head: RunHead
) -> None:
    whole = text_run.encoder(head)
    frames = [whole.feed(event) for event in some]
    for place in range(len(some) + 1):
        resumed = text_run.encoder(head)
        for event in some[:place]:
            resumed.feed(event)
        assert [resumed.feed(event) for event in some[place:]] == frames[place:]


@given(RUNS)
def test_a_heartbeat_in_between_changes_no_frame(some: list[RunEvent]) -> None:
    encoder = text_run.encoder(HEAD)
    interrupted: list[Frame] = []
    for event in some:
        encoder.heartbeat(event.at)
        interrupted += encoder.feed(event)
    assert interrupted == encode(some)


@given(RUNS, HEADS)
def test_frames_made_from_the_stored_events_are_those_made_live(
    some: list[RunEvent], head: RunHead
) -> None:
    assert encode(events.decode(1, events.encode(some)), head) == encode(some, head)


# --- cutting --------------------------------------------------------------------------------------


@given(texts())
def test_a_cut_text_joins_again_from_pieces_of_at_most_128(whole: str) -> None:
    pieces = list(text_run.split_text(whole))
    assert "".join(pieces) == whole
    assert all(1 <= len(piece) <= 128 for piece in pieces)


@given(texts())
def test_every_piece_but_the_last_ends_at_a_separator_if_it_has_one(whole: str) -> None:
    separators = set("\n 。？！.?!\t")
    for piece in list(text_run.split_text(whole))[:-1]:
        assert piece[-1] in separators or (len(piece) == 128 and not separators & set(piece))


@pytest.mark.parametrize(
    ("whole", "lengths"),
    [
        ("", []),
        ("x", [1]),
        ("x" * 128, [128]),
        ("x" * 129, [128, 1]),
        ("x" * 257, [128, 128, 1]),
        ("x" * 100 + " " + "y" * 100, [101, 100]),
        ("句" * 99 + "。" + "句" * 99, [100, 99]),
        ("." * 300, [128, 128, 44]),
        ("🏋" * 130, [128, 2]),
    ],
)
def test_a_text_is_cut_into_pieces_of_these_lengths(whole: str, lengths: list[int]) -> None:
    assert list(map(len, text_run.split_text(whole))) == lengths


@pytest.mark.parametrize(
    ("length", "pieces"),
    [(0, []), (1, [1]), (256, [256]), (257, [128, 128, 1]), (1000, [128] * 7 + [104])],
)
def test_only_a_delta_longer_than_256_is_cut(length: int, pieces: list[int]) -> None:
    frames = encode(numbered([events.MessageDelta("m", "句" * length)]))
    assert [len(delta["delta"]) for delta in deltas(frames)] == pieces
