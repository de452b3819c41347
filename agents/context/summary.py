"""The part of a thread that no longer fits the model's context, told in short by the model itself.

It is asked once for what was cut and kept with the thread: the next runs read it. Half of the context
is left free each time, so that it is not asked again at every turn. Where it cannot be asked, what does
not fit is left out as without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from typing import Final
from uuid import UUID

import structlog

from agents.context.model_host import AskingHost
from agents.context.thread import Said, SoFar, Summary, keep_summary
from agents.providers.base import ChatMessage, TextDelta
from agents.requests import Generation
from agents.runners.base import RunFailure
from agents.runners.conversation import chat_messages
from agents.runners.tokens import of_messages
from agents.runners.window import window

log = structlog.get_logger(__name__)

LONGEST: Final = 1_024
_READ_BACK: Final = 3  # times the budget: what is read to be summarised
_ASKED: Final = Generation(max_tokens=LONGEST)
_LONGEST_MESSAGE: Final = 8_000
_PROMPT: Final = (
    "Summarise the conversation below for yourself: you will go on with it and no longer see it. Keep "
    "names, numbers, dates, decisions, wishes of the user, what tools found, and what is still open. "
    "Write in the language of the conversation, at most 400 words, nothing but the summary."
)


def reach(budget: int) -> int:
    """How many tokens of a thread to read where what does not fit is summarised."""
    return budget * _READ_BACK


class Summarised:
    """A thread whose older part is a summary: what the model reads of it."""

    def __init__(self, thread_id: UUID, host: AskingHost, budget: int) -> None:
        self._thread_id = thread_id
        self._host = host.apart(_ASKED)
        self._budget = budget
        self.made_of = 0

    async def of(self, earlier: SoFar) -> tuple[Summary | None, tuple[Said, ...]]:
        """The summary and the messages after it; a new one if these do not fit the budget."""
        whole = of_messages(chat_messages(earlier.messages))
        known = earlier.summary
        if whole + _cost(known) <= self._budget:
            return known, earlier.said
        old, new = _parted(earlier.said, self._budget // 2)
        if not old:
            return known, earlier.said
        text = await self._made(known, old)
        if not text:
            return known, earlier.said
        self.made_of = len(old)
        summary = Summary(text, old[-1].place)
        await keep_summary(self._thread_id, summary)
        return summary, new

    async def _made(self, known: Summary | None, old: Sequence[Said]) -> str:
        """The model's summary; "" if it cannot give one."""
        messages = window(chat_messages([one.message for one in old]), self._budget).kept
        told = [f"Before: {known.text}"] if known else []
        told += [f"{said.role}: {_words(said)}" for said in messages]
        asked = (ChatMessage("system", _PROMPT), ChatMessage("user", "\n\n".join(told)))
        said: list[str] = []
        try:
            async with aclosing(self._host.stream_model(asked)) as events:
                async for event in events:
                    if isinstance(event, TextDelta):
                        said.append(event.text)
        except RunFailure as failure:
            log.warning("no summary", code=failure.code, thread_id=str(self._thread_id))
            return ""
        return "".join(said).strip()


def as_message(summary: Summary | None) -> tuple[ChatMessage, ...]:
    """The summary as the model reads it; what users said stays a user's words."""
    return () if summary is None else (ChatMessage("user", words_of(summary.text)),)


def words_of(text: str) -> str:
    """The summary as it stands in the conversation."""
    return f"<conversation_summary>\n{text}\n</conversation_summary>"


def _cost(summary: Summary | None) -> int:
    return of_messages(as_message(summary))


def _parted(said: Sequence[Said], budget: int) -> tuple[Sequence[Said], tuple[Said, ...]]:
    """What goes into the summary and what stays: from a user's message on, the newest that fit."""
    turns = [place for place, one in enumerate(said) if one.message.role == "user"]
    for place in turns:
        new = said[place:]
        if of_messages(chat_messages([one.message for one in new])) <= budget:
            return said[:place], tuple(new)
    return said, ()


def _words(said: ChatMessage) -> str:
    calls = [f"[{call.name} {call.arguments}]" for call in said.tool_calls]
    whole = " ".join(filter(None, [said.content, *calls]))
    return whole if len(whole) <= _LONGEST_MESSAGE else f"{whole[:_LONGEST_MESSAGE]}…"
