"""A model provider's wire, good and bad, against a loopback provider; and what the Host makes of it."""

from __future__ import annotations

import asyncio
import gc
import json
import socket
import threading
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

import msgspec
import pytest
from pytest_django import Settings

from agents.host.model_and_tool_calls import RunHost
from agents.providers import http, openai_chat
from agents.providers.base import (
    ChatMessage,
    Finished,
    ModelEvent,
    ModelRequest,
    Opened,
    ProviderError,
    RawChunk,
    ReasoningText,
    TextDelta,
    ToolCall,
)
from agents.runners.base import RunFailure
from conversations.events import Usage
from prompts.endpoints.routing import Candidate, ModelRoute
from tests.support.fakes.fake_model import (
    CASES,
    DONE,
    Answer,
    End,
    FakeModel,
    Finish,
    Step,
    status,
    text,
)

KEY = "sk-test-key-of-the-wire-0123456789"
MESSAGES = (ChatMessage("system", "Be brief."), ChatMessage("user", "卧推?"))
COUNTED = Usage(11, 8)
HELLO = "Hello, world. 你好，世界。"


@dataclass
class Got:
    """What a stream gave before it ended, and how it ended if it ended badly."""

    events: list[ModelEvent] = field(default_factory=list)
    error: ProviderError | RunFailure | None = None

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, TextDelta))

    @property
    def failure(self) -> tuple[str, str, bool] | None:
        if self.error is None:
            return None
        return self.error.code, self.error.message, self.error.retryable

    @property
    def finished(self) -> Finished:
        (found,) = [event for event in self.events if isinstance(event, Finished)]
        assert self.events[-1] is found
        return found


def candidate(base_url: str, model: str, **more: Any) -> Candidate:
    made = Candidate(7, "fake", "openai.chat_completions", base_url, model, KEY, None, None)
    return replace(made, **more)


def stream(target: Candidate, request: ModelRequest | None = None) -> Got:
    """Everything that one request to a provider gives."""
    got = Got()

    async def read() -> None:
        try:
            async for group in openai_chat.stream(target, request or ModelRequest(messages=MESSAGES)):
                got.events += group
        except ProviderError as error:
            got.error = error
        finally:
            await http.close()

    asyncio.run(read())
    return checked(got, target)


def checked(got: Got, *targets: Candidate) -> Got:
    """The same, once it is sure that an error gives nothing away."""
    if got.error is not None:
        said = f"{got.error.message} {got.error} {got.error!r}"
        for secret in ("sk-", "127.0.0.1", "http", "Incorrect", "Rate limit", "Bad gateway"):
            assert secret not in said
        for target in targets:
            assert target.model not in said
    return got


def script(provider: FakeModel, *answers: Answer) -> str:
    """A model name of its own for these answers."""
    name = uuid4().hex
    provider.script(*answers, name=name)
    return f"script:{name}"


def chunks(*pieces: bytes) -> Answer:
    """An answer of raw bytes after a first delta."""
    return Answer(({"content": "Hel"}, *pieces))


def case(provider: FakeModel, name: str) -> Got:
    return stream(candidate(provider.base_url, name))


@pytest.fixture
def hurried(settings: Settings) -> None:
    """Time-outs short enough to wait for."""
    settings.PROVIDER_CONNECT_S = 0.1
    settings.PROVIDER_FIRST_TOKEN_S = 0.2
    settings.PROVIDER_IDLE_S = 0.2


# --- the request ---------------------------------------------------------------------------------


def test_a_request_looks_like_this_on_the_wire(provider: FakeModel) -> None:
    model = script(provider, CASES["usage"])
    assert stream(candidate(f"{provider.base_url}/", model)).text == HELLO
    (sent,) = provider.requests_for(model)
    assert (sent.method, sent.path) == ("POST", "/v1/chat/completions")
    assert sent.headers["authorization"] == f"Bearer {KEY}"
    assert sent.headers["content-type"] == "application/json"
    assert sent.body == {
        "model": model,
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "卧推?"},
        ],
    }


