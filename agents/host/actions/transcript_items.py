"""Messages as items of a runner's history (`TranscriptItem`), in the order in which a model reads them.

A call of one of Parley's tools and its answer are one row, but two items, the assistant's call and the
answer, because a provider refuses an answer without its call. `content_json` is the message itself if
it is more than its text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from agents.host_protocol import replies
from agents.host_protocol.messages import Message, tool_call
from conversations.identifiers import uuid_of
from conversations.threads.earlier_messages import CALL, SAID, MessageRow

KINDS: Final = {"user": "message", "assistant": "message", "tool": "tool_result"}


def whole_turns(rows: Sequence[MessageRow]) -> list[MessageRow]:
    """Return a page, newest first, without the answers at its end: their calls begin the next page."""
    made = {call for row in rows for call in row.call_ids}
    end = len(rows)
    while end and _is_lone(rows[end - 1], made):
        end -= 1
    return list(rows[: end or len(rows)])


def without_unanswered_calls(rows: Sequence[MessageRow]) -> list[MessageRow]:
    """Return the newest rows without calls that have no answer."""
    answers = {row.call_id for row in rows if _is_answer(row)}
    kept = [_with_calls(row, answers) for row in rows]
    return [
        row for row in kept if row.content or row.attached or row.call_ids or row.role != "assistant"
    ]


def without_lone_answers(rows: Sequence[MessageRow], *, forward: bool) -> list[MessageRow]:
    """Return the oldest rows without answers that have no call."""
    made: set[str] = set()
    kept: list[MessageRow] = []
    for row in rows if forward else reversed(rows):
        if not _is_lone(row, made):
            made |= row.call_ids
            kept.append(row)
    return kept if forward else kept[::-1]


def _is_answer(row: MessageRow) -> bool:
    return row.role == "tool" and row.part == SAID


def _is_lone(row: MessageRow, made: set[str]) -> bool:
    return _is_answer(row) and row.call_id not in made


def _with_calls(row: MessageRow, answers: set[str | None]) -> MessageRow:
    if not row.calls:
        return row
    return row._replace(calls=[call for call in row.calls if call["id"] in answers])


def items(
    rows: Iterable[MessageRow], conversation: str | None, *, files: bool
) -> tuple[replies.TranscriptItem, ...]:
    """Return the rows as items for a runner."""
    return tuple(_item(row, conversation, files=files) for row in rows)


def _item(row: MessageRow, conversation: str | None, *, files: bool) -> replies.TranscriptItem:
    message = _message(row)
    place = f"{row.run_id.hex}-message-{row.seq}"
    return replies.TranscriptItem(
        transcript_id=_id(row, place),
        event_id=f"{row.run_id.hex}-1" if row.role == "user" and not row.own else place,
        conversation_id=conversation,
        thread_id=conversation,
        role="assistant" if row.part == CALL else row.role,
        item_type="tool_call" if row.call_ids else KINDS[row.role],
        content="" if row.part == CALL else row.content,
        content_json=None if message is None else msgspec.to_builtins(message),
        artifact_refs=_refs(row.attached) if files else [],
        seq=row.seq,
        cursor=cursor(row),
        created_at=row.at,
        metadata={"tool_name": row.tool_name} if row.tool_name else {},
    )


def _id(row: MessageRow, place: str) -> str:
    own = row.message_id.hex if row.message_id else place
    return f"{own}-call" if row.part == CALL else own


def cursor(row: MessageRow) -> str:
    """Return the cursor: `{run}.{message}`, with `.0` for the call in an answer's row."""
    return f"{row.run_seq}.{row.seq}" if row.part == SAID else f"{row.run_seq}.{row.seq}.{row.part}"


def _message(row: MessageRow) -> Message | None:
    """Return the message if it is more than its text."""
    if row.part == CALL:
        arguments = msgspec.json.encode(row.arguments or {}).decode()
        call = tool_call(row.call_id or "", row.tool_name or "", arguments)
        return Message(role="assistant", content="", tool_calls=[call])
    if row.role == "tool":
        return Message(role="tool", content=row.answer or row.content, tool_call_id=row.call_id)
    if row.calls:
        calls = [tool_call(call["id"], call["name"], call["arguments"]) for call in row.calls]
        return Message(role=row.role, content=row.content, tool_calls=calls)
    return None


def _refs(attached: Any) -> list[dict[str, Any]]:
    listed = [attached] if isinstance(attached, dict) else attached or []
    return [
        {
            "artifact_id": artifact_id,
            "artifact_type": "file" if one.get("name") else "image",
            "mime_type": one.get("mime_type"),
        }
        for one in listed
        if (artifact_id := file_id(one.get("path", "")))
    ]


def file_id(path: str) -> str:
    """Return the artifact id of an uploaded file: its name, which is the id of its row."""
    upload_id = uuid_of(path.rpartition("/")[2].partition(".")[0])
    return f"file-{upload_id.hex}" if upload_id else ""
