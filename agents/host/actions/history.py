"""History for runners: the messages of the run's conversation before its input (seed §7.4).

It is the transcript, not the platforms' messages: texts are cut at 4,000 characters. Messages that a
client sends beside the run's input are part of it. A cursor is a place in the conversation,
`{run}.{message}`; the order is that of the runs, as models read it, and not that of their rows. In a
conversation with branches the history is that of the run's branch.
"""

from __future__ import annotations

from typing import Final

from agents.host.action_registry import action
from agents.host.actions import transcript_items
from agents.host.actions.checks import checked_limit, checked_query
from agents.host.actions.transcript_items import KINDS
from agents.host.session import Scene, Session
from agents.host_protocol import parameters, replies
from agents.host_protocol.errors import invalid, unauthorized
from conversations.threads import earlier_messages
from conversations.threads.earlier_messages import CALL, SAID, BeforeInput, MessageRow, RowPlace

MAX_PAGE_SIZE: Final = 100
_MAX_FOUND: Final = 50
_LONGEST_QUERY: Final = 200
_ROLES: Final = ("user", "assistant", "tool")
_ENDLESS: Final = 2**31 - 1
_LAST: Final = 999_999_999


@action("history_page", "history", "page", resource=lambda params: params.conversation_id or "")
async def page(session: Session, params: parameters.PageHistory) -> replies.HistoryPage:
    """Return a page of the conversation: backward newest first, forward oldest first."""
    scene = session.scene
    check_conversation(scene, params.conversation_id, "History page")
    limit = checked_limit(params.limit, MAX_PAGE_SIZE)
    last = _place(params.before_cursor, (_ENDLESS, _ENDLESS, SAID))
    first = _place(params.after_cursor, (-1, -1, SAID))
    read = _backward if params.direction == "backward" else _forward
    found = await read(scene, first, last, limit + 1)
    more, found = len(found) > limit, found[:limit]
    if more and params.direction == "backward":
        found = transcript_items.whole_turns(found)
    is_newest = last > (scene.thread_seq, _LAST, CALL) and not (more and params.direction == "forward")
    shown = transcript_items.without_unanswered_calls(found) if is_newest else found
    if first < (0, 0, 0) and not (more and params.direction == "backward"):
        shown = transcript_items.without_lone_answers(shown, forward=params.direction == "forward")
    return replies.HistoryPage(
        items=transcript_items.items(
            shown,
            scene.conversation_id,
            files=params.include_artifacts or params.include_attachments,
        ),
        next_cursor=transcript_items.cursor(found[-1]) if more else None,
        prev_cursor=transcript_items.cursor(found[0]) if found else None,
        has_more=more,
    )


async def _backward(scene: Scene, first: RowPlace, last: RowPlace, limit: int) -> list[MessageRow]:
    """Return the newest rows between these places, newest first."""
    own = [row for row in reversed(scene.unstored_rows) if first < row.place < last][:limit]
    if len(own) == limit:
        return own
    return own + await earlier_messages.fetch_backward(
        _before(scene), first, last, roles=list(_ROLES), limit=limit - len(own)
    )


async def _forward(scene: Scene, first: RowPlace, last: RowPlace, limit: int) -> list[MessageRow]:
    """Return the oldest rows between these places, oldest first."""
    found = await earlier_messages.fetch_forward(
        _before(scene), first, last, roles=list(_ROLES), limit=limit
    )
    own = [row for row in scene.unstored_rows if first < row.place < last]
    return found + own[: limit - len(found)]


@action("history_search", "history", "search")
async def search(session: Session, params: parameters.SearchHistory) -> replies.HistoryFound:
    """Return the messages that contain the query's text, newest first; case is ignored."""
    scene, filters = session.scene, params.filters or {}
    check_conversation(scene, filters.get("conversation_id"), "History search")
    query = checked_query(params.query, _LONGEST_QUERY, name="query")
    limit = checked_limit(params.top_k, _MAX_FOUND, name="top_k")
    kinds = filters.get("item_types") or set(KINDS.values())
    roles = [role for role in filters.get("roles") or _ROLES if KINDS.get(role) in kinds]
    rows = [row for row in reversed(scene.unstored_rows) if row.role in roles and _contains(row, query)]
    found = rows[:limit]
    missing = limit - len(found) if roles else 0
    if missing > 0:
        found += await earlier_messages.search_rows(_before(scene), query, roles=roles, limit=missing)
    items = transcript_items.items(found, scene.conversation_id, files=False)
    return replies.HistoryFound(items=items, total_count=len(items), query=params.query)


def _contains(row: MessageRow, query: str) -> bool:
    return earlier_messages.normalize_text(query) in earlier_messages.normalize_text(row.content)


async def count_before(scene: Scene, most: int) -> int:
    """Return how many messages of user and agent before the input have a text; at most `most`."""
    if scene.thread_id is None:
        return 0
    found = await earlier_messages.count_rows(_before(scene), roles=list(_ROLES[:2]), most=most)
    own = sum(row.role in _ROLES[:2] and bool(row.content) for row in scene.unstored_rows)
    return min(most, own + found)


def latest_cursor(scene: Scene) -> str | None:
    """Return the cursor of the run itself: a page may show all that is before it."""
    return f"{scene.thread_seq}.{_LAST}" if scene.thread_id else None


def check_conversation(scene: Scene, conversation_id: object, api: str) -> None:
    """Raise HostRefusal for another conversation than the run's, or if the run has none."""
    if scene.thread_id is None:
        raise unauthorized(f"{api} is not available without a run conversation")
    if conversation_id and str(conversation_id).replace("-", "").lower() != scene.thread_id.hex:
        raise unauthorized(f"Conversation {conversation_id!s:.100} is not accessible by this run")


def _before(scene: Scene) -> BeforeInput:
    input_seq = -1 if scene.input_seq is None else scene.input_seq
    return BeforeInput(scene.thread_id, scene.user_id, scene.run_id, scene.thread_seq, input_seq)


def _place(cursor: str | None, default: RowPlace) -> RowPlace:
    if not cursor:
        return default
    numbers = cursor.split(".")
    if not (len(numbers) in (2, 3) and all(map(str.isdecimal, numbers)) and len(cursor) <= 22):
        raise invalid("A cursor must be one that this API gave.")
    run, message, part = (min(int(number), _ENDLESS) for number in (*numbers, str(SAID))[:3])
    return run, message, part
