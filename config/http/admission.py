"""Which POSTs are let in: a burst is, more on top of a crawl are not.

Asked before anything is read of a request, so a refusal costs next to nothing and comes at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from time import monotonic
from typing import Final

from django.conf import settings

from config.errors import Unavailable
from config.http import paths

CROWD: Final = 4
CRAWLING: Final = 64
CRAWL_S: Final = 1.0


class Posts:
    """The POSTs that are waiting for their answer, in the order in which they came.

    A burst is let in as a whole and takes its time. But while many have been waiting for long already,
    a new one would only wait longer: it is refused, and those before it are answered sooner.
    `full` says why no run can be accepted beside so many that are being accepted; None if one can.
    """

    def __init__(self, full: Callable[[int], Unavailable | None] = lambda _: None) -> None:
        self._full = full
        self._begun: dict[object, float] = {}

    @contextmanager
    def admitted(self, method: str, path: str) -> Iterator[Callable[[], None]]:
        """One more POST until the block ends or what it gives is called; else Unavailable.

        It begins when the body is here: else a few hundred that send none would hold every place.
        """
        if method != "POST":
            yield lambda: None
            return
        if refusal := self._refusal(path):
            raise refusal
        place = object()
        self._begun[place] = monotonic()

        def leave() -> None:
            self._begun.pop(place, None)

        try:
            yield leave
        finally:
            leave()

    def _refusal(self, path: str) -> Unavailable | None:
        if len(self._begun) >= settings.POSTS_AT_ONCE or self._crawl():
            return Unavailable("Too many requests at once.", code="overloaded", retry_after=1)
        # Only in a crowd before asking who comes: perhaps they come back to a run of theirs.
        if path in paths.STARTS and len(self._begun) >= CROWD:
            return self._full(len(self._begun))
        return None

    def _crawl(self) -> bool:
        """Whether CRAWLING POSTs have been waiting for longer than CRAWL_S."""
        if len(self._begun) < CRAWLING:
            return False
        begun = next(islice(self._begun.values(), CRAWLING - 1, None))
        return begun < monotonic() - CRAWL_S