def test_limits_of_the_candidate_are_sent_where_there_are_any(provider: FakeModel) -> None:
    model = script(provider, text("ok"))
    stream(
        candidate(provider.base_url, model),
        ModelRequest(messages=MESSAGES, temperature=0.0, max_tokens=64),
    )
    (sent,) = provider.requests_for(model)
    assert {key: sent.body[key] for key in ("temperature", "max_tokens")} == {
        "temperature": 0.0,
        "max_tokens": 64,
    }


def test_an_endpoint_without_a_key_gets_no_authorization(provider: FakeModel) -> None:
    model = script(provider, text("ok"))
    got = stream(candidate(provider.base_url, model, key=""))
    (sent,) = provider.requests_for(model)
    assert "authorization" not in sent.headers
    assert got.failure == (
        "provider_auth_error",
        "The model provider refused the endpoint's key.",
        False,
    )


# --- good streams --------------------------------------------------------------------------------


def test_a_whole_answer_is_opened_spoken_and_finished(provider: FakeModel) -> None:
    model = script(provider, text("Hel", "lo"))
    got = stream(candidate(provider.base_url, model))
    (sent,) = provider.requests_for(model)
    assert got.events == [
        Opened(7, "fake", model, sent.request_id),
        TextDelta("Hel"),
        TextDelta("lo"),
        Finished("stop", COUNTED),
    ]


@pytest.mark.parametrize("name", ["crlf", "split", "no-usage", "usage", "reasoning"])
def test_the_text_is_the_same_however_it_travels(provider: FakeModel, name: str) -> None:
    got = case(provider, name)
    assert (got.text, got.failure) == (HELLO, None)


def test_the_chunks_come_as_they_are_too_where_they_are_asked_for(provider: FakeModel) -> None:
    wire = [
        b'{"choices":[{"delta":{"content":"Hel"}}]}',
        '{"choices": [{"delta": {"content": "吼"}, "finish_reason": "stop"}]}'.encode(),
    ]
    model = script(provider, Answer((*(b"data: " + some + b"\n\n" for some in wire), DONE)))
    target = candidate(provider.base_url, model)
    got = stream(target, ModelRequest(messages=MESSAGES, raw=True))
    chunks = [RawChunk("openai.chat_completions", some.decode()) for some in wire]
    assert got.events[1:-1] == [TextDelta("Hel"), chunks[0], TextDelta("吼"), chunks[1]]
    assert [e for e in stream(target).events if isinstance(e, RawChunk)] == []


def test_an_answer_that_streams_holds_no_form_of_its_request(provider: FakeModel) -> None:
    """A conversation of 400 KB would be held for as long as the model speaks."""
    held = list[weakref.ref[Any]]()

    class Form(dict[str, Any]):
        pass

    def forms(*about: Any) -> list[Form]:
        made = [Form(form) for form in openai_chat.stream.forms(*about)]
        held.extend(map(weakref.ref, made))
        return made

    async def read() -> list[bool]:
        wire = msgspec.structs.replace(openai_chat.stream, forms=forms)
        target = candidate(provider.base_url, script(provider, text("Hel", "lo")))
        alive = list[bool]()
        async for group in wire(target, ModelRequest(messages=MESSAGES)):
            if isinstance(group[0], TextDelta):
                gc.collect()
                alive += [form() is not None for form in held]
        await http.close()
        return alive

    alive = asyncio.run(read())
    assert len(alive) >= 2
    assert not any(alive)


def test_keep_alive_comments_are_passed_over(provider: FakeModel) -> None:
    got = case(provider, "comments")
    assert (got.text, got.finished) == ("Hello", Finished("stop", Usage()))


