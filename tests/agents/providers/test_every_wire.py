"""What holds for each of the four provider wires, against a loopback provider that speaks it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import Settings

from agents.providers.base import (
    ChatMessage,
    Finished,
    ImagePart,
    ModelEvent,
    ModelRequest,
    Opened,
    RawChunk,
    ReasoningBlock,
    ToolCall,
)
from agents.providers.sse import EventSplitter
from agents.providers.tool_names import ToolNames
from conversations.events import Usage
from tests.support.fakes import fake_anthropic, fake_gemini, fake_responses
from tests.support.fakes.fake_model import CASES, Answer, End, FakeModel
from tests.support.fakes.fake_model import status as chat_status
from tests.support.fakes.wires import (
    SEARCH,
    WEATHER,
    WIRES,
    Got,
    Spoken,
    asked,
    on_the_wire,
    replace_request,
    stream,
)

HELLO = "Hello, world. 你好，世界。"
ONE_PIXEL = "iVBORw0KGgo="
INTERRUPTED = (
    "provider_stream_interrupted",
    "The model provider's stream broke off before its end.",
    True,
)
INVALID = ("provider_invalid_response", "The model provider sent something unreadable.", False)
OVERLOADED = ("provider_unavailable", "The model provider is overloaded or out of order.", True)
UNKNOWN = ("provider_error", "The model provider reported an error in its stream.", False)
SILENT = ("provider_timeout", "The model provider fell silent.", True)
UNANSWERED = ("provider_timeout", "The model provider did not answer.", True)
UNREACHABLE = ("provider_unreachable", "The model provider cannot be reached.", True)
BROKEN = {
    "cut-first": ("", UNREACHABLE),
    "cut": ("Hello", INTERRUPTED),
    "truncated": ("Hello", INTERRUPTED),
    "overloaded-in-stream": ("Hello", OVERLOADED),
    "unknown-error-in-stream": ("Hello", UNKNOWN),
    "rubbish": ("", INVALID),
    "bad-chunk": ("Hello", INVALID),
}
CHAT, RESPONSES = "openai.chat_completions", "openai.responses"
MESSAGES, GEMINI = "anthropic.messages", "gemini.generate_content"


@pytest.fixture(scope="module")
def providers() -> Iterator[dict[str, FakeModel]]:
    """A server of each."""
    made = {name: spoken.fake() for name, spoken in WIRES.items()}
    for fake in made.values():
        fake.__enter__()
    yield made
    for fake in made.values():
        fake.__exit__(None, None, None)


@pytest.fixture(params=WIRES)
def name(request: pytest.FixtureRequest) -> str:
    """Each wire's name."""
    return str(request.param)


@pytest.fixture
def fake(name: str, providers: dict[str, FakeModel]) -> FakeModel:
    return providers[name]


@pytest.fixture
def spoken(name: str) -> Spoken:
    return WIRES[name]


def case(spoken: Spoken, fake: FakeModel, model: str, request: ModelRequest | None = None) -> Got:
    return stream(spoken.wire, fake.base_url, model, request)


def scripted(spoken: Spoken, fake: FakeModel, *answers: Answer, request: Any = None) -> Got:
    """What a request gives that is answered so."""
    key = uuid4().hex
    fake.script(*answers, name=key)
    return case(spoken, fake, f"script:{key}", request)


# --- whole answers -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model", ["hello", "crlf", "split", "comments", "strange", "no-usage", "usage", "reasoning"]
)
def test_the_text_is_the_same_however_it_travels(spoken: Spoken, fake: FakeModel, model: str) -> None:
    got = case(spoken, fake, model)
    said = "Hello" if spoken.cases[model] is CASES["comments"] else HELLO
    assert (got.text, got.failure, got.finished.finish_reason) == (said, None, "stop")
    assert isinstance(got.events[0], Opened)
    assert got.events[0].upstream_request_id


