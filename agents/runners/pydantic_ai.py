"""A pydantic-ai agent as a Runner: an example of adapting a framework, and usable as it is.

It needs the optional extra (`requirements/pydantic-ai.txt`); nothing of Parley imports it. The agent
brings its own model and tools; of the conversation it is told what was said, and its words, thoughts
and tool calls become the run's events as they come.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Iterator
from typing import Any

import msgspec
from pydantic_ai import Agent
from pydantic_ai.messages import (
    AgentStreamEvent,
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    RetryPromptPart,
    SystemPromptPart,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    UserPromptPart,
)
from pydantic_ai.run import AgentRunResultEvent
from pydantic_ai.usage import RunUsage

from agents.providers.base import ChatMessage
from agents.runners.base import Host, RunContext
from conversations import events
from conversations.events import Fact, Problem, Usage


class PydanticAiRunner:
    """Runs the agent for each run; give one to the entry point group `parley.runners`."""

    def __init__(self, agent: Agent[Any, Any]) -> None:
        self._agent = agent

    async def run(self, context: RunContext, host: Host) -> AsyncGenerator[Fact]:
        yield events.ModelRouted("pydantic-ai", self._agent.name or "agent")
        said = _Said(context.message_id)
        usage = RunUsage()
        history = [message for one in context.conversation[:-1] for message in _told(one)]
        if context.system:
            history.insert(0, ModelRequest([SystemPromptPart(context.system)]))
        stream = self._agent.run_stream_events(context.question, message_history=history, usage=usage)
        async with stream as happening:
            async for event in happening:
                if isinstance(event, AgentRunResultEvent):
                    break
                for fact in said.facts(event):
                    yield fact
        yield events.RunCompleted("stop", Usage(usage.input_tokens, usage.output_tokens))


class _Said:
    """The agent's events as facts."""

    def __init__(self, message_id: str) -> None:
        self._message_id = message_id
        self._begun: dict[str, float] = {}

    def facts(self, event: AgentStreamEvent) -> Iterator[Fact]:
        match event:
            case PartStartEvent(part=TextPart(content=text)) if text:
                yield events.MessageDelta(self._message_id, text)
            case PartDeltaEvent(delta=TextPartDelta(content_delta=text)) if text:
                yield events.MessageDelta(self._message_id, text)
            case PartStartEvent(part=ThinkingPart(content=text)) if text:
                yield events.ReasoningDelta(self._message_id, text)
            case PartDeltaEvent(delta=ThinkingPartDelta(content_delta=text)) if text:
                yield events.ReasoningDelta(self._message_id, text)
            case FunctionToolCallEvent(part=call):
                self._begun[call.tool_call_id] = time.monotonic()
                yield events.ToolCallStarted(call.tool_call_id, call.tool_name, call.args_as_dict())
            case FunctionToolResultEvent(part=answer):
                yield self._completed(answer)

    def _completed(self, answer: Any) -> Fact:
        elapsed = time.monotonic() - self._begun.pop(answer.tool_call_id, time.monotonic())
        name, elapsed_ms = answer.tool_name or "", round(elapsed * 1000)
        if isinstance(answer, RetryPromptPart):
            problem = Problem("tool_error", "The agent's tool refused the call.")
            return events.ToolCallCompleted(answer.tool_call_id, name, False, elapsed_ms, error=problem)
        result = msgspec.to_builtins(answer.model_response_object(), enc_hook=str)
        return events.ToolCallCompleted(answer.tool_call_id, name, True, elapsed_ms, result)


def _told(said: ChatMessage) -> Iterator[ModelMessage]:
    """What was said before; the calls of other runs' tools mean nothing to this agent."""
    if not said.content:
        return
    match said.role:
        case "user":
            yield ModelRequest([UserPromptPart(said.content)])
        case "system":
            yield ModelRequest([SystemPromptPart(said.content)])
        case "assistant":
            yield ModelResponse([TextPart(said.content)])