def test_reasoning_is_told_apart_from_the_answer(provider: FakeModel) -> None:
    got = case(provider, "reasoning")
    assert [event.text for event in got.events if isinstance(event, ReasoningText)] == [
        "Let me ",
        "think.",
    ]


def test_text_in_parts_is_text_and_thinking(provider: FakeModel) -> None:
    got = case(provider, "parts")
    assert [event for event in got.events if isinstance(event, ReasoningText | TextDelta)] == [
        ReasoningText("Let me "),
        ReasoningText("think."),
        TextDelta("Hel"),
        TextDelta("lo"),
    ]


@pytest.mark.parametrize(
    ("name", "usage"),
    [("usage", Usage(11, 8, 7, 5)), ("silent", COUNTED), ("no-usage", Usage())],
)
def test_tokens_are_counted_as_the_provider_counts_them(
    provider: FakeModel, name: str, usage: Usage
) -> None:
    assert case(provider, name).finished.usage == usage


@pytest.mark.parametrize(
    "counts",
    [
        {"prompt_tokens": None, "completion_tokens": None},
        {"prompt_tokens": -3, "prompt_tokens_details": None, "completion_tokens_details": {}},
        {"completion_tokens_details": {"reasoning_tokens": None}},
    ],
)
def test_counts_that_say_nothing_are_zero(provider: FakeModel, counts: dict[str, Any]) -> None:
    model = script(provider, text("ok", usage=counts))
    assert stream(candidate(provider.base_url, model)).finished.usage == Usage()


def test_counts_beyond_what_a_row_can_hold_are_the_most_it_can(provider: FakeModel) -> None:
    model = script(provider, text("ok", usage={"prompt_tokens": 10**30, "completion_tokens": 2**31}))
    assert stream(candidate(provider.base_url, model)).finished.usage == Usage(2**31 - 1, 2**31 - 1)


@pytest.mark.parametrize(
    ("given_reason", "reason"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("content_filter", "content_filter"),
        ("x" * 65, "x" * 64),
        ("a\x00b", "ab"),
    ],
)
def test_the_finish_reason_is_the_providers_as_far_as_a_row_can_hold_it(
    provider: FakeModel, given_reason: str, reason: str
) -> None:
    model = script(provider, text("ok", finish=given_reason))
    assert stream(candidate(provider.base_url, model)).finished.finish_reason == reason


def test_a_stream_that_ends_without_done_is_whole_if_it_said_why(provider: FakeModel) -> None:
    model = script(provider, Answer(({"content": "ok"}, Finish("length"))))
    got = stream(candidate(provider.base_url, model))
    assert (got.text, got.finished) == ("ok", Finished("length", Usage()))


def test_a_stream_that_says_done_without_a_reason_has_stopped(provider: FakeModel) -> None:
    assert case(provider, "empty").finished == Finished("stop", Usage())


@pytest.mark.parametrize("end", [End.HANG, End.CUT])
def test_nothing_is_waited_for_after_done(provider: FakeModel, end: End, settings: Settings) -> None:
    settings.PROVIDER_IDLE_S = 30
    model = script(provider, Answer((*text("Hel", "lo").steps, end)))
    got = stream(candidate(provider.base_url, model))
    assert (got.text, got.failure, got.finished) == ("Hello", None, Finished("stop", COUNTED))


def test_a_refusal_is_what_the_model_says(provider: FakeModel) -> None:
    model = script(provider, Answer(({"refusal": "I can't."}, Finish("stop"), DONE)))
    assert stream(candidate(provider.base_url, model)).text == "I can't."


def test_a_text_of_any_script_arrives_unchanged(provider: FakeModel) -> None:
    said = "卧推 жим 🏋️‍♀️ é \u2028 \x85 \x00 \\u0000 </text>"
    model = script(provider, replace(text(said), splits_characters=True))
    assert stream(candidate(provider.base_url, model)).text == said


def test_a_delta_of_a_hundred_thousand_characters_is_one_delta(provider: FakeModel) -> None:
    assert case(provider, "huge").events[1] == TextDelta("x" * 100_000)