@pytest.mark.parametrize("model", ["hello", "no-usage"])
def test_tokens_are_counted_where_the_provider_counts_them(
    spoken: Spoken, fake: FakeModel, model: str
) -> None:
    usage = Usage(11, 8) if model == "hello" else Usage()
    assert case(spoken, fake, model).finished.usage == usage


def test_cached_and_reasoning_tokens_are_counted(name: str, spoken: Spoken, fake: FakeModel) -> None:
    counted = {MESSAGES: Usage(14, 8, 7, 0, 3)}.get(name, Usage(11, 8, 7, 5))
    assert case(spoken, fake, "usage").finished.usage == counted


@pytest.mark.parametrize("model", ["tools", "woven"])
def test_tool_calls_in_pieces_are_put_together_under_our_names(
    name: str, spoken: Spoken, fake: FakeModel, model: str
) -> None:
    if model not in spoken.cases:
        assert name == GEMINI  # whose calls come whole
        return
    if name == CHAT:  # its case calls a tool of another name
        got = case(spoken, fake, model, asked(WEATHER))
    else:
        got = case(spoken, fake, model, asked(SEARCH, WEATHER))
    first, second = got.finished.tool_calls
    assert first.name == ("search" if name == CHAT else "gymbro.exercise.search")
    assert (first.arguments, second.name, second.arguments) == (
        '{"query": "卧推", "top_k": 3}',
        "weather",
        '{"city": "São Paulo"}',
    )
    assert first.id != second.id
    assert got.finished.finish_reason == "tool_calls"


@pytest.mark.parametrize(("model", "reason"), [("length", "length"), ("refusal", "refusal")])
def test_other_ends_have_one_name_on_every_wire(
    name: str, spoken: Spoken, fake: FakeModel, model: str, reason: str
) -> None:
    finished = case(spoken, fake, model).finished
    filtered = name == GEMINI and model == "refusal"  # it knows no refusal but its filter's
    assert finished.finish_reason == ("content_filter" if filtered else reason)


def test_the_providers_own_word_for_the_end_is_kept(name: str, spoken: Spoken, fake: FakeModel) -> None:
    words = {CHAT: "", RESPONSES: "max_output_tokens", MESSAGES: "max_tokens", GEMINI: "MAX_TOKENS"}
    assert case(spoken, fake, "length").finished.upstream_reason == words[name]


def test_each_event_comes_as_it_is_too_where_it_is_asked_for(spoken: Spoken, fake: FakeModel) -> None:
    raw = [e for e in case(spoken, fake, "hello", asked(raw=True)).events if isinstance(e, RawChunk)]
    sent = [line for line in on_the_wire(spoken.cases["hello"]).split(b"\n") if line[:5] == b"data:"]
    assert len(raw) == len([line for line in sent if line != b"data: [DONE]"])
    assert {chunk.wire for chunk in raw} == {spoken.wire.name}
    assert [e for e in case(spoken, fake, "hello").events if isinstance(e, RawChunk)] == []


# --- reasoning -----------------------------------------------------------------------------------


def test_thoughts_are_told_apart_from_the_answer(spoken: Spoken, fake: FakeModel) -> None:
    got = case(spoken, fake, "reasoning")
    assert (got.thoughts, got.text) == ("Let me think.", HELLO)


