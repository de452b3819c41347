"""The Host of a run: it calls tools and models on the runner's behalf (DESIGN §4)."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Final

import structlog

from agents.providers import openai_chat
from agents.providers.base import ModelEvent, ModelRequest, Opened, ProviderClient, ProviderError
from agents.requests import ToolUse
from agents.runners.base import ChatMessage, RunFailure, ToolOutcome
from agents.tools import registry
from agents.tools.base import ToolFailure
from conversations.events import Problem
from prompts.routing import Candidate, ModelRoute

log = structlog.get_logger(__name__)

CLIENTS: Final[dict[str, ProviderClient]] = {"openai.chat_completions": openai_chat.stream}
Sleep = Callable[[float], Awaitable[object]]
_TRIES: Final = 3
_LONGEST_PAUSE_S: Final = 5.0


class RunHost:
    """What one run may reach."""

    def __init__(self, route: ModelRoute, *, sleep: Sleep = asyncio.sleep) -> None:
        self._route = route
        self._sleep = sleep

    async def call_tool(self, use: ToolUse) -> ToolOutcome:
        """Call a server tool; a failure is an outcome, never an exception."""
        begun = time.monotonic()
        tool = registry.find(use.name)
        result, problem = None, None
        try:
            if tool is None:
                raise ToolFailure("unknown_tool", "There is no tool of this name.")
            async with asyncio.timeout(tool.timeout_s):
                result = await tool.call(use.arguments)
        except ToolFailure as failure:
            problem = Problem(failure.code, failure.message)
        except TimeoutError:
            problem = Problem("tool_timeout", "The tool took too long.")
        except Exception:  # a tool is somebody's code: it may fail as it likes, the run goes on
            log.exception("tool failed", tool=use.name)
            problem = Problem("tool_error", "The tool failed.")
        elapsed_ms = round((time.monotonic() - begun) * 1000)
        return ToolOutcome(use, elapsed_ms, result, problem)

    async def stream_model(self, messages: tuple[ChatMessage, ...]) -> AsyncGenerator[ModelEvent]:
        """Stream the run's model: each candidate in order, with retries before the first delta."""
        failure = ProviderError("model_not_routed", "No endpoint serves this model any more.")
        for candidate in self._route.candidates:
            for attempt in range(_TRIES):
                said = False
                try:
                    stream = _client(candidate)(candidate, _request(candidate, messages))
                    async with aclosing(stream) as events:
                        async for event in events:
                            said = said or not isinstance(event, Opened)
                            yield event
                    return
                except ProviderError as error:
                    failure = error
                if said:
                    raise _failure(failure)
                if not failure.retryable or failure.code == "provider_timeout":
                    break
                if attempt + 1 < _TRIES:
                    await self._sleep(_pause(failure, attempt))
        raise _failure(failure)


def _client(candidate: Candidate) -> ProviderClient:
    client = CLIENTS.get(candidate.dialect)
    if client is None:
        raise ProviderError("provider_unsupported", "This endpoint's dialect is not supported yet.")
    return client


def _request(candidate: Candidate, messages: tuple[ChatMessage, ...]) -> ModelRequest:
    return ModelRequest(messages, candidate.temperature, candidate.max_tokens)


def _pause(error: ProviderError, attempt: int) -> float:
    """Seconds before the next try: what the provider asked for, or a jittered doubling."""
    if error.retry_after_s is not None:
        return min(error.retry_after_s, _LONGEST_PAUSE_S)
    return random.uniform(0.125, 0.25) * (1 << attempt)


def _failure(error: ProviderError) -> RunFailure:
    return RunFailure(error.code, error.message, retryable=error.retryable)
