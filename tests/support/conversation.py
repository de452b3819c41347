"""Conversations written straight into the tables, with the times and texts that a test needs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from conversations.models import Message, Thread

NOON = datetime(2026, 3, 15, 12, tzinfo=UTC)


class Conversation:
    """A thread of a user, said message by message."""

    def __init__(self, user: Any, **fields: Any) -> None:
        self.thread = Thread.objects.create(owner=user, **fields)
        self._seq = 0

    @property
    def id(self) -> str:
        return str(self.thread.pk)

    def say(self, content: str, *, role: str = "user", at: datetime = NOON, **fields: Any) -> Message:
        self._seq += 1
        said: Message = Message.objects.create(
            owner_id=self.thread.owner_id,
            thread=self.thread,
            seq=self._seq,
            role=role,
            content=content,
            created_at=at,
            **fields,
        )
        return said

    def say_much(self, contents: list[str], *, at: datetime = NOON) -> None:
        """Many messages at once, a second apart."""
        first = self._seq + 1
        self._seq += len(contents)
        Message.objects.bulk_create(
            Message(
                owner_id=self.thread.owner_id,
                thread=self.thread,
                seq=first + place,
                role="assistant" if place % 2 else "user",
                content=content,
                created_at=at + timedelta(seconds=place),
            )
            for place, content in enumerate(contents)
        )
