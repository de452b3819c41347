"""The Host of a run: it calls tools and models for the runner (DESIGN §4)."""

from __future__ import annotations

import asyncio
import base64
import copy
import dataclasses
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from contextlib import AbstractContextManager, aclosing, nullcontext
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

import msgspec
import structlog
from django.conf import settings
from msgspec.structs import replace

from agents.providers.base import (
    ChatMessage,
    Finished,
    ImagePart,
    ModelEvent,
    Opened,
    ProviderError,
    RawChunk,
    ToolSpec,
)
from agents.providers.exchange import Wire
from agents.providers.generation_parameters import UNSUPPORTED, model_request, with_source
from agents.providers.registry import WIRES
from agents.requests import Generation, ToolUse
from agents.runners.base import Approval, RunFailure, ToolOutcome
from agents.spending.metering import Meter, ModelCall
from agents.tools import demo_note, large_results, offered_tools, show
from agents.tools.arguments import check_arguments, fits
from agents.tools.base import Tool, ToolContext, ToolFailure, in_context
from config.telemetry import tracing
from config.telemetry.span_ids import tool_id_of
from conversations import attachments
from conversations.events import Problem, ToolKind
from conversations.identifiers import uuid7
from prompts.endpoints.routing import Candidate, ModelRoute

log = structlog.get_logger(__name__)

Permit = Callable[[Tool], Awaitable[None]]  # raises ToolFailure for a tool that must not be called now
Sleep = Callable[[float], Awaitable[object]]
_LARGEST_IMAGE: Final = 10 * 1024 * 1024
_NOT_OFFERED: Final = Problem("tool_not_offered", "This run does not offer a tool of this name.")
_UNKNOWN: Final = Problem("unknown_tool", "There is no tool of this name.")
_OUTCOME_UNKNOWN: Final = (
    "The approved call was begun before the worker was lost; whether it had an effect is not known, so "
    "it was not called again."
)
_NOT_ROUTED: Final = "No endpoint serves this model any more."
_TRIES: Final = 3
_NOT_AGAIN: Final = frozenset((UNSUPPORTED, "provider_timeout"))
_LONGEST_PAUSE_S: Final = 5.0


async def _refuse_without_approval(tool: Tool) -> None:
    if tool.requires_approval:
        raise ToolFailure("approval_required", "Somebody must approve a call of this tool first.")


