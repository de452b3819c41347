"""The body of a request while it is read: how large, how slow, and how many large ones at once.

The deadline grows with what has come, so a slow line gets its body through and a silent client does not.
A large body is read for a known caller only: few may be read at once, and nobody takes all places.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from config.auth.bearer import Caller
from config.coordination import rate_limits
from config.errors import BodyTooSlow, ParleyError, PayloadTooLarge, TooManyRequests, Unavailable
from config.http import paths
from config.http.async_views import caller_of
from config.http.streamed_body import Incoming

BODY_LIMIT: Final = 262_144
HISTORY_LIMIT: Final = 32 * 1024 * 1024
PAGE_BODY_LIMIT: Final = 4 * 1024 * 1024
TOO_LARGE: Final = "RunAgentInput payload exceeds size limit"
_LOOKED_AT: Final = 64 * 1024
_LOOK_S: Final = 1.0
BODY_S: Final = 15.0
BODY_RATE: Final = 32 * 1024  # bytes that buy another second
LARGE_AT_ONCE: Final = 8
LARGE_PER_ACCOUNT: Final = 4
LARGE_PER_ADDRESS: Final = 6
_GONE: Final = {"type": "http.disconnect"}


class _Places:
    """The places of large bodies by account and by address, of which nobody gets all."""

    def __init__(self) -> None:
        self._taken = 0
        self._held: Counter[str] = Counter()

    def take(self, caller: Caller, address: str) -> Callable[[], None]:
        """Take a place; return what gives it back. TooManyRequests, or Unavailable when none is left.

        The guests of an address count as one account, because anybody may become any number of guests.
        """
        account = f"guests of {address}" if caller.is_guest else caller.user_id.hex
        if self._held[account] >= LARGE_PER_ACCOUNT or self._held[address] >= LARGE_PER_ADDRESS:
            raise TooManyRequests(
                "Too many large requests at once.", code="too_many_large_requests", retry_after=1
            )
        if self._taken >= LARGE_AT_ONCE:
            raise Unavailable("Too many requests at once.", code="overloaded", retry_after=1)
        self._count(account, address, by=1)
        return lambda: self._count(account, address, by=-1)

    def _count(self, *names: str, by: int) -> None:
        self._taken += by
        for name in names:
            self._held[name] += by
            if not self._held[name]:
                del self._held[name]


_places: Final = _Places()


class Body(Incoming):
    """A body of at most `limit` bytes that is read whole; over BODY_LIMIT it holds a place."""

    def __init__(self, scope: Any, receive: Any, *, limit: int) -> None:
        super().__init__(receive)
        self._scope = scope
        self._limit = limit
        self._admitted = min(limit, BODY_LIMIT)
        self._leave: Callable[[], None] | None = None

    async def read(self) -> bytes | None:
        """Return the body, or None if the client went away.

        PayloadTooLarge as soon as it is over the limit, BodyTooSlow past the deadline; for a large one
        Unauthorized, TooManyRequests or Unavailable, before it is read if the head says its length.
        """
        announced = _announced(self._scope)
        try:
            async with asyncio.timeout(BODY_S) as deadline:
                if announced > self._admitted:
                    await self._admit(announced)
                return await self._read(deadline)
        except TimeoutError:
            raise BodyTooSlow from None

    async def _read(self, deadline: asyncio.Timeout) -> bytes | None:
        begun, whole = asyncio.get_running_loop().time(), bytearray()
        while True:
            event = await self._receive()
            if event["type"] == "http.disconnect":
                self.ended = True
                return None
            whole += event.get("body", b"")
            if len(whole) > self._admitted:
                await self._admit(len(whole), begun=bytes(whole[:_LOOKED_AT]))
            if not event.get("more_body", False):
                self.ended = True
                return bytes(whole)
            deadline.reschedule(_deadline(begun, len(whole)))

    async def _admit(self, size: int, *, begun: bytes = b"") -> None:
        if size > self._limit:
            raise PayloadTooLarge(await self._too_large(begun))
        caller = await caller_of(self._scope)
        self._leave = _places.take(
            caller, rate_limits.client_address(rate_limits.build_meta(self._scope))
        )
        self._admitted = self._limit

    async def _too_large(self, begun: bytes) -> str:
        """Seed 000's sentence for its own body at its own addresses, ours for any other."""
        scope = self._scope
        is_seeds = scope["path"] in paths.SEEDS_OWN and b"dialect=" not in scope["query_string"]
        if is_seeds and not _is_text_run(begun or await self._beginning()):
            return TOO_LARGE
        return f"The request body is too large: at most {self._limit:,} bytes are taken here."

    async def _beginning(self) -> bytes:
        """What comes of the body in a moment: enough to tell what it is."""
        try:
            async with asyncio.timeout(_LOOK_S):
                event = await self._receive()
        except TimeoutError:
            return b""
        self.ended = not event.get("more_body", False)
        return bytes(event.get("body", b"")[:_LOOKED_AT])

    def leave(self) -> None:
        """Give back the place, if the body holds one."""
        if self._leave is not None:
            self._leave()
            self._leave = None


class PageBody(Incoming):
    """`receive` for Django, which would write a body of any size to disk, whoever sends it.

    Past the limit or the deadline it reports that the client has gone: then Django closes its file and
    sends nothing, and `refusal` is what the client should get.
    """

    def __init__(self, receive: Any) -> None:
        super().__init__(receive)
        self.refusal: ParleyError | None = None
        self._begun = asyncio.get_running_loop().time()
        self._size = 0

    async def __call__(self) -> Any:
        if self.ended:
            return await self._receive()
        try:
            async with asyncio.timeout_at(_deadline(self._begun, self._size)):
                event = await self._receive()
        except TimeoutError:
            return self._refuse(BodyTooSlow())
        self._size += len(event.get("body", b""))
        if self._size > PAGE_BODY_LIMIT:
            return self._refuse(PayloadTooLarge())
        self.ended = not event.get("more_body", False)
        return event

    def _refuse(self, refusal: ParleyError) -> Any:
        self.refusal = refusal
        return _GONE


def _is_text_run(begun: bytes) -> bool:
    """Whether a body begins as that of a text run, and not as a RunAgentInput."""
    if any(key in begun for key in (b'"threadId"', b'"runId"', b'"messages"')):
        return False
    return b'"text"' in begun or b'"model"' in begun


def _announced(scope: Any) -> int:
    """The length that the head says; the server has checked its form."""
    return next((int(value) for name, value in scope["headers"] if name == b"content-length"), 0)


def _deadline(begun: float, size: int) -> float:
    return begun + BODY_S + size / BODY_RATE