def test_thoughts_go_back_as_their_provider_gave_them(
    name: str, spoken: Spoken, fake: FakeModel
) -> None:
    finished = case(spoken, fake, "reasoning").finished
    shown = [{"type": "summary_text", "text": "Let me think."}]
    item = {"type": "reasoning", "id": "rs_0", "summary": shown, "encrypted_content": "ZW5jcnlwdGVk"}
    blocks: dict[str, list[dict[str, Any]]] = {
        CHAT: [],  # only beside calls, below
        RESPONSES: [{"item": item}],
        MESSAGES: [fake_anthropic.THOUGHT, fake_anthropic.REDACTED],
        GEMINI: [{"thoughtSignature": "c2lnbmVk"}],
    }
    assert finished.reasoning == tuple(ReasoningBlock(name, block) for block in blocks[name])
    next_step = ModelRequest(
        messages=(
            ChatMessage("user", "Think."),
            ChatMessage("assistant", HELLO, reasoning=finished.reasoning),
            ChatMessage("user", "Again."),
        )
    )
    assert scripted(spoken, fake, spoken.cases["hello"], request=next_step).text == HELLO
    sent = fake.requests[-1].raw.decode()
    assert all(secret in sent for block in blocks[name] for secret in _secrets(block))


def _secrets(block: object) -> list[str]:
    words = {"encrypted_content", "signature", "data", "thoughtSignature"}
    if not isinstance(block, dict):
        return []
    own = [value for word, value in block.items() if word in words]
    return own + [secret for value in block.values() for secret in _secrets(value)]


def test_the_thoughts_of_another_wire_stay_behind(spoken: Spoken, fake: FakeModel) -> None:
    foreign = ReasoningBlock("telepathy.v1", {"type": "thinking", "secret": "of another"})
    request = ModelRequest(
        messages=(
            ChatMessage("user", "Think."),
            ChatMessage("assistant", "Hm.", reasoning=(foreign,)),
            ChatMessage("user", "Again."),
        )
    )
    assert scripted(spoken, fake, spoken.cases["hello"], request=request).text == HELLO
    assert "of another" not in fake.requests[-1].raw.decode()


# --- requests ------------------------------------------------------------------------------------

IMAGE = ImagePart("image/png", ONE_PIXEL)
CALLED = (
    ToolCall("call_made_1", "gymbro.exercise.search", '{"query": "卧推"}'),
    ToolCall("toolu.2", "weather", "not an object"),
)
LONG = ModelRequest(
    messages=(
        ChatMessage("system", "Be brief."),
        ChatMessage("assistant", "Hello!"),
        ChatMessage("user", "What is this?", images=(IMAGE,)),
        ChatMessage("user", "And where?"),
        ChatMessage("assistant", "", tool_calls=CALLED),
        ChatMessage("tool", '{"items": []}', images=(IMAGE,), tool_call_id="call_made_1"),
        ChatMessage("tool", "Sunny.", tool_call_id="toolu.2"),
        ChatMessage("assistant", "It is sunny."),
        ChatMessage("user", "", images=(IMAGE, IMAGE)),
        ChatMessage("user", "Thanks."),
    ),
    tools=(SEARCH, WEATHER),
    temperature=1.5,
    top_p=0.9,
    frequency_penalty=0.1,
    presence_penalty=0.2,
    max_tokens=4000,
    stop=("END", " "),
    seed=7,
    json_schema={"type": "object", "properties": {"answer": {"type": "string", "maxLength": 9}}},
)


def test_a_request_with_everything_in_it_is_taken(spoken: Spoken, fake: FakeModel) -> None:
    before = len(fake.requests)
    assert scripted(spoken, fake, spoken.cases["hello"], request=LONG).text == HELLO
    assert len(fake.requests) == before + 1  # in its first form
    sent = fake.requests[-1].raw.decode()
    assert "gymbro_exercise_search" in sent
    assert "gymbro.exercise.search" not in sent
    assert sent.count(ONE_PIXEL) == 4


@pytest.mark.parametrize("effort", ["low", "medium", "high"])
@pytest.mark.parametrize("refused", [0, 1, 2])
def test_a_model_that_refuses_to_be_asked_for_thoughts_is_asked_in_another_form(
    spoken: Spoken, fake: FakeModel, effort: Any, refused: int
) -> None:
    """Each form is one that the provider takes; which one it was is remembered for the model."""
    key, before = uuid4().hex, len(fake.requests)
    no, yes = fake.error(400), spoken.cases["hello"]
    forms = min(refused, 1 if spoken.wire.name == CHAT else 2)
    fake.script(*[no] * forms, yes, name=key)
    request = replace_request(LONG, reasoning=effort)
    for _ in range(2):
        assert case(spoken, fake, f"script:{key}", request).text == HELLO
    assert len(fake.requests) == before + forms + 2
    assert fake.refusals == []


