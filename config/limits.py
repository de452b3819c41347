"""Rate limits: how often a user, a guest, an address may ask (specs/text-run.md §4).

Every decision is made in this process, in microseconds. A few times a second the processes tell each
other through Redis what they have counted, so together they may let through a little more than the
limit: what arrives within EVERY_S. With Redis gone each counts for itself and nobody waits (P11).
A limit is so many in any minute (of wrong passwords: in any ten), by a sliding window over two counted
ones; 0 is no limit.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from redis.asyncio import Redis

from config import shared
from config.errors import TooManyRequests

WINDOW_S: Final = 60
PASSWORD_WINDOW_S: Final = 600
EVERY_S: Final = 0.2
_MOST: Final = 100_000
_AT_ONCE: Final = 1_000
Meta = Mapping[str, Any]


@dataclass(slots=True)
class _Count:
    """What one name has used in this window (a minute, say) and in the one before."""

    window_s: int
    number: int
    before: int = 0
    told: int = 0  # by all processes, as far as they have told each other
    untold: int = 0

    @property
    def used(self) -> int:
        return self.told + self.untold

    def turn(self, number: int) -> None:
        if number != self.number:
            self.before = self.used if number == self.number + 1 else 0
            self.number, self.told, self.untold = number, 0, 0


class Limiter:
    """Counts by name, each name in windows of one length; safe from any thread."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._counts: dict[str, _Count] = {}
        self._news: set[str] = set()
        self._swept = 0
        self._lock = threading.Lock()

    def take(self, name: str, limit: int, window_s: int = WINDOW_S) -> int:
        """Use one of `limit` a window: 0 if there was one, else the seconds until there will be."""
        with self._lock:
            count, elapsed = self._count(name, window_s)
            if count.before * (1 - elapsed / window_s) + count.used < limit:
                count.untold += 1
                return 0
            return _wait(count, limit, elapsed)

    def give_back(self, name: str, window_s: int = WINDOW_S) -> None:
        """Undo a `take` that got one."""
        with self._lock:
            count, _ = self._count(name, window_s)
            if count.used > 0:
                count.untold -= 1
            elif count.before > 0:  # it was taken in the window before
                count.before -= 1

    def _count(self, name: str, window_s: int) -> tuple[_Count, float]:
        """The count of the present window, and how many seconds of it are over."""
        number, elapsed = divmod(self._clock(), window_s)
        count = self._counts.get(name)
        if count is None:
            count = self._counts[name] = self._new(window_s, int(number))
        count.turn(int(number))
        self._news.add(name)
        return count, elapsed

    def _new(self, window_s: int, number: int) -> _Count:
        if len(self._counts) >= _MOST:  # somebody has very many addresses: the oldest names go
            for name in list(self._counts)[: _MOST // 10]:
                del self._counts[name]
        return _Count(window_s, number)

    def untold(self) -> dict[tuple[str, int, int], int]:
        """By name, window's length and number what the others do not know yet, of some who asked."""
        now = self._clock()
        with self._lock:
            self._sweep(now)
            names = [self._news.pop() for _ in range(min(len(self._news), _AT_ONCE))]
            counts = [(name, self._counts[name]) for name in names if name in self._counts]
            return {(name, count.window_s, count.number): count.untold for name, count in counts}

    def _sweep(self, now: float) -> None:
        """Once a minute forget who has not asked for two windows."""
        if self._swept != (minute := int(now // WINDOW_S)):
            self._swept = minute
            self._counts = {
                name: count
                for name, count in self._counts.items()
                if count.number >= now // count.window_s - 1
            }

    def told(self, name: str, number: int, *, mine: int, all_: int) -> None:
        """`mine` were told for this name and window, which makes `all_` by everybody."""
        with self._lock:
            count = self._counts.get(name)
            if count is not None and count.number == number:
                count.untold -= mine
                count.told = all_


def _wait(count: _Count, limit: int, elapsed: float) -> int:
    """Whole seconds until the sliding count is below the limit again."""
    if count.used < limit:
        until = count.window_s * (1 - (limit - count.used) / count.before)
    else:
        until = count.window_s * (2 - limit / count.used)
    return max(1, math.ceil(until - elapsed))


limiter: Final = Limiter()


def admit(user_id: UUID, *, is_guest: bool, meta: Meta) -> None:
    """Count a request of this caller; TooManyRequests when it is one too many.

    A guest counts for the address as well, because anybody may become any number of guests.
    """
    if not is_guest:
        if settings.RATE_USER_PER_MINUTE:
            _take(f"user:{user_id.hex}", settings.RATE_USER_PER_MINUTE)
        return
    _take(f"guest:{user_id.hex}", settings.RATE_GUEST_PER_MINUTE)
    _take(f"ip:{client_address(meta)}", settings.RATE_IP_PER_MINUTE)


def admit_stranger(meta: Meta) -> None:
    """Count a request without a valid token; TooManyRequests when its address sends too many."""
    _take(f"ip:{client_address(meta)}", settings.RATE_IP_PER_MINUTE)


def admit_sign_in(meta: Meta) -> None:
    """Count an attempt to sign in; TooManyRequests when its address is guessing."""
    limit = settings.RATE_SIGN_IN_PER_MINUTE
    _take(f"sign-in:{client_address(meta)}", limit, "Too many attempts to sign in.")


def admit_password(name: str) -> None:
    """Count a password for this name as wrong; TooManyRequests when there were too many.

    It is counted before it is checked: a thousand guesses at once would all find room otherwise.
    """
    limit = settings.RATE_WRONG_PASSWORDS_PER_10_MINUTES
    said = "Too many wrong passwords for this username."
    _take(f"password:{name}", limit, said, PASSWORD_WINDOW_S)


def forgive_password(name: str) -> None:
    """What `admit_password` has counted was not wrong."""
    if settings.RATE_WRONG_PASSWORDS_PER_10_MINUTES:
        limiter.give_back(f"password:{name}", PASSWORD_WINDOW_S)


def _take(name: str, limit: int, told: str = "", window_s: int = WINDOW_S) -> None:
    if limit and (wait_s := limiter.take(name, limit, window_s)):
        raise TooManyRequests(told and f"{told} Try again in {_in_words(wait_s)}.", retry_after=wait_s)


def _in_words(seconds: int) -> str:
    if seconds >= 120:
        return f"{math.ceil(seconds / 60)} minutes"
    return "1 second" if seconds == 1 else f"{seconds} seconds"


def client_address(meta: Meta) -> str:
    """The client's address as far as it can be believed, an IPv6 one without its lower half.

    Only a trusted proxy's `X-Forwarded-For` counts, read from the right: the client writes the left.
    """
    found = _parsed(str(meta.get("REMOTE_ADDR") or ""))
    hops = [hop.strip() for hop in str(meta.get("HTTP_X_FORWARDED_FOR") or "").split(",")]
    trusted = settings.BEHIND_TLS and not settings.TRUSTED_PROXIES  # the one proxy that ends TLS
    while hops and (trusted or _is_proxy(found)):
        named = _parsed(hops.pop())
        if named is None:
            break
        found, trusted = named, False
    return _counted(found)


def peer_address(peer: Any) -> str | None:
    """The address for which a connection counts, of the socket's own name for its other end.

    None where there is none, and for a trusted proxy, which speaks for many.
    """
    found = _parsed(str(peer[0])) if isinstance(peer, tuple) else None
    is_proxy = settings.BEHIND_TLS and not settings.TRUSTED_PROXIES
    if found is None or is_proxy or _is_proxy(found):
        return None
    return _counted(found)


def _counted(address: IPv4Address | IPv6Address | None) -> str:
    """What counts as one address: of IPv6 the upper half, since the lower is anybody's to choose."""
    if isinstance(address, IPv6Address):
        return str(ip_network((address, 64), strict=False))
    return str(address)


def meta_of(scope: Mapping[str, Any]) -> Meta:
    """What limits and authentication read of a request, as Django names it, from its ASGI scope."""
    return {
        "HTTP_AUTHORIZATION": _joined(scope, b"authorization"),
        "HTTP_X_FORWARDED_FOR": _joined(scope, b"x-forwarded-for"),
        "REMOTE_ADDR": (scope.get("client") or ("",))[0],
    }


def _joined(scope: Mapping[str, Any], header: bytes) -> str | None:
    values = [value for name, value in scope["headers"] if name == header]
    return b",".join(values).decode("latin-1") if values else None


def _parsed(text: str) -> IPv4Address | IPv6Address | None:
    """An address, or None for what is none (a Unix socket's peer, nonsense)."""
    try:
        found = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found


def _is_proxy(address: IPv4Address | IPv6Address | None) -> bool:
    return address is not None and any(address in network for network in settings.TRUSTED_PROXIES)


async def tell_for_ever() -> None:
    """Tell the other processes what was counted here, and learn what they have, a few times a second."""
    while True:
        await asyncio.sleep(EVERY_S)
        if settings.REDIS_URL:
            await tell(limiter)


async def tell(counts: Limiter) -> None:
    """Tell and learn once; what Redis did not take is told next time."""
    untold = counts.untold()
    if not untold:
        return

    async def exchange(redis: Redis) -> list[Any]:
        pipe = redis.pipeline(transaction=False)
        for (name, window_s, number), mine in untold.items():
            pipe.incrby(key := f"parley:rate:{name}:{number}", mine)
            pipe.expire(key, 2 * window_s + 10)
        return await pipe.execute()

    answers = await shared.ask(exchange)
    for ((name, _, number), mine), total in zip(untold.items(), (answers or [])[::2], strict=False):
        counts.told(name, number, mine=mine, all_=int(total))
