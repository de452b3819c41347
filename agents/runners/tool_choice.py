"""The tools of each step of a run: the client's and ours, and the one that the model must call.

A provider receives these rules as far as its wire has options for them. This module enforces the
rest: a surplus call is not made, and an unfit call of a strict tool goes back to the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from agents import json_schemas
from agents.providers.base import ChatMessage, Finished, ToolCall, ToolSpec
from agents.providers.decoding import parse_object
from agents.requests import OWN_LABEL, ClientTool
from agents.runners.base import Host, RunContext, RunFailure

_NOT_MADE: Final = "This call was not made, for another of the same step cannot be: make it again."


class OfferedTools:
    """The tools of one run, step by step."""

    def __init__(self, context: RunContext, host: Host) -> None:
        self._host = host
        self._choice = context.request.tool_choice
        self._by_name = {tool.name: tool for tool in context.request.tools}
        self._clients = tuple(_spec(tool) for tool in context.request.tools)
        self._must = self._choice.required
        self._left = self._choice.most_calls

    def step(self) -> tuple[tuple[ToolSpec, ...], str | None]:
        """Return the tools of the next step, and the one that it must call; None: the model decides.

        Raise RunFailure `tool_not_offered` if a tool must be called that the run does not offer.
        """
        ours = self._ours()
        if not self._must:
            return (*self._clients, *ours), None
        label = self._choice.server
        offered = [tool for tool in ours if self._label(tool) == label] if label else ours
        tools = tuple(offered) if label else (*self._clients, *ours)
        return tools, self._named(tools)

    def take(self, finished: Finished) -> Finished:
        """Return the end of a step with the calls to make."""
        calls = finished.tool_calls[:1] if self._choice.one_by_one else finished.tool_calls
        kept = tuple(call for call in calls if self._is_left(call))
        self._must = self._must and not kept
        if len(kept) == len(finished.tool_calls):
            return finished
        reason = finished.finish_reason if kept or finished.finish_reason != "tool_calls" else "stop"
        return replace(finished, tool_calls=kept, finish_reason=reason)

    async def refuse_unfit(self, calls: Sequence[ToolCall]) -> list[ChatMessage]:
        """Return answers to calls of strict tools if the arguments of any do not fit; else nothing."""
        faults = [await self._fault(call) for call in calls]
        if not any(faults):
            return []
        self._must = self._choice.required
        answers = zip(calls, faults, strict=True)
        return [ChatMessage("tool", fault or _NOT_MADE, tool_call_id=call.id) for call, fault in answers]

    def _ours(self) -> tuple[ToolSpec, ...]:
        if self._left is not None and self._left <= 0:
            return ()
        return tuple(tool for tool in self._host.tools if tool.name not in self._by_name)

    def _label(self, tool: ToolSpec) -> str:
        return self._host.tool_server(tool.name) or OWN_LABEL

    def _named(self, tools: Sequence[ToolSpec]) -> str:
        choice = self._choice
        names = (choice.name, f"{choice.server}__{choice.name}") if choice.name else ()
        named = [tool.name for tool in tools if tool.name in names]
        if not tools or (names and not named):
            raise RunFailure(
                "tool_not_offered", "The request wants a tool called that this run does not offer."
            )
        return named[0] if named else ""

    def _is_left(self, call: ToolCall) -> bool:
        """Return whether the call may still be made; a call of a tool of ours counts."""
        if self._left is None or call.name in self._by_name:
            return True
        self._left -= 1
        return self._left >= 0

    async def _fault(self, call: ToolCall) -> str:
        tool = self._by_name[call.name]
        if not tool.strict:
            return ""
        arguments = msgspec.json.encode(parse_object(call.arguments))
        try:
            faults = await json_schemas.find_faults(arguments, tool.parameters)
        except (json_schemas.Undecided, json_schemas.UnusableSchema):  # a schema that cannot be checked
            return ""
        return f"The arguments do not fit the tool's schema: {'; '.join(faults)}." if faults else ""


def _spec(tool: ClientTool) -> ToolSpec:
    return ToolSpec(tool.name, tool.description, tool.parameters, tool.strict)
