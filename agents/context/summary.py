"""The part of a thread that no longer fits the model's context, summarised by the model itself.

The model is asked once for the messages that were cut, and the thread keeps the summary for the next
runs. A new summary leaves half of the context free, so that not every turn needs another. If the model
gives none, messages that do not fit are left out as without summaries.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from typing import Final
from uuid import UUID

import structlog

from agents.context.model_host import ModelHost
from agents.context.thread_history import PlacedMessage, Summary, ThreadHistory, keep_summary
from agents.providers.base import ChatMessage, TextDelta
from agents.requests import Generation
from agents.runners.base import RunFailure
from agents.runners.conversation import chat_messages
from agents.runners.tokens import of_messages
from agents.runners.window import fit_window

log = structlog.get_logger(__name__)

MAX_TOKENS: Final = 1_024
READ_BACK: Final = 3  # times the budget: how much is read in order to be summarised
_PARAMETERS: Final = Generation(max_tokens=MAX_TOKENS)
_LONGEST_MESSAGE: Final = 8_000
_PROMPT: Final = (
    "Summarise the conversation below for yourself: you will go on with it and no longer see it. Keep "
    "names, numbers, dates, decisions, wishes of the user, what tools found, and what is still open. "
    "Write in the language of the conversation, at most 400 words, nothing but the summary."
)


class SummarisedThread:
    """A thread whose older part is a summary: what the model reads of it."""

    def __init__(self, thread_id: UUID, host: ModelHost, budget: int) -> None:
        self._thread_id = thread_id
        self._host = host.with_parameters(_PARAMETERS)
        self._budget = budget
        self.summarised_count = 0

    async def split(self, earlier: ThreadHistory) -> tuple[Summary | None, tuple[PlacedMessage, ...]]:
        """Return the summary and the messages after it; make a new one if they exceed the budget."""
        whole = of_messages(chat_messages(earlier.messages))
        known = earlier.summary
        if whole + _cost(known) <= self._budget:
            return known, earlier.placed
        old, new = _split(earlier.placed, self._budget // 2)
        text = await self._made(known, old) if old else ""
        if not text:
            return known, earlier.placed
        self.summarised_count = len(old)
        summary = Summary(text, old[-1].place)
        await keep_summary(self._thread_id, summary)
        return summary, new

    async def _made(self, known: Summary | None, old: Sequence[PlacedMessage]) -> str:
        """Return the model's summary, or "" if it gives none."""
        messages = fit_window(chat_messages([one.message for one in old]), self._budget).messages
        paragraphs = [f"Before: {known.text}"] if known else []
        paragraphs += [f"{message.role}: {_words(message)}" for message in messages]
        request = (ChatMessage("system", _PROMPT), ChatMessage("user", "\n\n".join(paragraphs)))
        try:
            async with aclosing(self._host.stream_model(request)) as groups:
                said = [event async for group in groups for event in group]
        except RunFailure as failure:
            log.warning("no summary", code=failure.code, thread_id=str(self._thread_id))
            return ""
        return "".join(event.text for event in said if isinstance(event, TextDelta)).strip()


def summary_messages(summary: Summary | None) -> tuple[ChatMessage, ...]:
    """Return the summary as a message for the model; as a user's, because it repeats words of users."""
    return () if summary is None else (ChatMessage("user", wrap_summary(summary.text)),)


def wrap_summary(text: str) -> str:
    """Return the summary in the form that it has in the conversation."""
    return f"<conversation_summary>\n{text}\n</conversation_summary>"


def _cost(summary: Summary | None) -> int:
    return of_messages(summary_messages(summary))


def _split(
    messages: Sequence[PlacedMessage], budget: int
) -> tuple[Sequence[PlacedMessage], tuple[PlacedMessage, ...]]:
    """Split off the newest messages that fit, beginning with a user's; the others are summarised."""
    turns = [place for place, one in enumerate(messages) if one.message.role == "user"]
    for place in turns:
        new = messages[place:]
        if of_messages(chat_messages([one.message for one in new])) <= budget:
            return messages[:place], tuple(new)
    return messages, ()


def _words(message: ChatMessage) -> str:
    calls = [f"[{call.name} {call.arguments}]" for call in message.tool_calls]
    whole = " ".join(filter(None, [message.content, *calls]))
    return whole if len(whole) <= _LONGEST_MESSAGE else f"{whole[:_LONGEST_MESSAGE]}…"