def test_an_escaped_surrogate_pair_is_one_character(provider: FakeModel) -> None:
    chunk = rb'data: {"choices":[{"delta":{"content":"\ud83c\udfcb"},"finish_reason":"stop"}]}'
    model = script(provider, Answer((chunk + b"\n\n",)))
    assert stream(candidate(provider.base_url, model)).text == "🏋"


@pytest.mark.parametrize("half", ["\\ud83c", "\\udfcb", "\\ud83c\\ud83c"])
def test_half_a_surrogate_pair_becomes_a_replacement_character(provider: FakeModel, half: str) -> None:
    chunk = f'data: {{"choices":[{{"delta":{{"content":"a{half} 卧"}},"finish_reason":"stop"}}]}}\n\n'
    model = script(provider, Answer((chunk.encode(), DONE)))
    got = stream(candidate(provider.base_url, model))
    assert (got.text, got.failure) == ("a" + "\ufffd" * (len(half) // 6) + " 卧", None)


def test_fields_that_we_do_not_know_are_passed_over(provider: FakeModel) -> None:
    chunk = {
        "choices": [
            {
                "delta": {"content": "a", "audio": {"id": 1}},
                "finish_reason": None,
                "logprobs": {"x": []},
            },
            {"finish_reason": "stop"},
        ],
        "usage": {"prompt_tokens": 1, "cost": 0.5},
        "x_extra": [None],
    }
    wire = b"data: %b\n\ndata: {}\n\n" % json.dumps(chunk).encode()
    got = stream(candidate(provider.base_url, script(provider, Answer((wire,)))))
    assert (got.text, got.finished) == ("a", Finished("stop", Usage(1)))


# --- tool calls ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["tools", "woven"])
def test_tool_calls_are_put_together_also_where_they_interleave(provider: FakeModel, name: str) -> None:
    assert case(provider, name).finished == Finished(
        "tool_calls",
        COUNTED,
        (
            ToolCall("call_a", "search", '{"query": "卧推", "top_k": 3}'),
            ToolCall("call_b", "weather", '{"city": "São Paulo"}'),
        ),
    )


def calls(provider: FakeModel, *pieces: dict[str, Any]) -> tuple[ToolCall, ...]:
    steps = [Answer(({"tool_calls": [piece]},)).steps[0] for piece in pieces]
    model = script(provider, Answer((*steps, Finish("tool_calls"), DONE)))
    return stream(candidate(provider.base_url, model)).finished.tool_calls


def test_a_call_without_arguments_or_id_is_given_both(provider: FakeModel) -> None:
    first, second = calls(
        provider, {"index": 3, "function": {"name": "now"}}, {"index": 4, "function": {"name": "now"}}
    )
    assert (first.name, first.arguments) == (second.name, second.arguments) == ("now", "{}")
    assert first.id != second.id
    assert first.id.startswith("call_made_")


def test_a_call_without_a_name_is_none(provider: FakeModel) -> None:
    piece = {"index": 0, "id": "c", "function": {"name": "", "arguments": "{}"}}
    assert calls(provider, piece, {"index": 1, "function": None}) == ()


def test_whole_calls_without_an_index_are_told_apart_by_their_ids(provider: FakeModel) -> None:
    assert calls(
        provider,
        {"id": "a", "function": {"name": "now", "arguments": '{"in":"a"}'}},
        {"id": "b", "function": {"name": "now", "arguments": '{"in":"b"}'}},
    ) == (ToolCall("a", "now", '{"in":"a"}'), ToolCall("b", "now", '{"in":"b"}'))


def test_a_tool_name_longer_than_any_is_cut(provider: FakeModel) -> None:
    (call,) = calls(provider, {"index": 0, "id": "c", "function": {"name": "n" * 10_000}})
    assert call.name == "n" * 128


# --- refusals and broken streams -----------------------------------------------------------------

AUTH = ("provider_auth_error", "The model provider refused the endpoint's key.", False)
INTERRUPTED = (
    "provider_stream_interrupted",
    "The model provider's stream broke off before its end.",
    True,
)
INVALID = ("provider_invalid_response", "The model provider sent something unreadable.", False)
SILENT = ("provider_timeout", "The model provider fell silent.", True)
UNANSWERED = ("provider_timeout", "The model provider did not answer.", True)
UNREACHABLE = ("provider_unreachable", "The model provider cannot be reached.", True)


@pytest.mark.parametrize(
    ("code", "failure"),
    [
        (
            400,
            ("provider_bad_request", "The model provider refused the request as malformed.", False),
        ),
        (401, AUTH),
        (
            402,
            ("provider_quota_exceeded", "The model provider's account has no credit left.", False),
        ),
        (403, AUTH),
        (
            404,
            (
                "provider_model_not_found",
                "The model provider does not know this model or address.",
                False,
            ),
        ),
        (
            413,
            ("provider_bad_request", "The model provider refused the request as too large.", False),
        ),
        (418, ("provider_error", "The model provider answered 418, which is no stream.", False)),
        (203, ("provider_error", "The model provider answered 203, which is no stream.", False)),
        (302, ("provider_error", "The model provider answered 302, which is no stream.", False)),
        (429, ("provider_rate_limited", "The model provider is limiting our rate.", True)),
        (500, ("provider_unavailable", "The model provider answered 500.", True)),
        (503, ("provider_unavailable", "The model provider answered 503.", True)),
        (529, ("provider_unavailable", "The model provider answered 529.", True)),
    ],
)
def test_a_refusal_has_this_code_and_our_words(
    provider: FakeModel, code: int, failure: tuple[str, str, bool]
) -> None:
    got = case(provider, f"status-{code}")
    assert (got.events, got.failure) == ([], failure)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("0", 0.0),
        ("7", 7.0),
        ("86400", 86400.0),
        ("", None),
        ("-1", None),
        ("²", None),
        ("soon", None),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
        ("Wed, 99 Oct 2026 07:28:00 GMT", None),
    ],
)
def test_the_wait_that_a_provider_asks_for_is_read(
    provider: FakeModel, header: str, seconds: float | None
) -> None:
    model = script(provider, Answer((b"{}",), 429, {"retry-after": header}))
    got = stream(candidate(provider.base_url, model))
    assert isinstance(got.error, ProviderError)
    assert (got.error.code, got.error.retry_after_s) == ("provider_rate_limited", seconds)


