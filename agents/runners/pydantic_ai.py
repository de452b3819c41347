"""A pydantic-ai agent as a Runner: an example of adapting a framework, and usable as it is.

It needs the optional extra (`requirements/pydantic-ai.txt`); nothing of Parley imports it. The agent
has its own model and tools; it reads the tail of the conversation that the Host inlines, and its
text, thoughts and tool calls become the run's events as they come.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from typing import Any

import msgspec
from pydantic_ai import Agent, messages
from pydantic_ai.run import AgentRunResultEvent
from pydantic_ai.usage import RunUsage

from agents.host_protocol.host_api import HostApi
from agents.host_protocol.manifest import Capabilities, ContextPolicy, Permissions, RunnerManifest
from agents.host_protocol.messages import Message, text_in
from agents.host_protocol.run_context import AgentRunContext
from conversations import events
from conversations.events import Fact, Problem, Usage


class PydanticAiRunner:
    """A runner that calls the agent; `name` is that of its entry in the group `parley.runners`."""

    def __init__(self, agent: Agent[Any, Any], *, name: str) -> None:
        self._agent = agent
        self.manifest = RunnerManifest(
            id=f"python:{name}",
            name=name,
            label={"en_US": agent.name or name},
            capabilities=Capabilities(
                streaming=True,
                tool_calling=True,
                multimodal_input=True,
                interrupt=True,
                self_managed_context=False,
            ),
            permissions=Permissions(artifacts=("read",)),
            context=ContextPolicy(ownership="host_bootstrap", bootstrap="recent_tail"),
        )

    async def run(self, context: AgentRunContext, host: HostApi) -> AsyncGenerator[Fact]:
        yield events.ModelRouted("pydantic-ai", self._agent.name or "agent")
        translator = _Translator(f"execution-{context.run_id}")
        usage = RunUsage()
        before = context.bootstrap.messages if context.bootstrap else ()
        history = [message for one in before for message in _as_history(one)]
        if system := await host.prompt():
            history.insert(0, messages.ModelRequest([messages.SystemPromptPart(system)]))
        question = await _question(context, host)
        stream = self._agent.run_stream_events(question, message_history=history, usage=usage)
        async with stream as happening:
            async for event in happening:
                if isinstance(event, AgentRunResultEvent):
                    break
                for fact in translator.facts(event):
                    yield fact
        yield events.RunCompleted("stop", Usage(usage.input_tokens, usage.output_tokens))


async def _question(context: AgentRunContext, host: HostApi) -> str | Sequence[messages.UserContent]:
    """Return the question, with its images."""
    text = context.input.text or ""
    sent = [one for one in context.input.attachments if (one.mime_type or "").startswith("image/")]
    if not sent:
        return text
    images: list[messages.UserContent] = []
    for one in sent:
        data = b"".join([piece async for piece in host.artifacts.open_stream(one.artifact_id)])
        images.append(messages.BinaryContent(data, media_type=one.mime_type or ""))
    return [text, *images] if text else images


class _Translator:
    """A translator of the agent's events into facts."""

    def __init__(self, message_id: str) -> None:
        self._message_id = message_id
        self._begun: dict[str, float] = {}

    def facts(self, event: messages.AgentStreamEvent) -> Iterator[Fact]:
        match event:
            case messages.PartStartEvent(part=messages.TextPart(content=text)) if text:
                yield events.MessageDelta(self._message_id, text)
            case messages.PartDeltaEvent(delta=messages.TextPartDelta(content_delta=text)) if text:
                yield events.MessageDelta(self._message_id, text)
            case messages.PartStartEvent(part=messages.ThinkingPart(content=text)) if text:
                yield events.ReasoningDelta(self._message_id, text)
            case messages.PartDeltaEvent(delta=messages.ThinkingPartDelta(content_delta=text)) if text:
                yield events.ReasoningDelta(self._message_id, text)
            case messages.FunctionToolCallEvent(part=call):
                self._begun[call.tool_call_id] = time.monotonic()
                yield events.ToolCallStarted(call.tool_call_id, call.tool_name, call.args_as_dict())
            case messages.FunctionToolResultEvent(part=answer):
                yield self._completed(answer)

    def _completed(self, answer: Any) -> Fact:
        elapsed = time.monotonic() - self._begun.pop(answer.tool_call_id, time.monotonic())
        name, elapsed_ms = answer.tool_name or "", round(elapsed * 1000)
        if isinstance(answer, messages.RetryPromptPart):
            problem = Problem("tool_error", "The agent's tool refused the call.")
            return events.ToolCallCompleted(answer.tool_call_id, name, False, elapsed_ms, error=problem)
        result = msgspec.to_builtins(answer.model_response_object(), enc_hook=str)
        return events.ToolCallCompleted(answer.tool_call_id, name, True, elapsed_ms, result)


def _as_history(message: Message) -> Iterator[messages.ModelMessage]:
    """Yield an earlier message; calls of other runs' tools mean nothing to this agent."""
    text = text_in(message.content)
    if not text:
        return
    match message.role:
        case "user":
            yield messages.ModelRequest([messages.UserPromptPart(text)])
        case "system":
            yield messages.ModelRequest([messages.SystemPromptPart(text)])
        case "assistant":
            yield messages.ModelResponse([messages.TextPart(text)])
