"""Redis for shared counts: it responds within milliseconds or is skipped (promise P11).

Nothing in Redis is authoritative. Callers need a fallback for the case that Redis is slow, down, empty
or not configured; `query` then returns None.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Final, TypeVar
from weakref import WeakKeyDictionary

import structlog
from django.conf import settings
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

log = structlog.get_logger(__name__)

T = TypeVar("T")
PATIENCE_S: Final = 0.1
PAUSE_S: Final = 1.0
_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, Redis]] = WeakKeyDictionary()
_away_until = 0.0


async def query(work: Callable[[Redis], Awaitable[T]]) -> T | None:
    """Return the result of `work`; None if there is no Redis or it does not respond at once.

    After a failure there are no queries for PAUSE_S, so an outage costs one short wait per second.
    """
    global _away_until
    if not settings.REDIS_URL or monotonic() < _away_until:
        return None
    try:
        async with asyncio.timeout(PATIENCE_S):
            return await work(_client())
    except (RedisError, OSError, TimeoutError) as error:
        _away_until = monotonic() + PAUSE_S
        log.warning("Redis does not answer", error=type(error).__name__)
        return None


async def close() -> None:
    """Close the running loop's connections."""
    for client in _clients.pop(asyncio.get_running_loop(), {}).values():
        await client.aclose()


def _client() -> Redis:
    mine = _clients.setdefault(asyncio.get_running_loop(), {})
    if settings.REDIS_URL not in mine:
        mine[settings.REDIS_URL] = Redis.from_url(
            settings.REDIS_URL,
            socket_timeout=PATIENCE_S,
            socket_connect_timeout=PATIENCE_S,
            retry=Retry(NoBackoff(), 0),
            max_connections=64,
        )
    return mine[settings.REDIS_URL]
