"""Search in all users' conversations, for staff: those that hold every word of a query.

As in `search` the newest messages are walked over first, so a common word is found among them at
once; only a rare word needs the index. No step reads more than some hundreds or thousands of
messages: comparing one takes about 50 µs.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from config import sql
from conversations.threads.search_terms import Terms, make_terms

LONGEST: Final = 200
_ENOUGH: Final = 50
_MOST: Final = 500
_WINDOWS: Final = ((0, 500), (500, 1_500))
_LOOKED_AT: Final = 2_000
_HOLDS: Final = """
conversations_folded(content) LIKE ALL(%(rough)s) AND conversations_spaced(content) LIKE ALL(%(exact)s)
"""
_WALK: Final = f"""
SELECT DISTINCT thread_id FROM (
    SELECT thread_id, content FROM conversations_message WHERE role IN ('user', 'assistant')
    ORDER BY id DESC OFFSET %(past)s LIMIT %(window)s
) newest WHERE {_HOLDS} LIMIT {_MOST}
"""
_INDEXED: Final = f"""
SELECT DISTINCT thread_id FROM (
    SELECT thread_id, content FROM conversations_message
    WHERE conversations_tokens(owner_id, content) @@ %(tsquery)s::tsquery
    AND role IN ('user', 'assistant') LIMIT {_LOOKED_AT}
) held WHERE {_HOLDS} LIMIT {_MOST}
"""


def find_threads_holding(query: str) -> list[UUID]:
    """Return the ids of conversations with a message that holds every term; of many the newest."""
    text = query.replace("\x00", "").strip()[:LONGEST]
    ((spaced,),) = sql.fetch("SELECT conversations_spaced(%s)", [text])
    terms = make_terms(spaced)
    if not terms.texts:
        return []
    found: dict[UUID, None] = {}
    for past, window in _WINDOWS:
        found |= _ids(_WALK, terms, past=past, window=window)
        if len(found) >= _ENOUGH:
            return list(found)
    return list(found | _ids(_INDEXED, terms))


def _ids(statement: str, terms: Terms, **window: int) -> dict[UUID, None]:
    of_nobody = terms.tsquery("nobody").partition(" & ")[2]  # the first key is the owner
    arguments = {"rough": terms.rough, "exact": terms.exact, "tsquery": of_nobody}
    return {thread_id: None for (thread_id,) in sql.fetch(statement, arguments | window)}