def test_a_request_that_is_malformed_in_every_form_is_refused(spoken: Spoken, fake: FakeModel) -> None:
    got = case(spoken, fake, f"status-400:{uuid4().hex}", replace_request(LONG, reasoning="low"))
    assert got.failure == (
        "provider_bad_request",
        "The model provider refused the request as malformed.",
        False,
    )


def test_an_address_may_end_as_people_write_it(name: str, spoken: Spoken, fake: FakeModel) -> None:
    endings = {MESSAGES: ("", "/", "/v1", "/v1/"), GEMINI: ("", "/", "/v1beta", "/v1beta/")}
    for ending in endings.get(name, ("", "/")):
        assert stream(spoken.wire, f"{fake.base_url}{ending}", "hello").text == HELLO


# --- refusals and broken streams -----------------------------------------------------------------


@pytest.mark.parametrize("model", BROKEN)
def test_a_broken_stream_gives_what_it_said_and_then_its_code(
    spoken: Spoken, fake: FakeModel, model: str
) -> None:
    got = case(spoken, fake, model)
    assert (got.text, got.failure) == BROKEN[model]
    assert [event for event in got.events if isinstance(event, Finished)] == []


@pytest.mark.parametrize(
    ("model", "said", "failure"), [("hang", "", UNANSWERED), ("hang-midway", "Hello", SILENT)]
)
def test_silence_is_not_waited_out(
    spoken: Spoken, fake: FakeModel, settings: Settings, model: str, said: str, failure: Any
) -> None:
    settings.PROVIDER_CONNECT_S, settings.PROVIDER_FIRST_TOKEN_S = 0.1, 0.3
    settings.PROVIDER_IDLE_S = 0.3
    got = case(spoken, fake, model)
    assert (got.text, got.failure) == (said, failure)


@pytest.mark.parametrize(
    ("code", "ours"),
    [
        (400, "provider_bad_request"),
        (401, "provider_auth_error"),
        (403, "provider_auth_error"),
        (404, "provider_model_not_found"),
        (413, "provider_bad_request"),
        (418, "provider_error"),
        (429, "provider_rate_limited"),
        (500, "provider_unavailable"),
        (503, "provider_unavailable"),
        (529, "provider_unavailable"),
    ],
)
def test_a_status_has_one_code_on_every_wire(
    spoken: Spoken, fake: FakeModel, code: int, ours: str
) -> None:
    got = case(spoken, fake, f"status-{code}")
    assert got.error is not None
    assert (got.error.code, got.events) == (ours, [])
    assert got.error.retryable is (code in {429, 500, 503, 529})


@pytest.mark.parametrize(
    ("name", "answer", "ours"),
    [
        (RESPONSES, fake_responses.status(429, kind="insufficient_quota"), "provider_quota_exceeded"),
        (
            RESPONSES,
            fake_responses.status(400, kind="context_length_exceeded"),
            "provider_context_exceeded",
        ),
        (RESPONSES, fake_responses.status(400, kind="model_not_found"), "provider_model_not_found"),
        (RESPONSES, fake_responses.status(400, kind="content_filter"), "provider_content_filtered"),
        (MESSAGES, fake_anthropic.status(400, kind="billing_error"), "provider_quota_exceeded"),
        (MESSAGES, fake_anthropic.status(403, kind="rate_limit_error"), "provider_rate_limited"),
        (GEMINI, fake_gemini.status(400, kind="API_KEY_INVALID"), "provider_auth_error"),
        (CHAT, chat_status(402), "provider_quota_exceeded"),
        (CHAT, Answer((b"[" * 100_000,), 429), "provider_rate_limited"),
        (
            CHAT,
            Answer((b'[{"error": {"status": "RESOURCE_EXHAUSTED"}}]',), 400),
            "provider_rate_limited",
        ),
    ],
)
def test_the_error_body_is_more_exact_than_the_status(
    name: str, answer: Answer, ours: str, providers: dict[str, FakeModel]
) -> None:
    got = scripted(WIRES[name], providers[name], answer)
    assert got.error is not None
    assert got.error.code == ours


