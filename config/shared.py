"""Redis, for what processes count together: asked within milliseconds or not at all (promise P11).

Nothing that is kept here is the truth about anything. Whoever asks must have an answer of its own
for the case that Redis is slow, gone, empty or not configured: then `ask` gives None.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Any, Final, TypeVar
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


async def ask(work: Callable[[Redis], Awaitable[T]]) -> T | None:
    """What `work` got from Redis; None when there is no Redis or it does not answer at once.

    After a failure nobody asks for PAUSE_S, so an outage costs one short wait a second.
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
    """Let go of the running loop's connections."""
    for client in _clients.pop(asyncio.get_running_loop(), {}).values():
        await client.aclose()


def _client() -> Redis:
    mine = _clients.setdefault(asyncio.get_running_loop(), {})
    if settings.REDIS_URL not in mine:
        options: dict[str, Any] = {
            "socket_timeout": PATIENCE_S,
            "socket_connect_timeout": PATIENCE_S,
            "retry": Retry(NoBackoff(), 0),
            "max_connections": 64,
        }
        mine[settings.REDIS_URL] = Redis.from_url(settings.REDIS_URL, **options)
    return mine[settings.REDIS_URL]
