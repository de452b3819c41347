"""History for runners: what was said in the run's own conversation before the run (seed §7.4).

It is the transcript, not what platforms sent: texts are cut at 4,000 characters. A cursor is a place
in the conversation, `{run}.{message}`, by the runs' order and not by that of their rows, as models see
it too. Of a conversation with branches it is the run's own.
"""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from agents import rows
from agents.hostcalls.session import Scene, Session
from agents.hosting import asks, records
from agents.hosting.errors import invalid, unauthorized

MOST: Final = 100
_MOST_FOUND: Final = 50
_LONGEST_QUERY: Final = 200
_ROLES: Final = ("user", "assistant", "tool")
OWN_BRANCH: Final = """(NOT EXISTS (
        SELECT FROM conversations_thread WHERE id = %(thread_id)s AND fork_run_id IS NOT NULL
    ) OR conversations_in_branch(%(run_id)s, run.id))"""
_COLUMNS: Final = f"""
SELECT m.id, m.run_id, m.role, left(m.content, 4000), m.tool_name,
    m.metadata->'tool_agent_output'->>'tool_call_id', m.metadata->'user_message_attachments',
    floor(extract(epoch FROM m.created_at))::bigint, run.thread_seq, m.seq
FROM conversations_message m JOIN conversations_run run ON run.id = m.run_id
WHERE m.thread_id = %(thread_id)s AND m.owner_id = %(user_id)s AND m.seq IS NOT NULL
    AND m.role = ANY(%(roles)s) AND (run.thread_seq, run.id) < (%(now)s, %(run_id)s)
    AND {OWN_BRANCH}
"""
_BACKWARD: Final = f"""
{_COLUMNS} AND (run.thread_seq, m.seq) < (%(before_run)s, %(before)s)
    AND (run.thread_seq, m.seq) > (%(after_run)s, %(after)s)
ORDER BY run.thread_seq DESC, m.seq DESC LIMIT %(limit)s
"""
_FORWARD: Final = _BACKWARD.replace("thread_seq DESC, m.seq DESC", "thread_seq, m.seq")
_SEARCH: Final = f"""
{_COLUMNS} AND conversations_folded(m.content) LIKE conversations_folded(%(like)s)
ORDER BY run.thread_seq DESC, m.seq DESC LIMIT %(limit)s
"""
_BEFORE: Final = f"""
SELECT count(*) FROM (SELECT FROM conversations_message m JOIN conversations_run run ON run.id = m.run_id
    WHERE m.thread_id = %(thread_id)s AND m.owner_id = %(user_id)s AND m.seq IS NOT NULL
        AND m.role = ANY(%(roles)s) AND (run.thread_seq, run.id) < (%(now)s, %(run_id)s)
        AND {OWN_BRANCH}
    LIMIT %(most)s) AS before
"""
_LAST: Final = 999_999_999


async def page(session: Session, ask: asks.PageHistory) -> records.HistoryPage:
    """A page of the conversation: backward the newest first, forward the oldest first."""
    scene = session.scene
    _check_conversation(scene, ask.conversation_id, "History page")
    if ask.limit < 1:
        raise invalid("limit must be > 0")
    limit = min(ask.limit, MOST)
    before = _place(ask.before_cursor, 2**31 - 1)
    after = _place(ask.after_cursor, -1)
    asked = _asked(scene, _ROLES) | {
        "before_run": before[0],
        "before": before[1],
        "after_run": after[0],
        "after": after[1],
        "limit": limit + 1,
    }
    found = await rows.every(_BACKWARD if ask.direction == "backward" else _FORWARD, asked)
    files = ask.include_artifacts or ask.include_attachments
    items = tuple(_item(scene, row, files=files) for row in found[:limit])
    more = len(found) > limit
    return records.HistoryPage(
        items=items,
        next_cursor=items[-1].cursor if items and more else None,
        prev_cursor=items[0].cursor if items else None,
        has_more=more,
    )


