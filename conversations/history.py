"""History: one whole day of a thread, newest day first (specs/run-agent-input.md §4).

Two queries a page, both on the index (thread, created_at): which day, then its messages.
"""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from typing import Any, Final
from uuid import UUID

from django.utils import timezone

from config.errors import InvalidRequest, NotFound
from conversations.models import Message, Role, Thread

DAY_LIMIT: Final = 500
_SHOWN: Final = (Role.USER, Role.ASSISTANT, Role.TOOL)


def history_day(user_id: UUID, *, thread_id: str | None, before: str | None) -> dict[str, Any]:
    """The `HistorySnapshotResponse` for the newest day with messages before `before` (or at all).

    Raises NotFound for a thread that is not the user's, InvalidRequest for a bad date.
    """
    until = _parse_day(before)
    thread = _thread(user_id, thread_id)
    if thread is None:
        return _snapshot(None, None, [], has_more=False)
    messages = Message.objects.filter(thread=thread, role__in=_SHOWN)
    earlier = messages.filter(created_at__lt=_midnight(until)) if until else messages
    newest = earlier.order_by("-created_at").values_list("created_at", flat=True).first()
    if newest is None:
        return _snapshot(thread.id, None, [], has_more=False)
    day = timezone.localtime(newest).date()
    of_day = messages.filter(
        created_at__gte=_midnight(day), created_at__lt=_midnight(day + timedelta(days=1))
    )
    shown = list(of_day.order_by("-seq")[: DAY_LIMIT + 1])
    has_more = len(shown) > DAY_LIMIT or messages.filter(created_at__lt=_midnight(day)).exists()
    return _snapshot(thread.id, day, shown[:DAY_LIMIT][::-1], has_more=has_more)


def _thread(user_id: UUID, thread_id: str | None) -> Thread | None:
    own = Thread.objects.visible_to(user_id)
    if not thread_id:
        newest: Thread | None = own.filter(archived_at__isnull=True).order_by("-updated_at").first()
        return newest
    try:
        found: Thread | None = own.filter(pk=UUID(thread_id)).first()
    except ValueError:
        found = None
    if found is None:
        raise NotFound("There is no such thread.", code="thread_not_found")
    return found


def _parse_day(before: str | None) -> date | None:
    if not before:
        return None
    try:
        return datetime.strptime(before, "%Y-%m-%d").date()
    except ValueError:
        raise InvalidRequest("before must be YYYY-MM-DD", code="invalid_before") from None


def _midnight(day: date) -> datetime:
    return timezone.make_aware(datetime.combine(day, time.min))


def _snapshot(
    thread_id: UUID | None, day: date | None, messages: list[Message], *, has_more: bool
) -> dict[str, Any]:
    return {
        "scope": "history_day",
        "threadId": str(thread_id) if thread_id else None,
        "day": day.isoformat() if day else None,
        "hasMore": has_more,
        "messages": [_message(message) for message in messages],
    }


def _message(message: Message) -> dict[str, Any]:
    """A message of the snapshot: users' carry `url`, the others `uiSchema`."""
    last: dict[str, Any] = {"url": None} if message.role == Role.USER else {"uiSchema": None}
    return {
        "id": message.client_id or str(message.id),
        "seq": message.seq,
        "role": message.role,
        "content": message.content,
        **last,
        "timestamp": message.created_at.isoformat().replace("+00:00", "Z"),
    }
