"""Counts that processes share: each adds its own, and gets the total of all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import psycopg
import structlog
from django.conf import settings
from redis.asyncio import Redis

from config import sql
from config.coordination import redis_client

log = structlog.get_logger(__name__)

_ADD: Final = """
INSERT INTO coordination_sharedcount AS shared (name, number, used, expires_at)
SELECT name, number, used, clock_timestamp() + make_interval(secs => lives_s)
FROM unnest(%s::text[], %s::bigint[], %s::int[], %s::int[]) AS own (name, number, used, lives_s)
ORDER BY name, number
ON CONFLICT (name, number) DO UPDATE SET used = shared.used + excluded.used
RETURNING name, number, used
"""  # in one order, so that no two processes wait for each other
_EXPIRE: Final = "DELETE FROM coordination_sharedcount WHERE expires_at < clock_timestamp()"
_is_down = False


class Window(NamedTuple):
    """A name, the seconds of its windows, and the number of one of them."""

    name: str
    seconds: int
    number: int

    @property
    def lives_s(self) -> int:
        return 2 * self.seconds + 10


async def add(own: Mapping[Window, int]) -> dict[Window, int]:
    """Add this process's counts and return those of all; {} if they cannot be exchanged now."""
    match settings.COORDINATION:
        case "redis":
            return await _add_in_redis(own)
        case "postgresql":
            return await _add_in_postgres(own)
        case _:
            return {}


async def expire() -> None:
    """Delete counts of old windows; Redis does so by itself."""
    if settings.COORDINATION == "postgresql":
        try:
            await sql.change(_EXPIRE)
        except (psycopg.Error, OSError) as error:
            log.warning("counts not deleted", error=type(error).__name__)


async def _add_in_postgres(own: Mapping[Window, int]) -> dict[Window, int]:
    columns = (
        [window.name for window in own],
        [window.number for window in own],
        list(own.values()),
        [window.lives_s for window in own],
    )
    global _is_down
    try:
        rows = await sql.every(_ADD, columns)
    except (psycopg.Error, OSError) as error:
        if not _is_down:  # once: it is tried some times per second
            log.warning("counts not exchanged", error=type(error).__name__)
        _is_down = True
        return {}
    _is_down = False
    totals = {(name, number): used for name, number, used in rows}
    return {window: totals[window.name, window.number] for window in own}


async def _add_in_redis(own: Mapping[Window, int]) -> dict[Window, int]:
    async def exchange(redis: Redis) -> list[Any]:
        pipe = redis.pipeline(transaction=False)
        for window, count in own.items():
            pipe.incrby(key := f"parley:rate:{window.name}:{window.number}", count)
            pipe.expire(key, window.lives_s)
        return await pipe.execute()

    answers = await redis_client.query(exchange)
    return {window: int(total) for window, total in zip(own, (answers or [])[::2], strict=False)}
