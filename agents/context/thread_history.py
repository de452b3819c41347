"""Read what a run goes on from: the messages of its thread, as far back as it can use, and the state.

The thread is read backwards, page by page, until there is as much as the model's context takes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final, cast
from uuid import UUID

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agents.requests import AskedCall, Attachment, InputMessage, Role, RunRequest
from config import database
from conversations.log.redaction_hook import find_redact
from conversations.threads import branches, model_messages
from conversations.threads.branches import LEADING, leading_place, split_leading
from conversations.threads.model_messages import EarlierMessage, MessagePlace
from prompts.wordings.token_estimate import estimate

MOST_MESSAGES: Final = 1_000
_FIRST_PAGE: Final = 40
_GROWTH: Final = 4
_OF_MESSAGE: Final = 4
_BYTES_A_TOKEN: Final = 4
_ENDLESS: Final = 2**31 - 1


class Summary(Struct, frozen=True):
    """A short version of a thread up to a place (run's place, run, message's place)."""

    text: str
    place: MessagePlace


class PlacedMessage(Struct, frozen=True):
    """A message of an earlier run, and its place in the thread."""

    message: InputMessage
    place: MessagePlace


class ThreadHistory(Struct, frozen=True):
    """The content of a thread when a run begins; `interrupted` if calls wait, or waited, for approval.

    `leading` are the system messages that lead it, of which nothing else is in `placed`; `cut` if there
    is more, which was not read.
    """

    placed: tuple[PlacedMessage, ...] = ()
    state: Any = None
    interrupted: bool = False
    summary: Summary | None = None
    leading: tuple[InputMessage, ...] = ()
    cut: bool = False

    @property
    def messages(self) -> tuple[InputMessage, ...]:
        return tuple(one.message for one in self.placed)


async def read_history(
    thread_id: UUID,
    *,
    before: int,
    run_id: UUID,
    budget: int,
    summaries: bool = False,
    answers: bool = False,
) -> ThreadHistory:
    """Read the messages of the thread before the run, and its state.

    The messages are the newest that come to `budget` tokens or a little more, at most `MOST_MESSAGES`;
    with `summaries` none that the thread's summary covers. A run that `answers` calls has messages
    before it even if the thread holds none of them (`stored`).
    """
    if before <= 1 and not answers:
        return ThreadHistory()
    async with database.connection() as connection:
        state, interrupted, stored, branched = await model_messages.fetch_context(
            connection, thread_id, run_id
        )
        summary = msgspec.convert(stored, Summary) if summaries and stored else None
        if branched:
            state = await branches.fetch_state(connection, thread_id, run_id)
            summarised_until = summary.place[1] if summary else None
            own = await model_messages.check_own_branch(
                connection, thread_id, run_id, told=summarised_until
            )
            interrupted, summary = own[0], summary if own[1] else None
        pages = partial(
            model_messages.fetch_page, connection, thread_id, run_id, seq=before, branched=branched
        )
        since = summary.place if summary else model_messages.BEGINNING
        messages, cut = await _backwards(pages, (before, run_id, _ENDLESS), since, budget)
    leading, rest = split_leading(messages, _mark, _is_system)
    shown = tuple(one.message for one in leading if one.message.content)
    return ThreadHistory(tuple(rest), state, interrupted, summary, shown, cut)


def separate_leading(
    request: RunRequest, history: ThreadHistory
) -> tuple[tuple[InputMessage, ...], tuple[InputMessage, ...]]:
    """Return the system messages that lead the run's conversation, and the request's other messages."""
    marked, own = split_leading(request.messages, _place, lambda _: False)
    leading = tuple(one for one in marked if one.content) if marked else history.leading
    return request.leading or leading, tuple(own)


def _place(message: InputMessage) -> int:
    return leading_place(message.metadata)


def _mark(entry: PlacedMessage) -> int:
    return _place(entry.message)


def _is_system(entry: PlacedMessage) -> bool:
    return entry.message.role in ("system", "developer")


async def keep_summary(thread_id: UUID, summary: Summary) -> None:
    """Keep the summary with the thread; it is deleted with it."""
    if (redact := find_redact()) is not None:
        summary = replace(summary, text=redact(summary.text))
    await model_messages.store_summary(thread_id, msgspec.json.encode(summary).decode())


async def messages_of_run(run_id: UUID, *, owner_id: UUID) -> list[tuple[UUID, InputMessage]]:
    """Return the client's messages of this run, each with the id of its row."""
    rows = await model_messages.fetch_input_messages(run_id, owner_id=owner_id)
    return [(row_id, _message(row)) for row_id, row in rows]


async def find_messages(
    ids: Sequence[UUID], names: Sequence[str], *, owner_id: UUID
) -> dict[str | UUID, InputMessage]:
    """Return the owner's messages by id and by client id.

    They are those with these ids, and of these runs those with these names.
    """
    found: dict[str | UUID, InputMessage] = {}
    for row_id, row in await model_messages.fetch_messages_by_id(ids, names, owner_id=owner_id):
        message = _message(row)
        found[row_id] = message
        found[message.client_id or row_id] = message
    return found


async def _backwards(
    pages: Callable[..., Awaitable[list[tuple[MessagePlace, EarlierMessage]]]],
    before: MessagePlace,
    since: MessagePlace,
    budget: int,
) -> tuple[tuple[PlacedMessage, ...], bool]:
    """Read pages, each larger than the last, until the budget is reached.

    Return the messages in the order of the thread, and whether there may be more.
    """
    found: list[PlacedMessage] = []
    size = _FIRST_PAGE
    while True:
        rows = await pages(after=since, before=before, limit=size)
        for place, row in rows:
            found.append(PlacedMessage(_message(row), place))
            budget -= _cost(found[-1].message)
        if len(rows) < size or budget < 0 or len(found) >= MOST_MESSAGES:
            return tuple(reversed(found)), len(rows) == size
        before, size = found[-1].place, min(size * _GROWTH, MOST_MESSAGES - len(found))


def _cost(message: InputMessage) -> int:
    calls = sum(estimate(call.arguments) for call in message.tool_calls)
    files = sum(file.size for file in message.attachments) // _BYTES_A_TOKEN
    return _OF_MESSAGE + estimate(message.content) + calls + files


def _message(row: EarlierMessage) -> InputMessage:
    """Return a row as the client's own message of the same kind would be."""
    files = [row.attachments] if isinstance(row.attachments, dict) else row.attachments or []
    message = InputMessage(
        cast("Role", row.role),
        row.content,
        row.client_id,
        attachments=tuple(msgspec.convert(file, Attachment) for file in files),
        layout=tuple(row.layout or ()),
        reasoning=tuple(row.reasoning or ()),
    )
    if row.role == "tool":
        answer = row.answer
        return replace(
            message,
            content=answer if isinstance(answer, str) else msgspec.json.encode(answer).decode(),
            name=row.tool_name,
            tool_call_id=row.call_id,
            tool_calls=_own_call(row.call_id, row.tool_name, row.arguments),
        )
    return replace(
        message,
        tool_calls=tuple(msgspec.convert(call, AskedCall) for call in row.calls or ()),
        metadata={LEADING: row.leading} if row.leading else {},
    )


def _own_call(
    call_id: str | None, tool_name: str | None, arguments: dict[str, Any] | None
) -> tuple[AskedCall, ...]:
    """Return the call that a server tool's answer belongs to; both are in the same row."""
    if call_id is None or tool_name is None or arguments is None:
        return ()
    return (AskedCall(call_id, tool_name, msgspec.json.encode(arguments).decode()),)