def test_a_date_to_wait_for_is_read_by_the_providers_own_clock(provider: FakeModel) -> None:
    headers = {
        "date": "Fri, 31 Dec 1999 23:59:30 GMT",
        "retry-after": "Sat, 01 Jan 2000 00:00:15 GMT",
    }
    got = stream(candidate(provider.base_url, script(provider, Answer((b"{}",), 503, headers))))
    assert isinstance(got.error, ProviderError)
    assert (got.error.code, got.error.retry_after_s) == ("provider_unavailable", 45.0)


@pytest.mark.parametrize(
    ("name", "said", "failure"),
    [
        ("cut-first", "", UNREACHABLE),
        ("cut", "Hello", INTERRUPTED),
        ("truncated", "Hello", INTERRUPTED),
        ("rubbish", "", INVALID),
        ("bad-chunk", "Hello", INVALID),
        (
            "error-in-stream",
            "Hello",
            ("provider_unavailable", "The model provider is overloaded or out of order.", True),
        ),
    ],
)
def test_a_broken_stream_gives_what_it_said_and_then_its_code(
    provider: FakeModel, name: str, said: str, failure: tuple[str, str, bool]
) -> None:
    got = case(provider, name)
    assert (got.text, got.failure) == (said, failure)


@pytest.mark.parametrize(
    "piece",
    [
        b"data: \n\n",
        b"data: null\n\n",
        b"data: 7\n\n",
        b"data: []\n\n",
        b'data: {"choices": {}}\n\n',
        b'data: {"choices": [{"delta": {"content": 7}}]}\n\n',
        b'data: {"choices": [{"delta": {"content": "\xff"}}]}\n\n',
        b'data: {"choices": [{"delta": {"content": "a\n\n',
        b'data: {"x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n\n",
        b"data: <html></html>\n\n",
    ],
)
def test_an_unreadable_chunk_ends_the_stream(provider: FakeModel, piece: bytes) -> None:
    model = script(provider, chunks(piece, DONE))
    got = stream(candidate(provider.base_url, model))
    assert (got.text, got.failure) == ("Hel", INVALID)


