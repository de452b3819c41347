"""The providers that we fake against what the real ones sent (tests/agents/providers/recorded).

A fake must send the members, the types and the nulls that its peer sends, all of them and no others, in
an order in which the peer sends them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

import pytest

from tests.support.fakes import (
    fake_anthropic,
    fake_embeddings,
    fake_exa,
    fake_gemini,
    fake_model,
    fake_responses,
)
from tests.support.fakes.fake_model import Answer
from tests.support.fakes.recordings import DONE, Frame, events, recordings
from tests.support.fakes.shapes import Ids, Profile, reduce, unlike
from tests.support.fakes.wires import WIRES, on_the_wire

CHAT, RESPONSES = "openai.chat_completions", "openai.responses"
MESSAGES, GEMINI = "anthropic.messages", "gemini.generate_content"


def _chat(frame: Frame) -> str:
    match frame:
        case {"error": _}:
            return "error"
        case {"choices": [{"finish_reason": str()}]}:
            return "finish"
        case {"choices": [{"delta": {"role": _}}]}:
            return "role"
        case {"choices": [{"delta": {"tool_calls": [{"id": _}, *_]}}]}:
            return "call"
        case {"choices": [{"delta": {"tool_calls": _}}]}:
            return "arguments"
        case {"choices": [{"delta": {"content": [{"type": kind}]}}]}:
            return str(kind)
        case {"choices": [{"delta": {"reasoning_content": str()}}]}:
            return "thought"
        case {"choices": [_]}:
            return "text"
        case {"choices": []}:
            return "counts"
    return str(frame)


def _named(frame: Frame) -> str:
    """Responses and Messages say what they are, and what they are about."""
    about = next((frame[one] for one in ("item", "part", "delta", "content_block") if one in frame), "")
    kind = about.get("type", "") if isinstance(about, dict) else ""
    return f"{frame['type']} {kind}".strip()


def _gemini(frame: Frame) -> str:
    told = frame.get("candidates", [{}])[0]
    parts = told.get("content", {}).get("parts", [])
    kinds = {"thought" if part.get("thought") else next(iter(part)) for part in parts}
    return " ".join(sorted(kinds))


KINDS: dict[str, Callable[[Frame], str]] = {
    CHAT: _chat,
    RESPONSES: _named,
    MESSAGES: _named,
    GEMINI: _gemini,
}
FAKED = [
    (CHAT, "hello usage length tools one-tool", "openai text, openai call, openai two calls"),
    (CHAT, "reasoning", "deepseek thoughts"),
    (CHAT, "parts", "mistral thoughts"),
    (RESPONSES, "hello usage tools reasoning", "openai text, openai call, openai encrypted thoughts"),
    (MESSAGES, "hello usage length tools", "anthropic text, anthropic call, anthropic call alone"),
    (MESSAGES, "reasoning", "anthropic thoughts, anthropic redacted thoughts"),
    (MESSAGES, "refusal", "anthropic refusal"),
    (GEMINI, "hello length", "gemini text of 2.0"),
    (GEMINI, "one-tool", "gemini call"),
    (GEMINI, "tools", "gemini native output and call"),
    (GEMINI, "reasoning", "gemini thoughts"),
]


def faked(wire: str, case: str) -> list[Frame]:
    """What the fake sends in such a case."""
    ids = Ids()
    sent = events(on_the_wire(WIRES[wire].cases[case]).decode())
    return [frame if frame == DONE else reduce(frame, ids) for frame in sent]


_ADDED, _DONE = "response.output_item.added function_call", "response.output_item.done function_call"
DOCUMENTED = {
    f"{_ADDED} after {_DONE}",
    "lacks functionCall:.candidates[].content.parts[].thoughtSignature",
}
"""What no recording shows but the references say: several calls, of which Gemini signs the first."""
REFUSALS = [
    (CHAT, [*map(fake_model.status, (400, 401, 404))], "openai 400, openai 401, openai 404"),
    (RESPONSES, [fake_responses.status(400, kind="model_not_found")], "openai 400, openai 400 model"),
    (
        MESSAGES,
        [*map(fake_anthropic.status, (400, 404, 529))],
        "anthropic 400, anthropic 404, anthropic 529",
    ),
    (
        GEMINI,
        [fake_gemini.status(400, kind="API_KEY_INVALID"), fake_gemini.status(503)],
        "gemini 400 key, gemini 503",
    ),
]


@pytest.mark.parametrize(("wire", "cases", "names"), FAKED)
def test_the_fake_could_have_sent_what_its_peer_sends(wire: str, cases: str, names: str) -> None:
    kind, recorded = KINDS[wire], recordings(wire)
    fake = Profile([faked(wire, case) for case in cases.split()], kind)
    real = Profile([recorded[name].frames for name in names.split(", ")], kind)
    peer = [one for name, one in recorded.items() if name.split()[0] == names.split()[0]]
    real.follows |= Profile([one.frames for one in peer if one.status == 200], kind).follows
    assert [found for found in unlike(fake, real) if found not in DOCUMENTED] == []


@pytest.mark.parametrize(("wire", "refusals", "names"), REFUSALS)
def test_the_fake_refuses_as_its_peer_does(wire: str, refusals: Iterable[Answer], names: str) -> None:
    recorded = recordings(wire)
    bodies = [[reduce(events(on_the_wire(one).decode())[0], Ids())] for one in refusals]
    real = Profile([recorded[name].frames for name in names.split(", ")], _body)
    assert unlike(Profile(bodies, _body), real) == []


def _body(_: Frame) -> str:
    return "body"


EXA = [
    ([fake_exa.found(fake_exa.page())], "exa text"),
    ([fake_exa.found(fake_exa.page(author=None))], "exa text, exa text without an author"),
    ([fake_exa.found(fake_exa.page(score=0.5))], "exa text, exa text with a score"),
    ([fake_exa.refused(401, "INVALID_API_KEY")], "exa 401"),
]


@pytest.mark.parametrize(("answers", "names"), EXA)
def test_the_fake_exa_answers_as_exa_does(answers: list[fake_exa.Answer], names: str) -> None:
    """Of what is only sometimes told it need not send all at once."""
    recorded = recordings("exa.search")
    fake = Profile([[reduce(json.loads(one.body), Ids()) for one in answers]], _body)
    real = Profile([recorded[name].frames for name in names.split(", ")], _body)
    found = [one for one in unlike(fake, real) if not one.startswith("never sent") or "," not in names]
    assert found == []


def test_the_fake_of_embeddings_answers_as_openai_does() -> None:
    real = recordings("openai.embeddings")["openai embeddings"].frames
    _, body = fake_embeddings.answer("embedder", ["sleep", "food"])
    sent = reduce(json.loads(body), Ids())
    assert unlike(Profile([[sent]], _body), Profile([real], _body)) == []


def test_the_fake_fails_in_the_middle_as_its_peer_does() -> None:
    """The response that fails was recorded of an older generation than the fake's."""
    real = recordings(RESPONSES)["openai error in the stream"].frames
    fake = faked(RESPONSES, "overloaded-in-stream")
    assert [_named(frame) for frame in fake[-2:]] == [_named(frame) for frame in real[-2:]]
    told = [Profile([[frames[-2]]], _named) for frames in (fake, real)]
    assert unlike(*told) == []


def test_a_fake_that_could_not_is_found_out() -> None:
    real = recordings(MESSAGES)["anthropic text"].frames
    begun, block, ping, *rest = faked(MESSAGES, "hello")
    spoilt = {**begun, "novel": None}, ping, {**block, "index": "0"}, *rest[:-2], rest[-1]
    found = unlike(Profile([spoilt], _named), Profile([real], _named))
    assert [one for one in found if not one.startswith("never sent: message_delta")] == [
        "content_block_delta text_delta after content_block_start text",
        "content_block_start text after ping",
        "message_stop after content_block_stop",
        "never sent: content_block_start text:.index number",
        "not the peer's: content_block_start text:.index string",
        "not the peer's: message_start:.novel null",
        "ping after message_start",
    ]
