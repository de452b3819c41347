"""Model providers as attackers: each behaviour is a function that answers one request.

A behaviour's model is `DIALECT-NAME`; `ENDS` says how its runs end: `completed`, `cancelled` for one
that only a user ends, or the error's code.
"""

from __future__ import annotations

import asyncio
import gzip
import itertools
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from tests.hostile.dialects import DIALECTS, REASONS, Dialect, event, text
from tests.hostile.loopback import Asked, Writer

ALL: Final = tuple(DIALECTS)
MIB: Final = 1024 * 1024
INVALID: Final = "provider_invalid_response"
BROKEN: Final = "provider_stream_interrupted"
UNREACHABLE: Final = "provider_unreachable"


@dataclass(frozen=True)
class To:
    """A request, and the means to answer it in its wire's words."""

    asked: Asked
    out: Writer
    words: Dialect

    @property
    def end(self) -> bytes:
        """The end of an answer, as it should be."""
        return self.ended()

    def ended(self, *, reason: str | None = None, count: bytes = b"1") -> bytes:
        name = next(name for name, words in DIALECTS.items() if words is self.words)
        return self.words.end(text(REASONS[name] if reason is None else reason), count)

    async def begin(self) -> None:
        await self.out.events(self.words.begin())

    async def whole(self, *events: bytes) -> None:
        """An answer of these events between its beginning and its end."""
        await self.out.events(self.words.begin(), *events, self.end)

    async def for_ever(self, piece: bytes) -> None:
        """Send it until the client leaves."""
        many = piece * (65_536 // len(piece) + 1)
        while True:
            await self.out.raw(many)


@dataclass(frozen=True)
class Behaviour:
    """What a provider does, in which dialects it is tried, and how its runs end."""

    answer: Callable[[To], Awaitable[None]]
    ends: str
    dialects: tuple[str, ...]
    waits: bool
    """Whether its runs take as long as our patience with it."""

    @property
    def models(self) -> dict[str, str]:
        """The dialects by model."""
        name = self.answer.__name__
        return {f"{dialect}-{name}": DIALECTS[dialect].name for dialect in self.dialects}


BEHAVIOURS: Final[dict[str, Behaviour]] = {}
_hits: Final[list[str]] = []


def hits() -> list[str]:
    """The paths that were asked for and that no behaviour has: somebody was sent there."""
    return _hits


def models() -> dict[str, str]:
    """The wire of every model."""
    return {model: wire for one in BEHAVIOURS.values() for model, wire in one.models.items()}


async def answer(asked: Asked, out: Writer) -> None:
    """Behave as the model does that the address names."""
    dialect, _, name = asked.path.split("/")[1].partition("-")
    if name in BEHAVIOURS:
        await BEHAVIOURS[name].answer(To(asked, out, DIALECTS[dialect]))
    else:
        _hits.append(asked.path)


def _ends(
    how: str, *dialects: str, waits: bool = False
) -> Callable[[Callable[[To], Awaitable[None]]], Any]:
    def added(behave: Callable[[To], Awaitable[None]]) -> Callable[[To], Awaitable[None]]:
        BEHAVIOURS[behave.__name__] = Behaviour(behave, how, dialects or ALL, waits)
        return behave

    return added


# --- too much -------------------------------------------------------------------------------------


@_ends("answer_too_large")
async def never_stops_talking(to: To) -> None:
    await to.begin()
    await to.for_ever(to.words.said(text("word " * 2_000)))


@_ends("answer_too_large", "chat")
async def says_quotes_without_end(to: To) -> None:
    await to.begin()
    await to.for_ever(to.words.said(text('"\\\x00\ud800' * 2_000)))


@_ends("completed")
async def many_tiny_deltas(to: To) -> None:
    await to.whole(to.words.said(b'"x"') * 4_000)


@_ends("completed", "chat")
async def calls_what_it_is_asked_for(to: To) -> None:
    """A model that behaves, for the tools that do not."""
    *_, last = to.asked.body["messages"]
    if last["role"] == "tool":
        await to.whole(to.words.said(b'"Done."'))
    else:
        await to.whole(to.words.called(b"0", text(last["content"]), b'"{}"'))


@_ends(INVALID, "chat")
async def one_line_without_end(to: To) -> None:
    await to.begin()
    await to.out.raw(b"data: ")
    await to.for_ever(b"x")


@_ends(INVALID, "chat")
async def one_event_of_lines_without_end(to: To) -> None:
    await to.begin()
    await to.for_ever(b"data:\n")


@_ends(INVALID)
async def comments_without_end(to: To) -> None:
    await to.begin()
    await to.for_ever(b":\n\n")


@_ends(INVALID, "chat", "gemini")
async def events_of_nothing_without_end(to: To) -> None:
    await to.begin()
    await to.for_ever(event(b"{}"))


@_ends(INVALID, "chat")
async def carriage_returns_without_end(to: To) -> None:
    await to.begin()
    await to.for_ever(b"\r")


@_ends("answer_too_large")
async def thinks_without_end(to: To) -> None:
    await to.begin()
    await to.for_ever(to.words.thought(text("hm " * 5_000)))


@_ends(INVALID, "anthropic")
async def signs_without_end(to: To) -> None:
    delta = b'{"type":"signature_delta","signature":"0123456789abcdef"}'
    await to.begin()
    await to.for_ever(event(b'{"type":"content_block_delta","index":1,"delta":%b}' % delta))


@_ends(INVALID, "anthropic")
async def thoughts_at_ever_new_places(to: To) -> None:
    await to.begin()
    delta = b'{"type":"thinking_delta","thinking":""}'
    block = b'{"type":"redacted_thinking","data":"%b"}' % (b"x" * 1_000)
    for place in itertools.count():
        start = b'{"type":"content_block_start","index":%d,"content_block":%b}' % (place, block)
        await to.out.raw(
            event(start + b"") + event(b'{"type":"content_block_delta","index":0,"delta":%b}' % delta)
        )


@_ends(INVALID, "responses", "gemini")
async def sealed_thoughts_without_end(to: To) -> None:
    sealed = text("x" * 100_000)
    item = b'{"type":"reasoning","id":"r","encrypted_content":%b}' % sealed
    await to.begin()
    if to.words is DIALECTS["responses"]:
        await to.for_ever(
            event(b'{"type":"response.output_item.done","output_index":0,"item":%b}' % item)
        )
    part = b'{"thoughtSignature":%b}' % sealed
    await to.for_ever(event(b'{"candidates":[{"content":{"parts":[%b]}}]}' % part))


@_ends(INVALID)
async def arguments_without_end(to: To) -> None:
    await to.begin()
    await to.for_ever(to.words.called(b"0", b'"search"', text("a" * 10_000)))


@_ends("provider_unavailable", "chat")
async def explains_an_error_without_end(to: To) -> None:
    await to.out.head("500 Oh", content_type="application/json")
    await to.for_ever(b'{"error":')


@cache
def _bomb() -> bytes:
    return gzip.compress(bytes(256 * MIB), 9)


@_ends(INVALID, "chat")
async def a_packed_bomb(to: To) -> None:
    await to.out.head(content_type="text/event-stream", content_encoding="gzip")
    await to.out.raw(_bomb())


@_ends("provider_unavailable", "chat")
async def a_packed_bomb_as_an_error(to: To) -> None:
    await to.out.head("503 Oh", content_type="application/json", content_encoding="gzip")
    await to.out.raw(_bomb())


# --- too little -----------------------------------------------------------------------------------


@_ends("provider_timeout", "chat", waits=True)
async def silent(to: To) -> None:
    await to.out.gone()


@_ends("provider_timeout", "chat", waits=True)
async def silent_after_the_head(to: To) -> None:
    await to.begin()
    await to.out.gone()


@_ends("provider_timeout", "chat", waits=True)
async def silent_in_the_middle(to: To) -> None:
    await to.begin()
    await to.out.raw(to.words.said(b'"Hel"'), b"data: {")
    await to.out.gone()


@_ends(BROKEN)
async def ends_in_the_middle(to: To) -> None:
    await to.begin()
    await to.out.raw(to.words.said(b'"Hel"'), to.words.said(b'"lo"')[:-5])


@_ends(BROKEN)
async def resets_in_the_middle(to: To) -> None:
    await to.begin()
    await to.out.raw(to.words.said(b'"Hel"'))
    await asyncio.sleep(0.05)
    to.out.reset()


@_ends(INVALID, "chat")
async def empty(to: To) -> None:
    await to.out.events()


# --- HTTP -----------------------------------------------------------------------------------------


@_ends("provider_error", "chat")
async def redirects(to: To) -> None:
    await to.out.head("307 There", location=f"http://{to.asked.headers['host']}/elsewhere")


@_ends(UNREACHABLE, "chat")
async def a_header_of_a_mebibyte(to: To) -> None:
    await to.out.head(content_type="text/event-stream", x_long="x" * MIB)


@_ends(UNREACHABLE, "chat")
async def headers_without_end(to: To) -> None:
    await to.out.raw(b"HTTP/1.1 200 OK\r\n")
    await to.for_ever(b"x-more: abcdefgh\r\n")


@_ends(UNREACHABLE, "chat")
async def no_http(to: To) -> None:
    await to.for_ever(b"SSH-2.0-OpenSSH ")


@_ends("provider_error", "chat")
async def a_status_of_its_own(to: To) -> None:
    await to.out.head("299 Strange", content_type="text/event-stream")


@_ends(INVALID, "chat")
async def a_page(to: To) -> None:
    await to.out.head(content_type="text/html")
    await to.out.raw(b"<html><body>Sign in</body></html>" * 1_000)


@_ends(INVALID)
async def an_error_with_status_200(to: To) -> None:
    await to.out.json({"error": {"message": to.asked.key, "type": "x", "code": "y"}})


@_ends(BROKEN, "chat")
async def lies_in_the_length(to: To) -> None:
    await to.out.head(content_type="text/event-stream", content_length="999999999999")
    await to.out.raw(to.words.said(b'"Hello"'))


@_ends(BROKEN, "chat")
async def lies_in_a_chunk(to: To) -> None:
    await to.out.head(content_type="text/event-stream", transfer_encoding="chunked")
    said = to.words.said(b'"Hello"')
    await to.out.raw(b"%x\r\n%b\r\nffffffff\r\nx" % (len(said), said))


@_ends(f"{UNREACHABLE} provider_timeout", "chat", waits=True)  # by what came in one packet
async def a_chunk_of_no_size(to: To) -> None:
    await to.out.head(content_type="text/event-stream", transfer_encoding="chunked")
    await to.out.raw(b"-1\r\n")
    await to.for_ever(b"zz\r\n")


@_ends("provider_rate_limited", "chat", waits=True)
async def asks_to_wait_for_ages(to: To) -> None:
    await to.out.head("429 Later", retry_after="9" * 5_000)


# --- what it says ---------------------------------------------------------------------------------


@_ends(INVALID)
async def a_deep_event(to: To) -> None:
    await to.whole(event(b"[" * 1_000_000), event(b'{"choices":' * 300_000))


@_ends(INVALID)
async def a_deep_text(to: To) -> None:
    await to.whole(to.words.said(b"[" * 300_000 + b"]" * 300_000))


@_ends("provider_error")
async def a_deep_error(to: To) -> None:
    await to.whole(to.words.failed(b"[" * 500 + b"]" * 500))


@_ends("completed", "chat")
async def counts_that_are_none(to: To) -> None:
    counts = (b"-5", b"1e400", b"9" * 4_000, b'"many"', b"[[]]", b"1.5", b"null", b"true")
    await to.whole(*(event(b'{"usage":{"prompt_tokens":%b}}' % count) for count in counts))


@_ends(INVALID)
async def counts_as_a_text(to: To) -> None:
    await to.out.events(to.words.begin(), to.words.said(b'"x"'), to.ended(count=b"NaN"))


@_ends("completed")
async def counts_beyond_all_measure(to: To) -> None:
    await to.out.events(to.words.begin(), to.words.said(b'"x"'), to.ended(count=b"9000000000000000000"))


@_ends("completed")
async def odd_text(to: To) -> None:
    odd = (
        text("\u0000\u001b[31m\u202e\ufeff\uffff\u2028"),
        b'"\\ud800"',
        b'"\\udfff\\ud800 a"',
        b'"\\u0000"',
        text("\U0001f3cb\u0301" * 1_000),
    )
    await to.whole(*map(to.words.said, odd))


@_ends(INVALID, "chat")
async def no_text_at_all(to: To) -> None:
    await to.whole(to.words.said(b'"\xff\xfe\xed\xa0\x80"'))


@_ends("completed", "chat")
async def equal_keys(to: To) -> None:
    many = b",".join([b'"content":"a"'] * 20_000)
    await to.whole(event(b'{"choices":[{"delta":{%b}}]}' % many))


@_ends("completed")
async def the_end_before_the_beginning(to: To) -> None:
    await to.out.events(to.end, to.words.begin(), to.words.said(b'"after"'), to.end)


@_ends("completed")
async def a_reason_of_its_own(to: To) -> None:
    reason = "\u0000\ud800" + "stop" * 50_000
    await to.out.events(to.words.begin(), to.words.said(b'"x"'), to.ended(reason=reason))


POISONS: Final = (
    "data:" * 1_300,
    "a" + " " * 50_000 + "b",
    "{" * 200_000,
    '{"a":' * 20_000,
    "<thinking>" * 20_000,
    "<!--<serp_queries>" * 10_000,
    "```\n" * 20_000,
    "<final></final>" * 5_000,
    "demo.think " * 5_000,
    "{{ a " * 20_000,
    "eyJ." * 20_000,
    'secret="' * 20_000,
    "https://a:" * 10_000,
    "。" * 50_000,
)


@_ends("completed")
async def poison(to: To) -> None:
    for words in POISONS:
        pieces = (words[start : start + 5_000] for start in range(0, len(words), 5_000))
        events = b"".join(to.words.said(text(piece)) for piece in pieces)
        if words is POISONS[0]:
            await to.out.events(to.words.begin())
        await to.out.raw(events)
    await to.out.raw(to.end)


# --- calls ----------------------------------------------------------------------------------------


@_ends("tool_limit_exceeded")
async def calls_again_and_again(to: To) -> None:
    await to.whole(to.words.called(b"0", b'"no_such_tool"', b'"{}"'))


@_ends("tool_limit_exceeded")
async def arguments_that_are_none(to: To) -> None:
    deep, half = text('{"a":' * 50_000), text("{{{]\ud800")
    await to.whole(
        to.words.called(b"0", b'"exercise_search"', deep),
        to.words.called(b"1", b'"exercise_search"', half),
    )


@_ends("tool_limit_exceeded")
async def long_names(to: To) -> None:
    await to.whole(to.words.called(b"0", text("n\u202e" * 50_000), b'"{}"'))


@_ends("tool_limit_exceeded")
async def places_that_jump(to: To) -> None:
    await to.whole(*(to.words.called(place, b'"a"', b'"{}"') for place in (b"1000000000", b"-7", b"0")))


@_ends(INVALID)
async def a_thousand_calls(to: To) -> None:
    await to.whole(*(to.words.called(b"%d" % place, b'"a"', b'"{}"') for place in range(1_000)))


# --- the key --------------------------------------------------------------------------------------


@_ends("completed")
async def repeats_the_key(to: To) -> None:
    key = to.asked.key
    whole = f"You sent {key}, that is {key[:12]} {key}{key}."
    await to.whole(
        to.words.thought(text(whole)),
        *(to.words.thought(text(letter)) for letter in key),
        to.words.said(text(whole)),
        *(to.words.said(text(letter)) for letter in key),
        *(to.words.said(text(key[start : start + 7])) for start in range(0, len(key), 7)),
    )


@_ends("completed")
async def repeats_the_key_in_its_head(to: To) -> None:
    key = to.asked.key
    await to.out.head(content_type="text/event-stream", x_request_id=f"req {key}", server=key)
    await to.out.raw(to.words.begin(), to.words.said(b'"x"'), to.ended(reason=key))


@_ends("tool_limit_exceeded")
async def repeats_the_key_in_a_call(to: To) -> None:
    key = to.asked.key
    await to.whole(to.words.called(b"0", text(key), text(json.dumps({"key": key, key: 1}))))


@_ends("provider_error")
async def repeats_the_key_in_an_error(to: To) -> None:
    await to.out.events(to.words.begin(), to.words.failed(text(to.asked.key)))


@_ends("provider_auth_error")
async def refuses_the_key(to: To) -> None:
    key = to.asked.key
    error = {"message": f"Bad key {key}", "type": key, "code": key}
    await to.out.head("401 No", content_type="application/json", www_authenticate=key)
    await to.out.raw(json.dumps({"error": error, key: key}).encode())