class RunHost:
    """The tools and the model of one run.

    `wait_until_logged` waits until all events of the run are in the log; `tools` are Parley's tools that
    the model may call; `meter` counts the use of the model.
    """

    def __init__(
        self,
        route: ModelRoute,
        *,
        caller: ToolContext | None = None,
        generation: Generation | None = None,
        tools: Sequence[Tool] = (),
        wait_until_logged: Callable[[], Awaitable[None]] | None = None,
        meter: Meter | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._route = route
        self._caller = caller
        self._generation = generation or Generation()
        self._granted = {tool.name: tool for tool in tools} if route.supports_tools else {}
        self._wait_until_logged = wait_until_logged
        self._meter = meter
        self._sleep = sleep

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """Return Parley's tools that the run's model may call."""
        return tuple(ToolSpec(t.name, t.description, t.parameters) for t in self._granted.values())

    def tool_kind(self, name: str) -> ToolKind:
        """Return the kind of the tool with this name."""
        tool = self._granted.get(name)
        return tool.kind if tool else "function"

    def tool_server(self, name: str) -> str:
        """Return the label of the MCP server of the tool with this name; "" for any other tool."""
        tool = self._granted.get(name)
        return tool.server_label if tool else ""

    async def call_granted(self, use: ToolUse, *, call_id: str) -> ToolOutcome:
        """Call a tool for the model; the outcome is an error if the tool was not offered."""
        return await self._call(self._granted.get(use.name), use, call_id)

    async def may_show(self) -> bool:
        """Return whether the offline model may show cards: a policy can forbid it."""
        return await offered_tools.find(show.TOOL.name, user_id=self._user_id) is not None

    async def offer_artifact_tool(self) -> None:
        """Let the model read artifacts; its messages refer to one."""
        tool = await offered_tools.find(large_results.READ, user_id=self._user_id)
        if tool is not None and self._route.supports_tools:
            self._granted.setdefault(tool.name, tool)

    def with_parameters(self, generation: Generation) -> RunHost:
        """Return a Host of the run's model for Parley's own question: without tools, but metered."""
        return RunHost(self._route, generation=generation, meter=self._meter, sleep=self._sleep)

    async def approval_for(self, use: ToolUse, *, call_id: str) -> Approval | None:
        """Return the approval that the model's call needs; None if it is called or refused at once."""
        tool = self._granted.get(use.name) or await self._demo_tool(use.name)
        if tool is None or not tool.requires_approval or not await fits(tool, use.arguments):
            return None
        return self.approval_of(tool, use, call_id=call_id)

    def approval_of(self, tool: Tool, use: ToolUse, *, call_id: str) -> Approval:
        """Return the approval that a call of this tool needs."""
        lives_s = tool.approval_ttl_s or settings.APPROVAL_TTL_S
        expires_at = datetime.now(UTC) + timedelta(seconds=lives_s)
        return Approval(uuid7(), call_id, use, tool.kind, tool.parameters, expires_at, tool.server_label)

    async def call_approved(
        self, use: ToolUse, *, call_id: str, begin: Callable[[bool], Awaitable[bool]]
    ) -> ToolOutcome:
        """Call an approved tool if `begin(idempotent)` permits it."""
        tool = self._granted.get(use.name) or await self._demo_tool(use.name)
        tool = tool or await offered_tools.find_action(use.name, user_id=self._user_id)
        if tool is None:  # a hosted runner's: its binding granted it, whatever the request names
            tool = next(iter(await offered_tools.find_granted((use.name,), user_id=self._user_id)), None)

        async def permit(tool: Tool) -> None:
            if not await begin(tool.idempotent):
                raise ToolFailure("tool_outcome_unknown", _OUTCOME_UNKNOWN)

        return await self._call(tool, use, call_id, permit=permit)

    async def call_action(self, tool: Tool, use: ToolUse, *, call_id: str) -> ToolOutcome:
        """Execute a platform action that needs no approval."""
        return await self._call(tool, use, call_id)

    def for_runner(self, names: Collection[str] | None, tools: Sequence[Tool]) -> RunHost:
        """Return a Host for a hosted runner, with the named ones of these tools (None: all).

        The tools do not depend on the abilities of the run's model.
        """
        host = copy.copy(self)
        host._granted = {tool.name: tool for tool in tools if names is None or tool.name in names}
        return host

    def for_model(self, route: ModelRoute, generation: Generation) -> RunHost:
        """Return the same Host with another model; the run is charged for it."""
        host = copy.copy(self)
        host._route, host._generation = route, generation
        return host

    @property
    def granted_tools(self) -> tuple[Tool, ...]:
        """Return the tools that may be called for the model or the runner."""
        return tuple(self._granted.values())

    async def _demo_tool(self, name: str) -> Tool | None:
        """Return the tool that only the offline model is offered, under its policy."""
        if name != demo_note.TOOL.name or self._route.candidates[0].dialect != "demo":
            return None
        return await offered_tools.find(name, user_id=self._user_id)

    @property
    def _user_id(self) -> UUID | None:
        return self._caller.user_id if self._caller else None

    async def call_tool(self, use: ToolUse, *, call_id: str = "") -> ToolOutcome:
        """Call any server tool for the request; a failure is an outcome, never an exception."""
        tool = await offered_tools.find(use.name, user_id=self._user_id)
        return await self._call(tool, use, call_id, missing=_UNKNOWN)

    async def _call(
        self,
        tool: Tool | None,
        use: ToolUse,
        call_id: str,
        *,
        permit: Permit = _refuse_without_approval,
        missing: Problem = _NOT_OFFERED,
    ) -> ToolOutcome:
        """Call the tool after its permit; `missing` is the problem if there is none."""
        if tool is None:
            return ToolOutcome(use, 0, None, missing)
        started_at = time.monotonic()
        result, problem, artifact = None, None, None
        try:
            await check_arguments(tool, use.arguments)
            if self._caller is not None:
                in_context(dataclasses.replace(self._caller, call_id=call_id))
            if self._wait_until_logged is not None and not tool.idempotent:
                await self._wait_until_logged()
            await permit(tool)
            with self._in_span(call_id):
                async with asyncio.timeout(tool.timeout_s):
                    result = await tool.call(use.arguments)
            result, artifact = await large_results.fit_result(tool, result, self._caller)
        except ToolFailure as failure:
            problem = Problem(failure.code, failure.message)
        except TimeoutError:
            problem = Problem("tool_timeout", "The tool took too long.")
        except Exception:  # a tool is the code of others: it may fail in any way, and the run continues
            log.exception("tool failed", tool=use.name)
            problem = Problem("tool_error", "The tool failed.")
        elapsed_ms = round((time.monotonic() - started_at) * 1000)
        if artifact is not None:
            await self.offer_artifact_tool()
        return ToolOutcome(use, elapsed_ms, None if problem else result, problem, artifact)

    def _in_span(self, call_id: str) -> AbstractContextManager[None]:
        """Let what the tool sends name the span of this call, if the run is traced."""
        if not call_id or self._caller is None or not tracing.is_on():
            return nullcontext()
        return tracing.within(tool_id_of(self._caller.run_id, call_id))

    @property
    def sees(self) -> bool:
        """Return whether the run's model accepts images."""
        return self._route.supports_vision

    async def load_image(self, image: ImagePart) -> bytes | None:
        """Return the bytes of a stored image; None if it is missing or too large."""
        bucket, _, path = image.stored.partition("/")
        return await attachments.read_bytes(bucket, path, limit=_LARGEST_IMAGE)

    async def stream_model(
        self,
        messages: tuple[ChatMessage, ...],
        tools: tuple[ToolSpec, ...] = (),
        *,
        raw: bool = False,
        message_id: str = "",
        must_call: str | None = None,
        one_by_one: bool = False,
    ) -> AsyncGenerator[Sequence[ModelEvent]]:
        """Stream the run's model by what arrives together, with retries before the first delta.

        The next candidate is tried when one cannot be reached, limits the rate or fails (5xx), but not
        when it refuses the request (specs/text-run.md §4): the others would receive the same one.
        """
        failure: ProviderError | None = None
        for candidate in self._route.candidates:
            shown = await self._with_images(messages, by_url=candidate.images_by_url)
            for attempt in range(_TRIES):
                delivered, call = False, ModelCall(candidate, message_id)
                if self._meter is not None:
                    await self._meter.admit(candidate)
                try:
                    request = model_request(
                        candidate,
                        self._generation,
                        shown,
                        tools,
                        raw=raw,
                        must_call=must_call,
                        one_by_one=one_by_one,
                    )
                    request = replace(request, on_usage=call.set_usage)
                    async with aclosing(_client(candidate)(candidate, request)) as groups:
                        async for group in groups:
                            delivered = delivered or _says_something(group)
                            if isinstance(last := group[-1], Finished):
                                call.finished = finished = with_source(last, candidate)
                                group = (*group[:-1], finished)
                            yield group
                    return
                except ProviderError as error:
                    failure = error
                finally:
                    if self._meter is not None:
                        self._meter.count(call)
                if delivered or not (failure.retryable or failure.code == UNSUPPORTED):
                    raise _failure(failure)
                if failure.code in _NOT_AGAIN:
                    break
                if attempt + 1 < _TRIES:
                    await self._sleep(_pause(failure, attempt))
        raise _failure(failure or ProviderError("model_not_routed", _NOT_ROUTED))

    async def _with_images(
        self, messages: tuple[ChatMessage, ...], *, by_url: bool
    ) -> tuple[ChatMessage, ...]:
        """Return the messages with visible images, or without images for a model that accepts none."""
        if not any(message.images for message in messages):
            return messages
        load = _sign if by_url else self._load_images
        if not self.sees:
            return tuple(_without_images(message) if message.images else message for message in messages)
        return tuple([replace(message, images=await load(message.images)) for message in messages])

    async def _load_images(self, images: tuple[ImagePart, ...]) -> tuple[ImagePart, ...]:
        loaded = [(image, await self.load_image(image)) for image in images]
        return tuple(
            ImagePart(image.mime_type, base64.b64encode(data).decode()) for image, data in loaded if data
        )


def _says_something(group: Sequence[ModelEvent]) -> bool:
    return any(not isinstance(event, Opened | RawChunk) for event in group)


def _without_images(message: ChatMessage) -> ChatMessage:
    """Return the message for a model without vision; a tool's answer lists the omitted images."""
    if message.role != "tool":
        return replace(message, images=())
    left_out = [{"type": "image", "mime_type": image.mime_type} for image in message.images]
    content = msgspec.json.encode({"text": message.content, "left_out": left_out}).decode()
    return replace(message, content=content, images=(), layout=())


async def _sign(images: tuple[ImagePart, ...]) -> tuple[ImagePart, ...]:
    """Return the images that still exist, with addresses for the provider."""
    places = [(image, *image.stored.partition("/")[::2]) for image in images]
    return tuple(
        [
            ImagePart(image.mime_type, url=attachments.sign_url(bucket, path))
            for image, bucket, path in places
            if await attachments.exists(bucket, path)
        ]
    )


def _client(candidate: Candidate) -> Wire:
    client = WIRES.get(candidate.dialect)
    if client is None:
        raise ProviderError(UNSUPPORTED, "This endpoint's dialect is not supported yet.")
    return client


def _pause(error: ProviderError, attempt: int) -> float:
    """Return the seconds before the next attempt: the provider's value, or a jittered doubling."""
    if error.retry_after_s is not None:
        return min(error.retry_after_s, _LONGEST_PAUSE_S)
    return random.uniform(0.125, 0.25) * (1 << attempt)


def _failure(error: ProviderError) -> RunFailure:
    return RunFailure(error.code, error.message, retryable=error.retryable)