def test_the_delay_that_gemini_asks_for_stands_in_the_body(providers: dict[str, FakeModel]) -> None:
    body = b'{"error": {"code": 429, "details": [{"reason": 1}, {"retryDelay": "3.5s"}]}}'
    got = scripted(WIRES[GEMINI], providers[GEMINI], Answer((body,), 429))
    assert got.error is not None
    assert got.error.retry_after_s == 3.5


def test_of_an_endless_error_body_only_so_much_is_read(providers: dict[str, FakeModel]) -> None:
    endless = Answer((*[b"x" * 65536] * 4, End.HANG), 500)
    got = scripted(WIRES[CHAT], providers[CHAT], endless)
    assert got.failure == ("provider_unavailable", "The model provider answered 500.", True)


def test_an_error_body_that_never_comes_is_not_waited_for(providers: dict[str, FakeModel]) -> None:
    got = scripted(WIRES[CHAT], providers[CHAT], Answer((b'{"error":', End.HANG), 429))
    assert got.error is not None
    assert got.error.code == "provider_rate_limited"


# --- cut anywhere --------------------------------------------------------------------------------

CUT = ("tools", "reasoning", "usage", "refusal")
BODIES = {
    (wire, model): on_the_wire(spoken.cases[model]) for wire, spoken in WIRES.items() for model in CUT
}


def read_in(name: str, pieces: list[bytes]) -> list[ModelEvent]:
    """What a fresh reader gives for a body that arrives in these pieces."""
    reader: Any = WIRES[name].wire.reader(ToolNames.of(asked(SEARCH, WEATHER)))
    reader.calls.mark = "same"
    cutter = EventSplitter()
    said = [event for some in pieces for data in cutter.feed(some) for event in reader.read(data)]
    return [*said, reader.end()]


@pytest.mark.parametrize("model", CUT)
def test_a_stream_cut_at_any_byte_gives_the_same_events(name: str, model: str) -> None:
    body = BODIES[name, model]
    whole = read_in(name, [body])
    assert [at for at in range(len(body)) if read_in(name, [body[:at], body[at:]]) != whole] == []
    assert read_in(name, [bytes([byte]) for byte in body]) == whole


@given(st.sampled_from(sorted(BODIES)), st.lists(st.integers(0, 10_000), max_size=20), st.booleans())
def test_a_stream_cut_at_any_bytes_gives_the_same_events(
    which: tuple[str, str], cuts: list[int], crlf: bool
) -> None:
    body = BODIES[which].replace(b"\n", b"\r\n") if crlf else BODIES[which]
    places = [0, *sorted(cut % len(body) for cut in cuts), len(body)]
    pieces = [body[start:end] for start, end in pairwise(places)]
    assert read_in(which[0], pieces) == read_in(which[0], [BODIES[which]])


@pytest.mark.parametrize("model", CUT)
def test_a_stream_that_ends_early_is_whole_or_broken_but_never_half(name: str, model: str) -> None:
    """Cut off at any byte, what was said is a beginning of what would have been."""
    body = BODIES[name, model]
    *said, _ = read_in(name, [body])
    for at in range(0, len(body), 7):
        reader: Any = WIRES[name].wire.reader(ToolNames([]))
        begun = [event for data in EventSplitter().feed(body[:at]) for event in reader.read(data)]
        assert begun == said[: len(begun)]
