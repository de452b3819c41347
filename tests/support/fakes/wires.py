"""The four provider wires with their loopback providers, for tests that hold for each of them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from msgspec import structs

from agents.providers import (
    anthropic_messages,
    gemini_generate_content,
    http,
    openai_chat,
    openai_responses,
)
from agents.providers.base import (
    ChatMessage,
    Finished,
    ModelEvent,
    ModelRequest,
    ProviderError,
    ReasoningText,
    TextDelta,
    ToolSpec,
)
from agents.providers.exchange import Wire
from prompts.endpoints.routing import Candidate
from tests.support.fakes import fake_anthropic, fake_gemini, fake_model, fake_responses
from tests.support.fakes.fake_model import Answer, FakeModel, Received

KEY = "sk-test-key-of-the-wire-0123456789"
QUESTION = (ChatMessage("system", "Be brief."), ChatMessage("user", "卧推?"))
SEARCH = ToolSpec(
    "gymbro.exercise.search",
    "Finds exercises.",
    {
        "type": "object",
        "properties": {"query": {"type": "string"}, "top_k": {"type": "integer"}},
        "required": ["query"],
    },
)
WEATHER = ToolSpec("weather", "Says it.", {"type": "object", "properties": {"city": {"type": "string"}}})


@dataclass(frozen=True)
class Spoken:
    """A wire, the provider that speaks it on loopback, and what that has to say."""

    wire: Wire
    fake: type[FakeModel]
    cases: Mapping[str, Answer]


WIRES = {
    spoken.wire.name: spoken
    for spoken in (
        Spoken(openai_chat.stream, FakeModel, fake_model.CASES),
        Spoken(openai_responses.stream, fake_responses.FakeResponses, fake_responses.CASES),
        Spoken(anthropic_messages.stream, fake_anthropic.FakeAnthropic, fake_anthropic.CASES),
        Spoken(gemini_generate_content.stream, fake_gemini.FakeGemini, fake_gemini.CASES),
    )
}


@dataclass
class Got:
    """What a stream gave before it ended, and how it ended if it ended badly."""

    events: list[ModelEvent] = field(default_factory=list)
    error: ProviderError | None = None

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, TextDelta))

    @property
    def thoughts(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, ReasoningText))

    @property
    def failure(self) -> tuple[str, str, bool] | None:
        if self.error is None:
            return None
        return self.error.code, self.error.message, self.error.retryable

    @property
    def finished(self) -> Finished:
        assert self.error is None, self.error
        (found,) = [event for event in self.events if isinstance(event, Finished)]
        assert self.events[-1] is found
        return found


def asked(*tools: ToolSpec, **more: Any) -> ModelRequest:
    """The question, with these tools and parameters."""
    return replace_request(ModelRequest(messages=QUESTION, tools=tools), **more)


def replace_request(request: ModelRequest, **more: Any) -> ModelRequest:
    return structs.replace(request, **more)


def stream(wire: Wire, base_url: str, model: str, request: ModelRequest | None = None) -> Got:
    """Everything that one request over a wire gives; an error gives nothing away."""
    got = Got()
    target = replace(_TARGET, dialect=wire.name, base_url=base_url, model=model)

    async def read() -> None:
        try:
            async for group in wire(target, request or ModelRequest(messages=QUESTION)):
                assert group
                got.events += group
        except ProviderError as error:
            got.error = error
        finally:
            await http.close()

    asyncio.run(read())
    said = f"{got.error} {got.error!r}"
    assert not [secret for secret in ("sk-", "127.0.0.1", "http", "Refused", model) if secret in said]
    return got


_TARGET = Candidate(7, "fake", "", "", "", KEY, None, None)


def on_the_wire(answer: Answer) -> bytes:
    """The whole body of an answer, as its server would write it."""
    request = Received("POST", "/", {}, b"", {"stream_options": {"include_usage": True}}, "req_1")
    return b"".join(
        fake_model.wire(step, request, answer)
        for step in answer.steps
        if isinstance(step, bytes | dict | fake_model.Finish | fake_model.Usage)
    )
