"""Floods: requests of callers who are over their rate limit, refused before anybody asks who they are.

A caller who has just been told to wait is told so again for a second, by the credentials alone. So a
flood costs next to nothing, and its refusals come at once however many others wait.
"""

from __future__ import annotations

from collections.abc import Iterable
from time import monotonic
from typing import Final

from config.errors import TooManyRequests

REMEMBERED_S: Final = 1.0  # the shortest wait that a refusal names
_MOST: Final = 1_000


class Floods:
    """Who was refused a moment ago, by the hash of the `Authorization` header: no secret is kept."""

    def __init__(self) -> None:
        self._refused: dict[int, tuple[float, int | None]] = {}

    def note(self, authorization: str | None, *, retry_after: int | None) -> None:
        """Remember that the caller with this header was over the limit, and what Retry-After said."""
        if not authorization:
            return
        if len(self._refused) >= _MOST:
            self._refused.clear()
        key = hash(authorization.encode("latin-1", "replace"))
        self._refused[key] = monotonic() + REMEMBERED_S, retry_after

    def refusal(self, headers: Iterable[tuple[bytes, bytes]]) -> TooManyRequests | None:
        """Return what the caller was told a moment ago; None if nobody knows of a flood.

        A browser needs headers that only the application sends, to see the refusal.
        """
        if not self._refused:
            return None
        given = dict(headers)
        if (authorization := given.get(b"authorization")) is None or b"origin" in given:
            return None
        until, retry_after = self._refused.get(hash(authorization), (0.0, None))
        return TooManyRequests(retry_after=retry_after) if monotonic() < until else None


floods: Final = Floods()