def test_an_answer_without_any_event_is_unreadable(provider: FakeModel) -> None:
    got = stream(candidate(provider.base_url, script(provider, Answer((b"",)))))
    assert (got.events[1:], got.failure) == ([], INVALID)


def test_an_event_larger_than_any_is_unreadable(provider: FakeModel) -> None:
    huge: tuple[Step, ...] = (b"data: ", *[b"x" * 1024 * 1024] * 9)
    got = stream(candidate(provider.base_url, script(provider, Answer(huge))))
    assert got.failure == INVALID


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize(
    ("name", "said", "failure"), [("hang", "", UNANSWERED), ("hang-midway", "Hello", SILENT)]
)
def test_silence_is_not_waited_out(
    provider: FakeModel, name: str, said: str, failure: tuple[str, str, bool]
) -> None:
    got = case(provider, name)
    assert (got.text, got.failure) == (said, failure)


@pytest.mark.usefixtures("hurried")
def test_a_provider_that_opens_and_says_nothing_is_not_waited_for(provider: FakeModel) -> None:
    model = script(provider, Answer((b": hello\n\n", End.HANG)))
    got = stream(candidate(provider.base_url, model))
    assert (got.text, got.failure) == ("", SILENT)


@pytest.mark.parametrize(
    "base_url",
    [
        "http://127.0.0.1:9/v1",
        "http://name.invalid/v1",
        "http://[::1/v1",
        "ftp://127.0.0.1/v1",
        "no address at all",
        "",
    ],
)
def test_an_address_that_leads_nowhere_is_unreachable(base_url: str) -> None:
    assert stream(candidate(base_url, "gpt-test")).failure == UNREACHABLE


def test_tls_to_a_provider_that_speaks_none_is_unreachable(provider: FakeModel) -> None:
    base_url = provider.base_url.replace("http:", "https:")
    assert stream(candidate(base_url, "gpt-test")).failure == UNREACHABLE


@pytest.mark.parametrize("key", ["ключ", "line\nbreak", "\x00"])
def test_a_key_that_no_header_can_carry_is_never_sent(provider: FakeModel, key: str) -> None:
    model = script(provider, text("ok"))
    got = stream(candidate(provider.base_url, model, key=key))
    assert got.failure == UNREACHABLE
    assert key not in str(got.error)
    assert provider.requests_for(model) == []


