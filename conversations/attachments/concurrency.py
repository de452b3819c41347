"""Limits of slow work in progress, in all and by user: one user's must leave room for others'."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from config.errors import TooManyRequests, Unavailable


class ConcurrencyLimit:
    """A limit for this process, and one for each user."""

    def __init__(self, code: str, message: str, *, limit: int, limit_per_user: int) -> None:
        self._code, self._message = code, message
        self._limit, self._limit_per_user = limit, limit_per_user
        self._held: Counter[UUID] = Counter()

    @contextmanager
    def hold(self, user_id: UUID) -> Iterator[None]:
        """Hold a place. Raise TooManyRequests, or Unavailable `overloaded`, where there is none."""
        if self._held[user_id] >= self._limit_per_user:
            raise TooManyRequests(self._message, code=self._code, retry_after=1)
        if self._held.total() >= self._limit:
            raise Unavailable("Too many requests at once.", code="overloaded", retry_after=1)
        self._held[user_id] += 1
        try:
            yield
        finally:
            self._held[user_id] -= 1
            if not self._held[user_id]:
                del self._held[user_id]
