"""Parameters of a request to a candidate: the run's own before those of the mapping."""

from __future__ import annotations

from typing import Final

from msgspec.structs import asdict, replace

from agents.providers.base import (
    ChatMessage,
    Finished,
    ModelRequest,
    ProviderError,
    ToolSpec,
    first_unsupported,
)
from agents.requests import Generation
from prompts.endpoints.routing import Candidate

UNSUPPORTED: Final = "provider_unsupported"
_OVERRIDABLE: Final = (
    "top_p",
    "frequency_penalty",
    "presence_penalty",
    "temperature",
    "seed",
)


def model_request(
    candidate: Candidate,
    generation: Generation,
    messages: tuple[ChatMessage, ...],
    tools: tuple[ToolSpec, ...],
    *,
    raw: bool,
    must_call: str | None = None,
    one_by_one: bool = False,
) -> ModelRequest:
    """Return the request, with the run's parameters, but at most the mapping's limit of tokens.

    Raise ProviderError `provider_unsupported` if the candidate's wire lacks a wanted parameter.
    """
    if (name := first_unsupported(candidate.dialect, generation)) is not None:
        raise ProviderError(UNSUPPORTED, f"This endpoint cannot be asked for {name}.")
    limits = [limit for limit in (generation.max_tokens, candidate.max_tokens) if limit is not None]
    chosen = {
        name: getattr(candidate, name) for name in _OVERRIDABLE if getattr(generation, name) is None
    }
    if generation.reasoning is None and generation.reasoning_budget is None:
        chosen["reasoning"] = candidate.reasoning or None  # either of the two alone is a whole choice
        chosen["reasoning_budget"] = candidate.reasoning_budget
    parameters = asdict(generation) | chosen
    parameters |= {"max_tokens": min(limits, default=None), "stop": generation.stop or candidate.stop}
    return ModelRequest(
        messages=_readable(messages, reasoning_source(candidate)),
        tools=tools,
        raw=raw,
        must_call=must_call,
        one_by_one=one_by_one,
        **parameters,
    )


def reasoning_source(candidate: Candidate) -> str:
    """Return the source: only the same endpoint and model can read its signed or encrypted reasoning."""
    return f"{candidate.endpoint_id}/{candidate.model}"


def with_source(finished: Finished, candidate: Candidate) -> Finished:
    """Return the candidate's last event, its reasoning with its source."""
    source = reasoning_source(candidate)
    return replace(
        finished, reasoning=tuple(replace(block, source=source) for block in finished.reasoning)
    )


def _readable(messages: tuple[ChatMessage, ...], source: str) -> tuple[ChatMessage, ...]:
    """Return the messages without the reasoning of other sources, which a provider refuses."""
    return tuple(
        replace(message, reasoning=tuple(kept for kept in message.reasoning if kept.source == source))
        if message.reasoning
        else message
        for message in messages
    )