@pytest.fixture
def stranger() -> Iterator[str]:
    """The address of a server that speaks no HTTP."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"220 mail.example ESMTP\r\n")

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        thread.join(5)


def test_a_server_of_another_protocol_is_unreachable(stranger: str) -> None:
    assert stream(candidate(stranger, "gpt-test")).failure == UNREACHABLE


class CountingModel(FakeModel):
    """Counts the connections that are made to it."""

    connections = 0

    def opened(self, connection: Any) -> None:
        self.connections += 1
        super().opened(connection)


def test_a_connection_serves_one_stream_after_another() -> None:
    async def read_twice(target: Candidate) -> list[ModelEvent]:
        request = ModelRequest(messages=MESSAGES)
        read = [group for _ in range(2) async for group in openai_chat.stream(target, request)]
        await http.close()
        return [event for group in read for event in group]

    with CountingModel() as model:
        read = asyncio.run(read_twice(candidate(model.base_url, "usage")))
    assert [event.usage for event in read if isinstance(event, Finished)] == [Usage(11, 8, 7, 5)] * 2
    assert (len(model.requests), model.connections) == (2, 1)


def test_a_reader_that_leaves_leaves_the_provider_too() -> None:
    async def read_a_little(target: Candidate) -> None:
        answer = openai_chat.stream(target, ModelRequest(messages=MESSAGES))
        async for group in answer:
            if isinstance(group[0], TextDelta):
                break
        await answer.aclose()
        await http.close()

    with FakeModel() as model:
        asyncio.run(read_a_little(candidate(model.base_url, "endless")))
        model.wait_for_disconnects(1)


# --- the Host: retries and fallbacks --------------------------------------------------------------


def host_stream(*candidates: Candidate, pauses: list[float] | None = None) -> Got:
    """What a run's Host streams from these candidates; it waits for nothing, but says how long."""
    waited = pauses if pauses is not None else []
    got = Got()

    async def wait(seconds: float) -> None:
        waited.append(seconds)

    async def read() -> None:
        host = RunHost(ModelRoute("global:m", "m", candidates), sleep=wait)
        try:
            async for group in host.stream_model(MESSAGES):
                got.events += group
        except RunFailure as failure:
            got.error = failure
        finally:
            await http.close()

    asyncio.run(read())
    return checked(got, *candidates)


def opened(got: Got) -> list[str]:
    return [event.model for event in got.events if isinstance(event, Opened)]


@pytest.mark.parametrize("code", [429, 500, 503])
def test_a_passing_failure_is_retried(provider: FakeModel, code: int) -> None:
    model = script(provider, status(code), status(code), text("ok"))
    got = host_stream(candidate(provider.base_url, model))
    assert (got.text, got.failure, opened(got)) == ("ok", None, [model])
    assert len(provider.requests_for(model)) == 3


def test_a_failure_that_does_not_pass_ends_after_three_tries(provider: FakeModel) -> None:
    model, pauses = script(provider, status(503)), list[float]()
    got = host_stream(candidate(provider.base_url, model), pauses=pauses)
    assert got.failure == ("provider_unavailable", "The model provider answered 503.", True)
    assert got.events == []
    assert len(provider.requests_for(model)) == 3
    assert 0.125 <= pauses[0] <= 0.25 <= pauses[1] <= 0.5
    assert len(pauses) == 2


@pytest.mark.parametrize(("asked", "waited"), [("0", 0.0), ("2", 2.0), ("5", 5.0), ("3600", 5.0)])
def test_a_provider_is_given_the_time_it_asks_for_up_to_five_seconds(
    provider: FakeModel, asked: str, waited: float
) -> None:
    model = script(provider, status(429, headers={"retry-after": asked}), text("ok"))
    pauses: list[float] = []
    assert host_stream(candidate(provider.base_url, model), pauses=pauses).text == "ok"
    assert pauses == [waited]


@pytest.mark.parametrize("code", [400, 401, 403, 404])
def test_a_lasting_failure_is_not_retried(provider: FakeModel, code: int) -> None:
    model = script(provider, status(code))
    host_stream(candidate(provider.base_url, model))
    assert len(provider.requests_for(model)) == 1


def test_a_stream_that_breaks_before_its_first_delta_is_retried(provider: FakeModel) -> None:
    broken = Answer((b": hello\n\n", End.CUT))
    model = script(provider, broken, text("ok"))
    got = host_stream(candidate(provider.base_url, model))
    assert (got.text, got.failure, opened(got)) == ("ok", None, [model, model])


