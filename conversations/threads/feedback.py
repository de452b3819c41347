"""The caller's feedback on a run of theirs: one judgement per user and run, replaced by a later one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal
from uuid import UUID

import msgspec
from msgspec import Meta, Struct
from psycopg.errors import ForeignKeyViolation

from config import sql
from config.errors import InvalidRequest, NotFound
from config.http.documentation.json_types import Hex, Shown, Time, noted
from conversations.identifiers import uuid7
from conversations.runs import client_queries
from conversations.threads import newest_messages
from conversations.threads.history_message import timestamp

COMMENT_LENGTH: Final = 4_000
TAGS: Final = 20
TAG_LENGTH: Final = 50


_Score = Annotated[Literal[-1, 0, 1], noted("1: good, -1: bad, 0: neutral.")]
_Comment = Annotated[str, Meta(max_length=COMMENT_LENGTH)]
_Tag = Annotated[str, Meta(min_length=1, max_length=TAG_LENGTH)]
_Tags = Annotated[list[_Tag], Meta(max_length=TAGS)]


class NewFeedback(Struct, frozen=True, forbid_unknown_fields=True):
    """A client's judgement of a run, as it is sent."""

    score: _Score
    comment: _Comment | None = None
    tags: _Tags | None = None


class Judgement(Struct, frozen=True):
    """A user's feedback on a run."""

    score: int
    comment: str = ""
    tags: list[str] = []


class Feedback(Shown, frozen=True):
    """A user's feedback as it is shown."""

    run_id: Hex
    score: _Score
    comment: str
    tags: list[str]
    created_at: Time
    updated_at: Time


_SENTENCES: Final = {
    "score": "score must be 1 (good), -1 (bad) or 0 (neither).",
    "comment": f"comment must be a text of at most {COMMENT_LENGTH} characters.",
    "tags": f"tags must be a list of at most {TAGS} texts of 1 to {TAG_LENGTH} characters.",
}


def parse_judgement(body: dict[str, Any]) -> Judgement:
    """Return a client's `{score, comment, tags}`. Raise InvalidRequest (`invalid_feedback`)."""
    if unknown := sorted(body.keys() - _SENTENCES.keys()):
        raise _invalid(f"Send score, comment and tags; {unknown[0]} is none of them.")
    score = body.get("score")
    if isinstance(score, float) and score.is_integer():  # JSON has one kind of number
        body = body | {"score": int(score)}
    try:
        given = msgspec.convert(body, NewFeedback)
    except msgspec.ValidationError as error:
        named = next((name for name in _SENTENCES if f"$.{name}" in str(error)), "score")
        raise _invalid(_SENTENCES[named]) from None
    tags = [tag.strip() for tag in given.tags or ()]
    if not all(tags):
        raise _invalid(_SENTENCES["tags"])
    return Judgement(given.score, (given.comment or "").strip(), list(dict.fromkeys(tags)))


def _invalid(detail: str) -> InvalidRequest:
    return InvalidRequest(detail, code="invalid_feedback")


_COLUMNS: Final = "run_id, score, comment, tags, created_at, updated_at"
_GIVE: Final = f"""
INSERT INTO conversations_feedback (id, run_id, user_id, score, comment, tags, created_at, updated_at)
VALUES (%(id)s, %(run_id)s, %(user_id)s, %(score)s, %(comment)s, %(tags)s, now(), now())
ON CONFLICT (run_id, user_id) DO UPDATE SET score = excluded.score, comment = excluded.comment,
    tags = excluded.tags, updated_at = excluded.updated_at
RETURNING {_COLUMNS}, xmax = 0
"""


async def record_feedback(run: str, judgement: Judgement, *, user_id: UUID) -> tuple[Feedback, bool]:
    """Store the user's feedback. Return it, and whether it is new. Raise NotFound for a foreign run."""
    row = await client_queries.fetch_run(run, user_id=user_id)
    keys = {"id": uuid7(), "run_id": row.run_id, "user_id": user_id}
    arguments = keys | msgspec.structs.asdict(judgement)
    try:
        stored = await sql.one(_GIVE, arguments)
    except ForeignKeyViolation:  # deleted a moment ago
        raise client_queries.run_not_found() from None
    if stored is None:
        raise client_queries.run_not_found()
    *columns, is_new = stored
    return _show(columns), bool(is_new)


_READ: Final = f"SELECT {_COLUMNS} FROM conversations_feedback WHERE run_id = %s AND user_id = %s"
_WITHDRAW: Final = "DELETE FROM conversations_feedback WHERE run_id = %s AND user_id = %s"


async def fetch_feedback(run: str, *, user_id: UUID) -> Feedback:
    """Return the user's feedback on their run. Raise NotFound for a foreign run or without feedback."""
    row = await client_queries.fetch_run(run, user_id=user_id)
    found = await sql.one(_READ, (row.run_id, user_id))
    if found is None:
        raise NotFound("You have given no feedback on this run.", code="feedback_not_found")
    return _show(found)


async def delete_feedback(run: str, *, user_id: UUID) -> None:
    """Delete the user's feedback on their run, if any. Raise NotFound for a foreign run."""
    row = await client_queries.fetch_run(run, user_id=user_id)
    await sql.change(_WITHDRAW, (row.run_id, user_id))


_OF_THREAD: Final = f"""
SELECT {_COLUMNS} FROM conversations_feedback WHERE user_id = %(user_id)s AND run_id IN (
    SELECT id FROM conversations_run WHERE thread_id = %(thread_id)s AND owner_id = %(user_id)s
    ORDER BY thread_seq DESC LIMIT {newest_messages.MOST})
"""


async def list_feedback_of_thread(thread_id: UUID, *, user_id: UUID) -> list[Feedback]:
    """Return the user's feedback on the newest runs of their thread."""
    rows = await sql.every(_OF_THREAD, {"thread_id": thread_id, "user_id": user_id})
    return [_show(row) for row in rows]


def _show(row: Sequence[Any]) -> Feedback:
    """Return the judgement in `_COLUMNS` of a row."""
    run_id, score, comment, tags, created_at, updated_at = row
    return Feedback(run_id.hex, score, comment, tags, timestamp(created_at), timestamp(updated_at))
