"""The outcomes of a thread's interrupts, in the run that goes on: it makes the approved calls first.

A tool is called at most once, unless it is idempotent: before the call, its interrupt's row is marked
as begun under the run's fence. A run that finds a row begun by an earlier attempt tells the model.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import msgspec

from agents.host.model_and_tool_calls import RunHost
from agents.requests import AskedCall, Claim, InputMessage, ToolUse
from agents.runners.base import ToolOutcome
from agents.runners.tool_loop import completion_fact, outcome_text
from conversations.events import Fact, Problem
from conversations.log.retry import retry_until_answered
from conversations.runs import interrupts
from conversations.runs.interrupts import Interrupt

_NOT_CALLED: Final = {
    "refused": Problem("approval_refused", "The call was refused."),
    "expired": Problem("approval_expired", "Nobody approved the call in time; it was not made."),
    "cancelled": Problem("approval_not_answered", "Nobody answered whether the call may be made."),
}


class ApprovedCalls:
    """The interrupts whose outcomes one run gives to its model."""

    def __init__(self, claim: Claim, host: RunHost, *, log_fact: Callable[[Fact], None]) -> None:
        self._claim = claim
        self._host = host
        self._log_fact = log_fact

    async def settle(self, to_settle: list[Interrupt]) -> list[InputMessage]:
        """Make the approved calls concurrently, log each outcome; return the answers for the model."""
        return await asyncio.gather(*map(self._settle, to_settle))

    async def _settle(self, interrupt: Interrupt) -> InputMessage:
        use = ToolUse(interrupt.tool_name, interrupt.effective_arguments)
        call_id = interrupt.tool_call_id
        outcome = await self._outcome(interrupt, use)
        if outcome.artifact is not None:
            self._log_fact(outcome.artifact)
        fact = msgspec.structs.replace(
            completion_fact(call_id, outcome),
            parameters=use.arguments,
            asked_in=interrupt.run_id.hex,
            approval_id=interrupt.id.hex,
            kind=self._host.tool_kind(use.name),
            server_label=self._host.tool_server(use.name),
        )
        self._log_fact(fact)
        call = AskedCall(call_id, use.name, msgspec.json.encode(use.arguments).decode())
        return InputMessage(
            "tool", outcome_text(outcome), name=use.name, tool_call_id=call_id, tool_calls=(call,)
        )

    async def _outcome(self, interrupt: Interrupt, use: ToolUse) -> ToolOutcome:
        problem = _NOT_CALLED.get(interrupt.status)
        if problem is not None:
            if interrupt.status == "refused" and interrupt.decision_reason:
                reason = f"{problem.message} The reason given: {interrupt.decision_reason}"
                problem = Problem(problem.code, reason)
            return ToolOutcome(use, 0, None, problem)

        async def begin(idempotent: bool) -> bool:
            run_id, fence = self._claim.run_id, self._claim.fence
            return await retry_until_answered(
                interrupts.begin_call, interrupt.id, run_id=run_id, fence=fence, again=idempotent
            )

        return await self._host.call_approved(use, call_id=interrupt.tool_call_id, begin=begin)