@pytest.mark.parametrize("begun", [{"content": "Hel"}, {"reasoning_content": "Hm"}])
def test_nothing_is_retried_after_the_first_delta(provider: FakeModel, begun: dict[str, Any]) -> None:
    model = script(provider, Answer((begun, End.CUT)), text("never asked for"))
    got = host_stream(candidate(provider.base_url, model), candidate(provider.base_url, model))
    assert (got.failure, len(provider.requests_for(model))) == (INTERRUPTED, 1)
    assert got.text == begun.get("content", "")


@pytest.mark.usefixtures("hurried")
def test_a_provider_that_hangs_is_not_asked_twice(provider: FakeModel) -> None:
    first, second = script(provider, CASES["hang"]), script(provider, text("ok"))
    got = host_stream(candidate(provider.base_url, first), candidate(provider.base_url, second))
    assert (got.text, opened(got)) == ("ok", [second])
    assert len(provider.requests_for(first)) == 1


@pytest.mark.parametrize("bad", [400, 401, 402, 403, 404, 413])
def test_no_other_candidate_is_asked_when_one_refuses_what_is_asked(
    provider: FakeModel, bad: int
) -> None:
    first, second = script(provider, status(bad)), script(provider, text("never asked"))
    got = host_stream(*[candidate(provider.base_url, model) for model in (first, second)])
    assert got.failure is not None
    assert not got.failure[2]
    assert provider.requests_for(second) == []


def test_a_candidate_of_a_dialect_that_nobody_speaks_is_passed_over(provider: FakeModel) -> None:
    model = script(provider, text("ok"))
    strange = replace(candidate(provider.base_url, "x"), dialect="carrier.pigeons")
    assert host_stream(strange, candidate(provider.base_url, model)).text == "ok"


@pytest.mark.parametrize("bad", [429, 500, 503, 529])
def test_the_next_candidate_is_asked_when_one_is_broken_or_busy(provider: FakeModel, bad: int) -> None:
    first, second = script(provider, status(bad)), script(provider, text("ok"))
    third = script(provider, text("never asked"))
    got = host_stream(*[candidate(provider.base_url, model) for model in (first, second, third)])
    assert (got.text, opened(got)) == ("ok", [second])
    assert provider.requests_for(third) == []


def test_the_next_candidate_is_asked_when_one_cannot_be_reached(provider: FakeModel) -> None:
    model = script(provider, text("ok"))
    nowhere = candidate("http://127.0.0.1:9/v1", "gpt-test")
    unknown = candidate(provider.base_url, "gpt-test", dialect="telepathy")
    got = host_stream(nowhere, unknown, candidate(provider.base_url, model))
    assert (got.text, opened(got)) == ("ok", [model])


def test_when_all_candidates_fail_the_last_ones_failure_stands(provider: FakeModel) -> None:
    first, second = script(provider, status(503)), script(provider, status(401))
    got = host_stream(candidate(provider.base_url, first), candidate(provider.base_url, second))
    assert (got.events, got.failure) == ([], AUTH)


def test_a_route_without_candidates_says_so() -> None:
    assert host_stream().failure == (
        "model_not_routed",
        "No endpoint serves this model any more.",
        False,
    )


def test_a_dialect_that_nobody_speaks_says_so(provider: FakeModel) -> None:
    assert host_stream(candidate(provider.base_url, "gpt-test", dialect="telepathy")).failure == (
        "provider_unsupported",
        "This endpoint's dialect is not supported yet.",
        False,
    )


def test_each_candidate_is_asked_with_its_own_limits(provider: FakeModel) -> None:
    first, second = script(provider, status(503)), script(provider, text("ok"))
    host_stream(
        candidate(provider.base_url, first, temperature=0.5, max_tokens=10),
        candidate(provider.base_url, second, max_tokens=20),
    )
    asked = [provider.requests_for(model)[0].body for model in (first, second)]
    assert [(body.get("temperature"), body.get("max_tokens")) for body in asked] == [
        (0.5, 10),
        (None, 20),
    ]
