"""Slots that processes share: how many streams of a user, and of a conversation, are open anywhere.

A slot expires unless its process renews it, so those of a dead process come free by themselves. What a
function returns is None if the others cannot be asked now: then a process counts alone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from time import time
from typing import Final, NamedTuple, Protocol, TypeVar
from uuid import UUID

import psycopg
import structlog
from django.conf import settings
from redis.asyncio import Redis
from redis.asyncio.client import Pipeline

from config import sql
from config.coordination import redis_client

log = structlog.get_logger(__name__)

T = TypeVar("T")
LIVES_S: Final = 30
_KEPT_S: Final = 120  # of a key of Redis


class Slot(Protocol):
    """A stream's place: names of one conversation sort by age, and differ between processes."""

    @property
    def name(self) -> str: ...
    @property
    def user_id(self) -> UUID: ...
    @property
    def thread_id(self) -> UUID: ...


class Taken(NamedTuple):
    """What is full ("", "user" or "conversation"), and the name of the slot that was replaced, or ""."""

    full: str
    replaced: str


class Limits(NamedTuple):
    """Open streams; 0 is no limit."""

    of_user: int
    of_thread: int


async def take(slot: Slot, limits: Limits, *, may_replace: bool) -> Taken | None:
    """Take the slot, if need be in place of the conversation's oldest one."""
    match settings.COORDINATION:
        case "redis":
            return await redis_client.query(lambda redis: _take(redis, slot, limits, may_replace))
        case "postgresql":
            columns = (slot.name, slot.user_id, slot.thread_id, LIVES_S, *limits, may_replace)
            row = await _try(sql.one(_TAKE_ROW, columns))
            return Taken(*row) if row else None
        case _:
            return None


async def release(slots: Sequence[Slot]) -> None:
    """Give slots back; if that fails they expire."""
    match settings.COORDINATION:
        case "redis":
            await _write(slots, lambda pipe, key, name: pipe.zrem(key, name))
        case "postgresql":
            await _try(sql.change(_RELEASE, ([slot.name for slot in slots],)))


async def renew(slots: Sequence[Slot]) -> None:
    """Renew slots, also those that have been forgotten; delete those of dead processes."""
    match settings.COORDINATION:
        case "redis":
            await _renew_in_redis(slots)
        case "postgresql":
            names = [slot.name for slot in slots]
            owners = [slot.user_id for slot in slots], [slot.thread_id for slot in slots]
            await _try(sql.change(_RENEW, (LIVES_S, names, *owners)))
            await _try(sql.change(_EXPIRE))


async def count_of_user(user_id: UUID) -> int | None:
    """Return how many streams of the user are open."""
    match settings.COORDINATION:
        case "redis":
            return await redis_client.query(lambda redis: _count(redis, user_id))
        case "postgresql":
            row = await _try(sql.one(_COUNT, (user_id,)))
            return row[0] if row else None
        case _:
            return None


# --- PostgreSQL ---------------------------------------------------------------------------------

_TAKE_ROW: Final = """
SELECT is_full, replaced FROM coordination_take_slot(%s, %s, %s, %s, %s, %s, %s)
"""
_RELEASE: Final = "DELETE FROM coordination_sharedslot WHERE name = ANY(%s)"
_RENEW: Final = """
INSERT INTO coordination_sharedslot AS shared (name, user_id, thread_id, expires_at)
SELECT name, user_id, thread_id, clock_timestamp() + make_interval(secs => %s)
FROM unnest(%s::text[], %s::uuid[], %s::uuid[]) AS own (name, user_id, thread_id)
ORDER BY name
ON CONFLICT (name) DO UPDATE SET expires_at = excluded.expires_at
"""
_EXPIRE: Final = """
DELETE FROM coordination_sharedslot WHERE name IN (
    SELECT name FROM coordination_sharedslot WHERE expires_at < clock_timestamp()
    FOR UPDATE SKIP LOCKED
)
"""
_COUNT: Final = """
SELECT count(*) FROM coordination_sharedslot WHERE user_id = %s AND expires_at > clock_timestamp()
"""


async def _try(work: Awaitable[T]) -> T | None:
    try:
        return await work
    except (psycopg.Error, OSError) as error:
        log.warning("slots not shared", error=type(error).__name__)
        return None


# --- Redis --------------------------------------------------------------------------------------

# KEYS: the user's streams and the conversation's, scored by when they expire.
# ARGV: now, expiry, name, limit per user, limit per conversation, prefix of replaceable streams.
# Returns what is full ("", "user" or "conversation") and the stream that was replaced, if any.
_TAKE: Final = """
local function oldest(key, prefix)
  local found = false
  for _, name in ipairs(redis.call('ZRANGE', key, 0, -1)) do
    if prefix ~= '' and string.sub(name, 1, #prefix) == prefix and (not found or name < found) then
      found = name
    end
  end
  return found
end
local replaced = ''
for place, what in ipairs({'user', 'conversation'}) do
  redis.call('ZREMRANGEBYSCORE', KEYS[place], '-inf', ARGV[1])
  local limit = tonumber(ARGV[3 + place])
  if limit > 0 and redis.call('ZCARD', KEYS[place]) >= limit then
    local found = oldest(KEYS[place], ARGV[6])
    if not found then return {what, ''} end
    redis.call('ZREM', KEYS[1], found)
    redis.call('ZREM', KEYS[2], found)
    replaced = found
  end
end
for place = 1, 2 do
  redis.call('ZADD', KEYS[place], ARGV[2], ARGV[3])
  redis.call('EXPIRE', KEYS[place], 120)
end
return {'', replaced}
"""


async def _take(redis: Redis, slot: Slot, limits: Limits, may_replace: bool) -> Taken:
    now, prefix = time(), f"{slot.thread_id.hex}:" if may_replace else ""
    run_script = redis.register_script(_TAKE)
    full, replaced = await run_script(_keys(slot), (now, now + LIVES_S, slot.name, *limits, prefix))
    return Taken(full.decode(), replaced.decode())


async def _renew_in_redis(slots: Sequence[Slot]) -> None:
    until = time() + LIVES_S

    def renew_one(pipe: Pipeline, key: str, name: str) -> None:
        pipe.zadd(key, {name: until})
        pipe.expire(key, _KEPT_S)

    await _write(slots, renew_one)


async def _write(slots: Sequence[Slot], write: Callable[[Pipeline, str, str], object]) -> None:
    """Make a change for each key and name of these slots in Redis, all in one exchange."""

    async def exchange(redis: Redis) -> None:
        pipe = redis.pipeline(transaction=False)
        for slot in slots:
            for key in _keys(slot):
                write(pipe, key, slot.name)
        await pipe.execute()

    await redis_client.query(exchange)


async def _count(redis: Redis, user_id: UUID) -> int:
    return int(await redis.zcount(user_key(user_id), time(), "+inf"))


def _keys(slot: Slot) -> tuple[str, str]:
    return user_key(slot.user_id), f"parley:streams:thread:{slot.thread_id.hex}"


def user_key(user_id: UUID) -> str:
    """Return the key of Redis that has a user's slots."""
    return f"parley:streams:user:{user_id.hex}"
