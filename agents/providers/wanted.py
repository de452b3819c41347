"""What a candidate is asked for: the request's own parameters before those of the mapping."""

from __future__ import annotations

from typing import Final, cast

from msgspec.structs import replace

from agents.providers.base import ChatMessage, Finished, ModelRequest, ToolSpec
from agents.requests import Effort, Generation
from prompts.routing import Candidate

_SAID_ALONE: Final = (
    "top_p",
    "frequency_penalty",
    "presence_penalty",
    "temperature",
    "seed",
)


def model_request(
    candidate: Candidate,
    wanted: Generation,
    messages: tuple[ChatMessage, ...],
    tools: tuple[ToolSpec, ...],
    *,
    raw: bool,
) -> ModelRequest:
    """The request over the mapping, but never past the mapping's limit of tokens."""
    limits = [limit for limit in (wanted.max_tokens, candidate.max_tokens) if limit is not None]
    chosen = {
        name: getattr(candidate, name) if (given := getattr(wanted, name)) is None else given
        for name in _SAID_ALONE
    }
    effort, budget = wanted.reasoning, wanted.reasoning_budget
    if effort is None and budget is None:  # one without the other is a whole wish too
        effort, budget = cast("Effort | None", candidate.reasoning or None), candidate.reasoning_budget
    return ModelRequest(
        _readable(messages, source_of(candidate)),
        tools,
        **chosen,
        max_tokens=min(limits, default=None),
        stop=wanted.stop or candidate.stop,
        json_schema=wanted.json_schema,
        raw=raw,
        reasoning=effort,
        reasoning_budget=budget,
    )


def source_of(candidate: Candidate) -> str:
    """Who reasons: only the same endpoint and model can read its signed or encrypted reasoning."""
    return f"{candidate.endpoint_id}/{candidate.model}"


def marked(finished: Finished, candidate: Candidate) -> Finished:
    """The end of what this candidate said, its reasoning with its source."""
    if not finished.reasoning:
        return finished
    source = source_of(candidate)
    return replace(
        finished, reasoning=tuple(replace(block, source=source) for block in finished.reasoning)
    )


def _readable(messages: tuple[ChatMessage, ...], source: str) -> tuple[ChatMessage, ...]:
    """The messages without the reasoning of others, which a provider refuses."""
    if not any(said.reasoning for said in messages):
        return messages
    return tuple(
        replace(said, reasoning=tuple(kept for kept in said.reasoning if kept.source == source))
        if said.reasoning
        else said
        for said in messages
    )
