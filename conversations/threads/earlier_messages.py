"""A conversation's messages before a run's input, by their places, for runners (seed §7.4).

Texts are cut. A place follows the order of runs and not that of their rows, as for models. Messages
that a client sends beside the run's input are before it; of a conversation with branches only the
run's own branch is read.
"""

from __future__ import annotations

import unicodedata
from typing import Any, Final, NamedTuple
from uuid import UUID

from config import sql
from conversations.threads.branches import OWN_BRANCH

CALL: Final = 0
SAID: Final = 1
LONGEST: Final = 4_000
LONGEST_ANSWER: Final = 16_000
_FOLDED: Final = 20_000
RowPlace = tuple[int, int, int]
"""A run's place in its thread, a message's in the thread, and a part of it (CALL or SAID)."""
_BEFORE_INPUT: Final = f"""
m.thread_id = %(thread_id)s AND m.owner_id = %(user_id)s AND m.seq IS NOT NULL
    AND m.role = ANY(%(roles)s) AND run.thread_id = %(thread_id)s
    AND (run.thread_seq, run.id) <= (%(now)s, %(run_id)s)
    AND NOT (m.run_id = %(run_id)s AND m.seq = %(input_seq)s) AND {OWN_BRANCH}
"""
_COLUMNS: Final = f"""
m.run_id, run.thread_seq, m.seq, part.number, m.id, m.role, left(m.content, {LONGEST}),
    floor(extract(epoch FROM m.created_at))::bigint, m.metadata->'user_message_attachments',
    m.metadata->'tool_calls', m.tool_name, m.metadata->'tool_agent_output'->>'tool_call_id',
    m.metadata->'tool_arguments',
    left(coalesce(m.metadata->'tool_agent_output'->>'result', m.metadata->'tool_agent_output'->>'error'),
        {LONGEST_ANSWER}), m.run_id = %(run_id)s
"""
# the row of our tool holds its call too, unless an earlier run made that and its message stands
_PARTS: Final = f"""
CROSS JOIN LATERAL generate_series(CASE WHEN m.role = 'tool' AND m.metadata ? 'tool_arguments'
    AND NOT m.metadata->'tool_agent_output' ? 'asked_in' THEN {CALL} ELSE {SAID} END, {SAID})
    AS part(number)
"""
_BACKWARD: Final = f"""
SELECT {_COLUMNS} FROM conversations_message m JOIN conversations_run run ON run.id = m.run_id {_PARTS}
WHERE {_BEFORE_INPUT} AND run.thread_seq BETWEEN %(first_run)s AND %(last_run)s
    AND (run.thread_seq, m.seq, part.number) < (%(last_run)s, %(last)s, %(last_part)s)
    AND (run.thread_seq, m.seq, part.number) > (%(first_run)s, %(first)s, %(first_part)s)
ORDER BY run.thread_seq DESC, m.seq DESC, part.number DESC LIMIT %(limit)s
"""
_FORWARD: Final = _BACKWARD.replace(" DESC", "")
_SEARCH: Final = f"""
SELECT {_COLUMNS} FROM conversations_message m JOIN conversations_run run ON run.id = m.run_id
    CROSS JOIN (VALUES ({SAID})) AS part(number)
WHERE {_BEFORE_INPUT} AND conversations_folded(m.content) LIKE conversations_folded(%(like)s)
ORDER BY run.thread_seq DESC, m.seq DESC LIMIT %(limit)s
"""
_COUNT: Final = f"""
SELECT count(*) FROM (
    SELECT FROM conversations_message m JOIN conversations_run run ON run.id = m.run_id
    WHERE {_BEFORE_INPUT} AND m.content <> '' LIMIT %(most)s
) AS before
"""


class MessageRow(NamedTuple):
    """A message, or with the part CALL the call that the row of a tool's answer holds too."""

    run_id: UUID
    run_seq: int
    seq: int
    part: int
    message_id: UUID | None
    role: str
    content: str
    at: int | None
    attached: Any = None
    calls: Any = None
    tool_name: str | None = None
    call_id: str | None = None
    arguments: Any = None
    answer: str | None = None
    own: bool = False

    @property
    def place(self) -> RowPlace:
        return self.run_seq, self.seq, self.part

    @property
    def call_ids(self) -> set[str]:
        """Return the ids of the calls that it makes."""
        if self.part == CALL:
            return {self.call_id or ""}
        return {call["id"] for call in self.calls or ()}


class BeforeInput(NamedTuple):
    """A run, `now` its number in the thread, and the place of its input; -1 for none."""

    thread_id: UUID | None
    user_id: UUID
    run_id: UUID
    now: int
    input_seq: int


async def fetch_backward(
    before: BeforeInput, first: RowPlace, last: RowPlace, *, roles: list[str], limit: int
) -> list[MessageRow]:
    """Return the newest rows between these places, newest first."""
    return await _fetch_rows(_BACKWARD, before, roles, _bounds(first, last) | {"limit": limit})


async def fetch_forward(
    before: BeforeInput, first: RowPlace, last: RowPlace, *, roles: list[str], limit: int
) -> list[MessageRow]:
    """Return the oldest rows between these places, oldest first."""
    return await _fetch_rows(_FORWARD, before, roles, _bounds(first, last) | {"limit": limit})


async def search_rows(
    before: BeforeInput, text: str, *, roles: list[str], limit: int
) -> list[MessageRow]:
    """Return the rows that contain the text in any case, newest first."""
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return await _fetch_rows(_SEARCH, before, roles, {"like": f"%{escaped}%", "limit": limit})


async def count_rows(before: BeforeInput, *, roles: list[str], most: int) -> int:
    """Return how many messages with words there are, counted up to `most`."""
    found = await sql.one(_COUNT, before._asdict() | {"roles": roles, "most": most})
    return int(found[0]) if found else 0


def normalize_text(text: str) -> str:
    """Return the text as the database's `conversations_folded` compares it."""
    return unicodedata.normalize("NFKC", text[:_FOLDED]).lower()


async def _fetch_rows(
    statement: str, before: BeforeInput, roles: list[str], more: dict[str, Any]
) -> list[MessageRow]:
    found = await sql.every(statement, before._asdict() | {"roles": roles} | more)
    return [MessageRow(*row) for row in found]


def _bounds(first: RowPlace, last: RowPlace) -> dict[str, int]:
    names = ("first_run", "first", "first_part", "last_run", "last", "last_part")
    return dict(zip(names, (*first, *last), strict=True))
