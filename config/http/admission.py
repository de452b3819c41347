"""Which POSTs are let in: a burst is, more on top of a crawl are not. And which are worked on: a few.

Asked before anything is looked up for a request, so a refusal costs next to nothing and comes at once.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from time import monotonic
from typing import Final

from django.conf import settings

from config.errors import Unavailable
from config.http import paths

CROWD: Final = 4
CRAWLING: Final = 64  # POSTs that have each waited for CRAWL_S are a crawl
CRAWL_S: Final = 1.0
SLOW_S: Final = 0.25  # and so is it if, until CRAWL_S, there are always as many that waited this long
CALM_S: Final = 1.0  # without a crowd, after which a crawl is over
TURN_S: Final = 0.005  # a short turn of the event loop
FEWEST: Final = 16  # POSTs that are let in at once during a crawl
AT_WORK: Final = 64  # starts of runs that are worked on at once; the next wait for their turn
TURN_WAIT_S: Final = 1.0  # then a start waits for its turn no longer: those at work may be slow


class Pace:
    """How many POSTs may wait at once: all that a setting allows, or, after a crawl, few.

    Each request needs some turns of the event loop, and under full load a turn takes longer the more
    requests there are. So after a crawl only FEWEST are let in, and one more after each turn that took
    less than TURN_S, until no crowd has been seen for CALM_S. As many are answered in a second, but each
    of them sooner, and refusals come soonest.
    """

    def __init__(self) -> None:
        self._limit: float = math.inf
        self._crowd_seen = 0.0
        self._timing = False

    @property
    def most(self) -> float:
        return min(self._limit, settings.POSTS_AT_ONCE)

    def notice(self, waiting: int, *, crawls: bool) -> None:
        """One more has come to so many that are waiting."""
        if waiting >= CROWD:
            self._crowd_seen = monotonic()
        elif self._crowd_seen < monotonic() - CALM_S:
            self._limit = math.inf
        if crawls:
            self._limit = FEWEST
        if self._limit < math.inf and not self._timing:
            self._timing = True
            asyncio.get_running_loop().call_soon(self._end_turn, monotonic())

    def _end_turn(self, begun: float) -> None:
        self._timing = False
        if monotonic() - begun > TURN_S:
            self._limit = max(FEWEST, 0.9 * self._limit)
        else:
            self._limit += 1


class Turns:
    """The starts of runs that are worked on, AT_WORK at once; the next are worked on in their order.

    With hundreds at work at once each turn of the event loop would be long, and nobody would be answered
    before nearly all were. Nobody waits for longer than TURN_WAIT_S, as some may wait for a file that
    is being fetched.
    """

    def __init__(self) -> None:
        self._at_work = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def take(self) -> None:
        """Wait for a turn, which `give` ends."""
        if self._at_work < AT_WORK:
            self._at_work += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await asyncio.wait({turn}, timeout=TURN_WAIT_S)
        except asyncio.CancelledError:
            if not turn.cancel():
                self.give()
            raise
        if turn.cancel():
            self._at_work += 1

    def give(self) -> None:
        """End a turn: the next one begins."""
        self._at_work -= 1
        while self._waiting and self._at_work < AT_WORK:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                self._at_work += 1


class Place:
    """The place of a request that is let in, until it leaves; only the start of a run waits for a turn.

    A cancellation must not wait behind a burst.
    """

    __slots__ = ("_begun", "_has_turn", "_turns")

    def __init__(self, begun: dict[Place, float], turns: Turns | None) -> None:
        self._begun = begun
        self._turns = turns
        self._has_turn = False

    async def turn(self) -> None:
        """Wait until the request may be worked on."""
        if self._turns is not None:
            await self._turns.take()
            self._has_turn = True

    def leave(self) -> None:
        """Make room for others; a repetition has no effect."""
        self._begun.pop(self, None)
        if self._turns is not None and self._has_turn:
            self._has_turn = False
            self._turns.give()


class Posts:
    """The POSTs that are waiting for their answer, in the order in which they came.

    A burst is let in as a whole and takes its time. But while many have been waiting for long already,
    a new one would only wait longer: it is refused, and those before it are answered sooner.
    `full` says why no run can be accepted beside so many that are being accepted; None if one can.
    """

    def __init__(self, full: Callable[[int], Unavailable | None] = lambda _: None) -> None:
        self._full = full
        self._pace = Pace()
        self._turns = Turns()
        self._begun: dict[Place, float] = {}
        self._slow_since = math.inf

    @contextmanager
    def admitted(self, method: str, path: str) -> Iterator[Place]:
        """One more POST until the block ends or its place is left; else Unavailable.

        It begins when the body is here: else a few hundred that send none would hold every place.
        """
        if method != "POST":
            yield Place(self._begun, None)
            return
        if refusal := self.refusal(path):
            raise refusal
        place = Place(self._begun, self._turns if path in paths.STARTS else None)
        self._begun[place] = monotonic()
        try:
            yield place
        finally:
            place.leave()

    def refusal(self, path: str) -> Unavailable | None:
        """Return why one more POST to this address is not let in; None if it is."""
        crawls = self._crawl()
        self._pace.notice(len(self._begun), crawls=crawls)
        if crawls or len(self._begun) >= self._pace.most:
            return Unavailable("Too many requests at once.", code="overloaded", retry_after=1)
        # Only in a crowd before asking who comes: perhaps they come back to a run of theirs.
        if path in paths.STARTS and len(self._begun) >= CROWD:
            return self._full(len(self._begun))
        return None

    def _crawl(self) -> bool:
        """Whether CRAWLING POSTs have each waited for CRAWL_S, or always others for SLOW_S, as long.

        Under a load that stays, each may wait for less than CRAWL_S and yet every turn be long, so that
        refusals are late too. A burst is over before.
        """
        if len(self._begun) < CRAWLING:
            self._slow_since = math.inf
            return False
        now = monotonic()
        slow_at = next(islice(self._begun.values(), CRAWLING - 1, None)) + SLOW_S
        self._slow_since = min(self._slow_since, slow_at) if slow_at < now else math.inf
        return self._slow_since < now - (CRAWL_S - SLOW_S)