async def search(session: Session, ask: asks.SearchHistory) -> records.HistoryFound:
    """What of the conversation holds the query's text, the newest first; case does not count."""
    scene, filters = session.scene, ask.filters or {}
    _check_conversation(scene, filters.get("conversation_id"), "History search")
    if not 0 < len(ask.query.strip()) <= _LONGEST_QUERY or "\x00" in ask.query:
        raise invalid(f"query must have 1 to {_LONGEST_QUERY} characters")
    if ask.top_k < 1:
        raise invalid("top_k must be > 0")
    roles = [role for role in filters.get("roles") or _ROLES if role in _ROLES]
    kinds = filters.get("item_types")
    if kinds and "message" not in kinds:
        return records.HistoryFound(query=ask.query, total_count=0)
    escaped = ask.query.strip().replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    asked = _asked(scene, roles) | {"like": f"%{escaped}%", "limit": min(ask.top_k, _MOST_FOUND)}
    items = tuple(_item(scene, row, files=False) for row in await rows.every(_SEARCH, asked))
    return records.HistoryFound(items=items, total_count=len(items), query=ask.query)


async def count_before(scene: Scene, most: int) -> int:
    """How many messages user and agent said before the run, counted up to `most`."""
    if scene.thread_id is None or scene.thread_seq <= 1:
        return 0
    found = await rows.one(_BEFORE, _asked(scene, _ROLES[:2]) | {"most": most})
    return found[0] if found else 0


def latest_cursor(scene: Scene) -> str | None:
    """The cursor before which stands all that a page may show: that of the run itself."""
    return f"{scene.thread_seq}.{_LAST}" if scene.thread_id else None


def check_conversation(scene: Scene, given: object, api: str) -> UUID:
    """The run's conversation. HostRefusal for another one, and for a run that has none."""
    return _check_conversation(scene, given, api)


def _check_conversation(scene: Scene, given: object, api: str) -> UUID:
    if scene.thread_id is None:
        raise unauthorized(f"{api} is not available without a run conversation")
    if given and str(given).replace("-", "").lower() != scene.thread_id.hex:
        raise unauthorized(f"Conversation {given!s:.100} is not accessible by this run")
    return scene.thread_id


def _asked(scene: Scene, roles: Any) -> dict[str, Any]:
    return {
        "thread_id": scene.thread_id,
        "user_id": scene.user_id,
        "run_id": scene.run_id,
        "now": scene.thread_seq,
        "roles": list(roles),
    }


def _place(cursor: str | None, otherwise: int) -> tuple[int, int]:
    if not cursor:
        return otherwise, otherwise
    run, _, message = cursor.partition(".")
    if not (run.isdecimal() and message.isdecimal() and len(cursor) <= 20):
        raise invalid("A cursor must be one that this API gave.")
    return min(int(run), 2**31 - 1), min(int(message), 2**31 - 1)


def _item(scene: Scene, row: Any, *, files: bool) -> records.TranscriptItem:
    message_id, run_id, role, content, tool, call_id, attached, at, run_seq, seq = row
    conversation = scene.thread_id.hex if scene.thread_id else None
    return records.TranscriptItem(
        transcript_id=message_id.hex,
        event_id=f"{run_id.hex}-1" if role == "user" else f"{run_id.hex}-message-{seq}",
        conversation_id=conversation,
        thread_id=conversation,
        role=role,
        item_type="message",
        content=content,
        content_json={"tool_call_id": call_id, "tool_name": tool} if role == "tool" else None,
        artifact_refs=_refs(attached) if files else [],
        seq=seq,
        cursor=f"{run_seq}.{seq}",
        created_at=at,
    )


def _refs(attached: Any) -> list[dict[str, Any]]:
    listed = [attached] if isinstance(attached, dict) else attached or []
    return [
        {"artifact_id": artifact_id, "artifact_type": "image", "mime_type": one.get("mime_type")}
        for one in listed
        if (artifact_id := file_id(one.get("path", "")))
    ]


def file_id(path: str) -> str:
    """The artifact id of an uploaded file: its name, which is the id of its row."""
    name = path.rpartition("/")[2].partition(".")[0]
    try:
        return f"file-{UUID(name).hex}"
    except ValueError:
        return ""
