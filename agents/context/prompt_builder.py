"""Put together what a runner reads: system message, as much of the thread as fits, and the request."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from django.conf import settings
from msgspec.structs import replace

from agents.context import attached_texts
from agents.context.model_host import ModelHost
from agents.context.summary import READ_BACK, SummarisedThread, summary_messages
from agents.context.thread_history import Summary, ThreadHistory, read_history, separate_leading
from agents.providers.base import ChatMessage, ToolSpec
from agents.requests import Claim, InputMessage
from agents.runners.base import RunContext, RunFailure, ToolOutcome
from agents.runners.conversation import chat_messages
from agents.runners.injection import injected_context
from agents.runners.system_message import system_message
from agents.runners.thinkingml import form_instructions
from agents.runners.tokens import of_messages, of_tools
from agents.runners.window import fit_window, history_budget
from agents.tools.large_results import READ
from conversations import events
from conversations.events import Fact
from conversations.log.retry import retry_until_answered
from prompts import app_settings
from prompts.endpoints.routing import ModelRoute
from prompts.wordings.token_estimate import estimate

_STAGE: Final = "summary"
_ARTIFACT: Final = '"artifact_id":'
_BYTES_A_TOKEN: Final = 8  # of documents to read per token of a budget: rather too many than too few
_MARGIN: Final = 0.9  # of the context: token counts are estimates
_TOO_LONG: Final = "The conversation is longer than the model takes, and must not be shortened."


class PromptBuilder:
    """What one run's model reads: the thread is read once, then cut to the model's context."""

    def __init__(
        self,
        claim: Claim,
        route: ModelRoute,
        host: ModelHost,
        prompts: str,
        findings: tuple[ToolOutcome, ...],
        *,
        log_fact: Callable[[Fact], None],
    ) -> None:
        request = claim.request
        self._claim, self._route, self._host = claim, route, host
        self._findings, self._log_fact = findings, log_fact
        self._prompts = prompts
        self._system = self._compose_system(request.state)
        clients = [ToolSpec(tool.name, tool.description, tool.parameters) for tool in request.tools]
        self._fixed = of_tools((*clients, *host.tools)) + estimate(self._system)
        self._fixed += estimate(injected_context(findings, source="agent_run"))
        self._earlier = ThreadHistory()
        self._summaries = False

    async def read(self) -> ThreadHistory:
        """Read the thread as far back as the model can read it, or read a summary of it."""
        claim = self._claim
        self._summaries = self._may_shorten and await app_settings.aget("history_summary") is True
        budget = self._budget(0) * (READ_BACK if self._summaries else 1)
        earlier = await retry_until_answered(
            read_history,
            claim.thread_id,
            before=claim.thread_seq,
            run_id=claim.run_id,
            budget=budget,
            summaries=self._summaries,
            answers=bool(claim.request.answers) or not claim.request.stored,
        )
        messages = await attached_texts.with_document_texts(
            earlier.messages, room=budget * _BYTES_A_TOKEN
        )
        with_texts = tuple(
            replace(one, message=message) for one, message in zip(earlier.placed, messages, strict=True)
        )
        self._earlier = replace(earlier, placed=with_texts)
        return self._earlier

    async def context(self, answers: Sequence[InputMessage]) -> RunContext:
        """Return the context for the runner; it always contains the messages of this run."""
        claim, request, earlier = self._claim, self._claim.request, self._earlier
        state = earlier.state if request.state is None else request.state
        if request.state is None and state:
            self._fixed -= estimate(self._system)
            self._system = self._compose_system(state)
            self._fixed += estimate(self._system)
        leads, own = separate_leading(request, earlier)
        own = await attached_texts.with_document_texts(own)
        leading, new = chat_messages(leads), [*answers, *own]
        if not request.stored:  # the request holds the messages before the calls, the thread does not
            new = [*own, *answers]
        budget = self._budget(of_messages((*leading, *chat_messages(new))))
        summary, old = await self._older(budget)
        opening = summary_messages(summary)
        messages = chat_messages([*old, *new])
        needed = max(1, len(messages) - len(chat_messages(old)))
        room = budget - of_messages(opening) + of_messages(messages[-needed:])
        kept = fit_window(messages, room, needed=needed)
        if not self._may_shorten and (kept.cut or earlier.cut):
            raise RunFailure("provider_context_exceeded", _TOO_LONG)
        conversation = (*leading, *opening, *kept.messages)
        if any(map(_names_artifact, conversation)):
            await self._host.offer_artifact_tool()
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
            summary=summary.text if summary else "",
        )

    @property
    def _may_shorten(self) -> bool:
        """Whether messages that do not fit the model may be left out or summarised."""
        return self._claim.request.truncation == "auto"

    def _compose_system(self, state: Any) -> str:
        """Return the system message with this state."""
        request = self._claim.request
        form, instructions = form_instructions(request.result_mode), request.instructions
        return system_message(
            self._prompts, request.tools, request.context, state, form=form, instructions=instructions
        )

    async def _older(self, budget: int) -> tuple[Summary | None, tuple[InputMessage, ...]]:
        """Return the summary, if there is one, and the messages after it."""
        if not self._summaries:
            return None, self._earlier.messages
        begun = time.monotonic()
        made = SummarisedThread(self._claim.thread_id, self._host, budget)
        summary, rest = await made.split(self._earlier)
        if made.summarised_count:
            self._log_fact(events.StageStarted(_STAGE))
            elapsed_ms = round((time.monotonic() - begun) * 1000)
            self._log_fact(
                events.StageCompleted(_STAGE, elapsed_ms, f"{made.summarised_count} messages")
            )
        return summary, tuple(one.message for one in rest)

    def _budget(self, new: int) -> int:
        """Return how many tokens are left for the messages before this run."""
        size = int((self._route.context_tokens or settings.CONTEXT_TOKENS) * _MARGIN)
        limits = [self._claim.request.generation.max_tokens, self._route.candidates[0].max_tokens]
        answer = min((limit for limit in limits if limit is not None), default=None)
        return history_budget(size, answer=answer, fixed=self._fixed + new)


def _names_artifact(message: ChatMessage) -> bool:
    """Return whether the message is a tool's answer with an artifact, or a call that read on in one."""
    if message.role == "tool":
        return _ARTIFACT in message.content
    return any(call.name == READ for call in message.tool_calls)
