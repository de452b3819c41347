"""Check a hosted runner's calls against the request's tool choice; a violation fails the run.

The runner gets the choice (`adapter.extra`), but nobody can force it. So a run fails if it must
call a tool and does not, or if it sends the client a call that is not allowed.
"""

from __future__ import annotations

from typing import Final

import msgspec

from agents import json_schemas
from agents.requests import RunRequest
from agents.runners.base import RunFailure
from conversations.events import Fact, ToolCallStarted

CODE: Final = "tool_choice_not_obeyed"


class ToolChoiceCheck:
    """The tool calls of one run."""

    def __init__(self, request: RunRequest) -> None:
        self._choice = request.tool_choice
        self._clients = {tool.name: tool for tool in request.tools}
        self._made: set[str] = set()
        self._of_client = 0

    async def count_call(self, fact: Fact) -> None:
        """Count a call; raise RunFailure for a call to the client that the request does not allow."""
        if not isinstance(fact, ToolCallStarted):
            return
        self._made.add(fact.tool_name)
        if fact.kind == "frontend" and fact.tool_name in self._clients:
            await self._check(fact)

    async def _check(self, call: ToolCallStarted) -> None:
        self._of_client += 1
        if self._choice.one_by_one and self._of_client > 1:
            raise RunFailure(CODE, "parallel_tool_calls: the runner called two of the client's tools.")
        tool = self._clients[call.tool_name]
        if not tool.strict:
            return
        try:
            faults = await json_schemas.find_faults(
                msgspec.json.encode(call.parameters), tool.parameters
            )
        except (json_schemas.Undecided, json_schemas.UnusableSchema):
            return  # the schema cannot be used for a check
        if faults:
            raise RunFailure(CODE, "tools.strict: the runner's arguments do not fit the tool's schema.")

    def check(self, called_tools: set[str]) -> None:
        """Raise RunFailure if a required call was not made; `called_tools` are the Host's."""
        choice = self._choice
        if not choice.required:
            return
        made = self._made | called_tools
        expected = {choice.name, f"{choice.server}__{choice.name}"} if choice.name else made
        if not made & expected:
            name = choice.name or "a tool"
            raise RunFailure(CODE, f"tool_choice: the runner did not call {name:.100}.")
