"""Rate limits: how often a user, a guest, an address may ask (specs/text-run.md §4).

Every decision is made in this process, in microseconds. A few times a second the processes tell each
other through Redis what they have counted, so together they may let through a little more than the
limit: what arrives within EVERY_S. With Redis gone each counts for itself and nobody waits (P11).
A limit is so many in any minute, by a sliding window over two counted ones; 0 is no limit.
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
EVERY_S: Final = 0.2
_MOST: Final = 100_000
_AT_ONCE: Final = 1_000
_KEPT_S: Final = 2 * WINDOW_S + 10
Meta = Mapping[str, Any]


@dataclass(slots=True)
class _Count:
    """What one name has used in this minute and in the one before."""

    minute: int
    before: int = 0
    told: int = 0  # by all processes, as far as they have told each other
    untold: int = 0

    @property
    def used(self) -> int:
        return self.told + self.untold

    def turn(self, minute: int) -> None:
        if minute != self.minute:
            self.before = self.used if minute == self.minute + 1 else 0
            self.minute, self.told, self.untold = minute, 0, 0


class Limiter:
    """Counts by name; safe from any thread."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._counts: dict[str, _Count] = {}
        self._news: set[str] = set()
        self._swept = 0
        self._lock = threading.Lock()

    def take(self, name: str, limit: int) -> int:
        """Use one of `limit` a minute: 0 if there was one, else the seconds until there will be."""
        minute, elapsed = divmod(self._clock(), WINDOW_S)
        with self._lock:
            count = self._counts.get(name)
            if count is None:
                count = self._counts[name] = self._new(int(minute))
            count.turn(int(minute))
            self._news.add(name)
            if count.before * (1 - elapsed / WINDOW_S) + count.used < limit:
                count.untold += 1
                return 0
            return _wait(count, limit, elapsed)

    def _new(self, minute: int) -> _Count:
        if len(self._counts) >= _MOST:  # somebody has very many addresses: the oldest names go
            for name in list(self._counts)[: _MOST // 10]:
                del self._counts[name]
        return _Count(minute)

    def untold(self) -> dict[tuple[str, int], int]:
        """By name and minute what the others do not know yet, of some of those who asked."""
        minute = int(self._clock() // WINDOW_S)
        with self._lock:
            self._sweep(minute)
            names = [self._news.pop() for _ in range(min(len(self._news), _AT_ONCE))]
            counts = [(name, self._counts[name]) for name in names if name in self._counts]
            return {(name, count.minute): count.untold for name, count in counts}

    def _sweep(self, minute: int) -> None:
        """Once a minute forget who has not asked for two."""
        if self._swept != minute:
            self._swept = minute
            self._counts = {n: count for n, count in self._counts.items() if count.minute >= minute - 1}

    def told(self, name: str, minute: int, *, mine: int, all_: int) -> None:
        """`mine` were told for this name and minute, which makes `all_` by everybody."""
        with self._lock:
            count = self._counts.get(name)
            if count is not None and count.minute == minute:
                count.untold -= mine
                count.told = all_


def _wait(count: _Count, limit: int, elapsed: float) -> int:
    """Whole seconds until the sliding count is below the limit again."""
    if count.used < limit:
        until = WINDOW_S * (1 - (limit - count.used) / count.before)
    else:
        until = WINDOW_S + WINDOW_S * (1 - limit / count.used)
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
    _take(f"sign-in:{client_address(meta)}", settings.RATE_SIGN_IN_PER_MINUTE)


def _take(name: str, limit: int) -> None:
    if limit and (wait_s := limiter.take(name, limit)):
        raise TooManyRequests(retry_after=wait_s)


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
            await tell()


async def tell() -> None:
    """Tell and learn once; what Redis did not take is told next time."""
    untold = limiter.untold()
    if not untold:
        return

    async def exchange(redis: Redis) -> list[Any]:
        pipe = redis.pipeline(transaction=False)
        for (name, minute), mine in untold.items():
            pipe.incrby(key := f"parley:rate:{name}:{minute}", mine)
            pipe.expire(key, _KEPT_S)
        return await pipe.execute()

    answers = await shared.ask(exchange)
    for ((name, minute), mine), total in zip(untold.items(), (answers or [])[::2], strict=False):
        limiter.told(name, minute, mine=mine, all_=int(total))
