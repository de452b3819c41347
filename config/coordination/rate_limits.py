"""Rate limits of users, guests and addresses (specs/text-run.md §4).

Each process decides by itself, in microseconds. A few times per second the processes exchange their
counts, so together they may exceed a limit by the requests of EVERY_S. While they cannot, each process
counts alone and nobody waits (P11). A limit applies to any minute (any ten minutes for wrong
passwords), by a sliding window over two fixed ones; 0 means no limit.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any, Final
from uuid import UUID

from django.conf import settings

from config.coordination import shared_counts
from config.coordination.shared_counts import Window
from config.errors import TooManyRequests

WINDOW_S: Final = 60
PASSWORD_WINDOW_S: Final = 600
EVERY_S: Final = 0.2
_EXPIRE_TURNS: Final = 300  # a minute
_MOST: Final = 100_000
_AT_ONCE: Final = 1_000
Meta = Mapping[str, Any]


@dataclass(slots=True)
class _Count:
    """The use of one name in the present window (such as a minute) and in the previous one."""

    window_s: int
    number: int
    before: int = 0
    synced: int = 0  # of all processes, as far as exchanged
    unsynced: int = 0

    @property
    def used(self) -> int:
        return self.synced + self.unsynced

    def turn(self, number: int) -> None:
        if number != self.number:
            self.before = self.used if number == self.number + 1 else 0
            self.number, self.synced, self.unsynced = number, 0, 0


class Limiter:
    """Counts by name, each in windows of one length; safe in any operating-system thread."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._counts: dict[str, _Count] = {}
        self._changed: set[str] = set()
        self._swept = 0
        self._lock = threading.Lock()

    def take(self, name: str, limit: int, window_s: int = WINDOW_S) -> int:
        """Use one of `limit` per window; return 0, or the seconds until one is available."""
        with self._lock:
            count, elapsed = self._count(name, window_s)
            if count.before * (1 - elapsed / window_s) + count.used < limit:
                count.unsynced += 1
                return 0
            return _wait(count, limit, elapsed)

    def give_back(self, name: str, window_s: int = WINDOW_S) -> None:
        """Undo a successful `take`."""
        with self._lock:
            count, _ = self._count(name, window_s)
            if count.used > 0:
                count.unsynced -= 1
            elif count.before > 0:  # it was taken in the previous window
                count.before -= 1

    def _count(self, name: str, window_s: int) -> tuple[_Count, float]:
        """Return the count of the present window, and its elapsed seconds."""
        number, elapsed = divmod(self._clock(), window_s)
        count = self._counts.get(name)
        if count is None:
            count = self._counts[name] = self._new(window_s, int(number))
        count.turn(int(number))
        self._changed.add(name)
        return count, elapsed

    def _new(self, window_s: int, number: int) -> _Count:
        if len(self._counts) >= _MOST:  # many addresses are in use: drop the oldest names
            for name in list(self._counts)[: _MOST // 10]:
                del self._counts[name]
        return _Count(window_s, number)

    def list_unsynced(self) -> dict[Window, int]:
        """Return some counts that are not exchanged yet."""
        now = self._clock()
        with self._lock:
            self._sweep(now)
            names = [self._changed.pop() for _ in range(min(len(self._changed), _AT_ONCE))]
            counts = [(name, self._counts[name]) for name in names if name in self._counts]
            return {Window(name, count.window_s, count.number): count.unsynced for name, count in counts}

    def _sweep(self, now: float) -> None:
        """Once per minute remove names without use in two windows."""
        if self._swept != (minute := int(now // WINDOW_S)):
            self._swept = minute
            self._counts = {
                name: count
                for name, count in self._counts.items()
                if count.number >= now // count.window_s - 1
            }

    def mark_synced(self, window: Window, *, own: int, total: int) -> None:
        """Record that `own` were exchanged for this window; all processes have `total`."""
        with self._lock:
            count = self._counts.get(window.name)
            if count is not None and count.number == window.number:
                count.unsynced -= own
                count.synced = total


def _wait(count: _Count, limit: int, elapsed: float) -> int:
    """Return the whole seconds until the sliding count is below the limit."""
    if count.used < limit:
        until = count.window_s * (1 - (limit - count.used) / count.before)
    else:
        until = count.window_s * (2 - limit / count.used)
    return max(1, math.ceil(until - elapsed))


limiter: Final = Limiter()


def admit(user_id: UUID, *, is_guest: bool, meta: Meta) -> None:
    """Count a request of this caller; raise TooManyRequests above the limit.

    A guest also counts for the address, because one person can create any number of guests.
    """
    if not is_guest:
        _take(f"user:{user_id.hex}", settings.RATE_USER_PER_MINUTE)
        return
    _take(f"guest:{user_id.hex}", settings.RATE_GUEST_PER_MINUTE)
    _take(f"ip:{client_address(meta)}", settings.RATE_IP_PER_MINUTE)


def admit_anonymous(meta: Meta) -> None:
    """Count a request without a valid token; raise TooManyRequests above the address's limit."""
    _take(f"ip:{client_address(meta)}", settings.RATE_IP_PER_MINUTE)


def admit_sign_in(meta: Meta) -> None:
    """Count an attempt to sign in; raise TooManyRequests above the address's limit."""
    limit = settings.RATE_SIGN_IN_PER_MINUTE
    _take(f"sign-in:{client_address(meta)}", limit, "Too many attempts to sign in.")


def admit_password(name: str) -> None:
    """Count a password for this name as wrong; raise TooManyRequests above the limit.

    It is counted before the check: otherwise a thousand concurrent guesses would all pass.
    """
    limit = settings.RATE_WRONG_PASSWORDS_PER_10_MINUTES
    reason = "Too many wrong passwords for this username."
    _take(f"password:{name}", limit, reason, PASSWORD_WINDOW_S)


def release_password(name: str) -> None:
    """Undo `admit_password` for a password that was not wrong."""
    if settings.RATE_WRONG_PASSWORDS_PER_10_MINUTES:
        limiter.give_back(f"password:{name}", PASSWORD_WINDOW_S)


def _take(name: str, limit: int, reason: str = "", window_s: int = WINDOW_S) -> None:
    if limit and (wait_s := limiter.take(name, limit, window_s)):
        text = reason and f"{reason} Try again in {_format_wait(wait_s)}."
        raise TooManyRequests(text, retry_after=wait_s)


def _format_wait(seconds: int) -> str:
    if seconds >= 120:
        return f"{math.ceil(seconds / 60)} minutes"
    return "1 second" if seconds == 1 else f"{seconds} seconds"


def client_address(meta: Meta) -> str:
    """Return the client's trustworthy address; of IPv6 only the upper half.

    `X-Forwarded-For` counts only from trusted proxies, read from the right: clients write the left.
    """
    found = _parse_address(str(meta.get("REMOTE_ADDR") or ""))
    hops = [hop.strip() for hop in str(meta.get("HTTP_X_FORWARDED_FOR") or "").split(",")]
    trusted = settings.BEHIND_TLS and not settings.TRUSTED_PROXIES  # the proxy that terminates TLS
    while hops and (trusted or _is_proxy(found)):
        named = _parse_address(hops.pop())
        if named is None:
            break
        found, trusted = named, False
    return _address_key(found)


def peer_address(peer: Any) -> str | None:
    """Return the address of a socket's peer, or None for Unix sockets and trusted proxies."""
    found = _parse_address(str(peer[0])) if isinstance(peer, tuple) else None
    is_proxy = settings.BEHIND_TLS and not settings.TRUSTED_PROXIES
    if found is None or is_proxy or _is_proxy(found):
        return None
    return _address_key(found)


def _address_key(address: IPv4Address | IPv6Address | None) -> str:
    """Return the key of an address; of IPv6 the upper half, because clients choose the lower half."""
    if isinstance(address, IPv6Address):
        return str(ip_network((address, 64), strict=False))
    return str(address)


def build_meta(scope: Mapping[str, Any]) -> Meta:
    """Return the headers and address for limits and authentication, as in Django's META."""
    return {
        "HTTP_AUTHORIZATION": _join_header(scope, b"authorization"),
        "HTTP_X_FORWARDED_FOR": _join_header(scope, b"x-forwarded-for"),
        "REMOTE_ADDR": (scope.get("client") or ("",))[0],
    }


def _join_header(scope: Mapping[str, Any], header: bytes) -> str | None:
    values = [value for name, value in scope["headers"] if name == header]
    return b",".join(values).decode("latin-1") if values else None


def _parse_address(text: str) -> IPv4Address | IPv6Address | None:
    """Return the address, or None if it is none (such as a Unix socket's peer)."""
    try:
        found = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found


def _is_proxy(address: IPv4Address | IPv6Address | None) -> bool:
    return address is not None and any(address in network for network in settings.TRUSTED_PROXIES)


async def sync_for_ever() -> None:
    """Exchange counts with other processes a few times per second, if there may be any."""
    if settings.COORDINATION == "memory":
        return
    for turn in itertools.count(1):
        await asyncio.sleep(EVERY_S)
        await sync_counts(limiter)
        if not turn % _EXPIRE_TURNS:
            await shared_counts.expire()


async def sync_counts(counts: Limiter) -> None:
    """Exchange counts once; failed ones are exchanged next time."""
    unsynced = counts.list_unsynced()
    if not unsynced:
        return
    totals = await shared_counts.add(unsynced)
    for window, total in totals.items():
        counts.mark_synced(window, own=unsynced[window], total=total)
