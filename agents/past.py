"""Put together what a runner is told: system message, as much of the thread as fits, and the request."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from django.conf import settings

from agents.claims import Claim
from agents.context import SoFar, led, so_far
from agents.host import RunHost
from agents.outlasting import outlast
from agents.providers.base import ChatMessage, ToolSpec
from agents.requests import InputMessage
from agents.runners.base import RunContext, RunFailure, ToolOutcome
from agents.runners.conversation import chat_messages
from agents.runners.injection import injected_context
from agents.runners.system_message import system_message
from agents.runners.thinkingml import form_for
from agents.runners.tokens import estimate, of_messages, of_tools
from agents.runners.window import history_budget, window
from agents.summary import Summarised, as_message, reach
from agents.tools.artifacts import READ
from conversations import events
from conversations.events import Fact
from prompts import app_settings
from prompts.routing import ModelRoute

_STAGE: Final = "summary"
_ARTIFACT: Final = '"artifact_id":'
_MARGIN: Final = 0.9  # of the context: tokens are estimated
_TOO_LONG: Final = "The conversation is longer than the model takes, and must not be shortened."


class Past:
    """One run's past: read once, then told within the context of the run's model."""

    def __init__(
        self,
        claim: Claim,
        chosen: ModelRoute,
        host: RunHost,
        prompts: str,
        findings: tuple[ToolOutcome, ...],
        *,
        say: Callable[[Fact], None],
    ) -> None:
        request = claim.request
        self._claim, self._chosen, self._host = claim, chosen, host
        self._findings, self._say = findings, say
        self._prompts = prompts
        self._system = self._told(request.state)
        clients = [ToolSpec(tool.name, tool.description, tool.parameters) for tool in request.tools]
        self._fixed = of_tools((*clients, *host.tools)) + estimate(self._system)
        self._fixed += estimate(injected_context(findings, source="agent_run"))
        self._earlier = SoFar()
        self._summaries = False

    async def read(self) -> SoFar:
        """What the thread holds, as far back as the model can read, or be told in short."""
        claim = self._claim
        self._summaries = self._may_shorten and await app_settings.aget("history_summary") is True
        budget = self._budget(0)
        self._earlier = await outlast(
            lambda: so_far(
                claim.thread_id,
                before=claim.thread_seq,
                run_id=claim.run_id,
                budget=reach(budget) if self._summaries else budget,
                summaries=self._summaries,
                answers=bool(claim.request.answers) or not claim.request.stored,
            )
        )
        return self._earlier

    async def context(self, answers: Sequence[InputMessage]) -> RunContext:
        """What the runner is given; the messages of this run are always in."""
        claim, request, earlier = self._claim, self._claim.request, self._earlier
        state = earlier.state if request.state is None else request.state
        if request.state is None and state:
            self._fixed -= estimate(self._system)
            self._system = self._told(state)
            self._fixed += estimate(self._system)
        leads, own = led(request, earlier)
        leading, new = chat_messages(leads), [*answers, *own]
        if not request.stored:  # the thread does not hold what led to the calls: the request does
            new = [*own, *answers]
        budget = self._budget(of_messages((*leading, *chat_messages(new))))
        opening, old = await self._older(budget)
        said = chat_messages([*old, *new])
        needed = max(1, len(said) - len(chat_messages(old)))
        room = budget - of_messages(opening) + of_messages(said[-needed:])
        kept = window(said, room, needed=needed)
        if not self._may_shorten and (kept.cut or earlier.cut):
            raise RunFailure("provider_context_exceeded", _TOO_LONG)
        conversation = (*leading, *opening, *kept.kept)
        if any(map(_names_artifact, conversation)):
            await self._host.offer_reading()
        return RunContext(
            run_id=claim.run_id,
            thread_id=claim.thread_id,
            user_id=claim.user_id,
            attempt=claim.attempt,
            deadline_at_ms=claim.deadline_at_ms,
            request=request,
            system=self._system,
            conversation=conversation,
            findings=self._findings,
            state=state,
            shows_calls=await app_settings.aget("show_tool_visible") is True,
        )

    @property
    def _may_shorten(self) -> bool:
        """Whether what does not fit the model may be left out, or told in short."""
        return self._claim.request.truncation == "auto"

    def _told(self, state: Any) -> str:
        """The system message with this state."""
        asked = self._claim.request
        form, instructions = form_for(asked.result_mode), asked.instructions
        return system_message(
            self._prompts, asked.tools, asked.context, state, form=form, instructions=instructions
        )

    async def _older(self, budget: int) -> tuple[tuple[ChatMessage, ...], tuple[InputMessage, ...]]:
        """The summary if there is one, and the messages after it."""
        if not self._summaries:
            return (), self._earlier.messages
        begun = time.monotonic()
        made = Summarised(self._claim.thread_id, self._host, budget)
        summary, said = await made.of(self._earlier)
        if made.made_of:
            self._say(events.StageStarted(_STAGE))
            elapsed_ms = round((time.monotonic() - begun) * 1000)
            self._say(events.StageCompleted(_STAGE, elapsed_ms, f"{made.made_of} messages"))
        return as_message(summary), tuple(one.message for one in said)

    def _budget(self, new: int) -> int:
        """Tokens for what was said before this run."""
        size = int((self._chosen.context_tokens or settings.CONTEXT_TOKENS) * _MARGIN)
        limits = [self._claim.request.generation.max_tokens, self._chosen.candidates[0].max_tokens]
        answer = min((limit for limit in limits if limit is not None), default=None)
        return history_budget(size, answer=answer, fixed=self._fixed + new)


def _names_artifact(said: ChatMessage) -> bool:
    """Whether a tool's answer is the head of an artifact, or a call has read on in one."""
    if said.role == "tool":
        return _ARTIFACT in said.content
    return any(call.name == READ for call in said.tool_calls)
