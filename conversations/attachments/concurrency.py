"""Limits of slow work in progress, in all and by user: one user's must leave room for others'."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from config.errors import TooManyRequests, Unavailable


class Places:
    """A limit for this process, and one for each user."""

    def __init__(self, code: str, words: str, *, most: int, each: int) -> None:
        self._code, self._words = code, words
        self._most, self._each = most, each
        self._by_user: dict[UUID, int] = {}
        self._all = 0

    @contextmanager
    def taken(self, user_id: UUID) -> Iterator[None]:
        """Hold a place. Raise TooManyRequests, or Unavailable `overloaded`, where there is none."""
        mine = self._by_user.get(user_id, 0)
        if mine >= self._each:
            raise TooManyRequests(self._words, code=self._code, retry_after=1)
        if self._all >= self._most:
            raise Unavailable("Too many requests at once.", code="overloaded", retry_after=1)
        self._all += 1
        self._by_user[user_id] = mine + 1
        try:
            yield
        finally:
            self._all -= 1
            self._by_user[user_id] -= 1
            if not self._by_user[user_id]:
                del self._by_user[user_id]
