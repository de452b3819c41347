"""Our own notifications and connections beside the public way of a library.

    .venv/bin/python -m benchmarks.alternatives

CPU of this process in microseconds: of one message published, received and given to its listener, and
of one `SELECT 1` on a pooled connection, one after the other and sixteen at once. The ways take turns,
and the median of ROUNDS counts. Needs the Redis of REDIS_URL and the PostgreSQL of DATABASE_URL, by
default those of this machine; coredis and channels_redis take part where they are installed.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, Final

ROUNDS: Final = 7
MESSAGES: Final = 3_000
STATEMENTS: Final = 2_000
AT_ONCE: Final = 16
CHANNEL: Final = "parley:bench:alternatives"
BODY: Final = {"batches": [(b"0" * 16, 1, 3, b"[" + b"x" * 300 + b"]")]}

Publish = Callable[[], Awaitable[None]]
Heard = Callable[[], None]


@asynccontextmanager
async def ours(url: str, heard: Heard) -> AsyncIterator[Publish]:
    from config.coordination.redis_exchange import RedisExchange

    exchange = RedisExchange(url)

    async def publish() -> None:
        exchange.notify(CHANNEL, BODY)

    with exchange.subscribe(CHANNEL, lambda _: heard()):
        await asyncio.sleep(0.3)
        yield publish


@asynccontextmanager
async def ours_by_notify(_url: str, heard: Heard) -> AsyncIterator[Publish]:
    from config import database
    from config.coordination.postgres_exchange import PostgresExchange

    exchange = PostgresExchange()

    async def publish() -> None:
        exchange.notify(CHANNEL, BODY)

    with exchange.subscribe(CHANNEL, lambda _: heard()):
        await asyncio.sleep(0.3)
        yield publish
    await database.close()


@asynccontextmanager
async def redis_py(url: str, heard: Heard) -> AsyncIterator[Publish]:
    import msgspec
    from redis.asyncio import Redis

    client = Redis.from_url(url)
    listener = client.pubsub(ignore_subscribe_messages=True)
    await listener.subscribe(CHANNEL)

    async def listen() -> None:
        async for message in listener.listen():
            msgspec.msgpack.decode(message["data"])
            heard()

    async def publish() -> None:
        await client.publish(CHANNEL, msgspec.msgpack.encode(BODY))

    task = asyncio.create_task(listen())
    yield publish
    task.cancel()
    await listener.aclose()  # type: ignore[no-untyped-call]
    await client.aclose()


@asynccontextmanager
async def coredis(url: str, heard: Heard) -> AsyncIterator[Publish]:
    import coredis as library  # type: ignore[import-not-found]
    import msgspec

    async with AsyncExitStack() as opened:
        client = library.Redis.from_url(url)
        if hasattr(client, "__aenter__"):
            await opened.enter_async_context(client)
        listener = client.pubsub(ignore_subscribe_messages=True, channels=[CHANNEL])
        if hasattr(listener, "__aenter__"):
            await opened.enter_async_context(listener)

        async def listen() -> None:
            async for message in listener:
                msgspec.msgpack.decode(message["data"])
                heard()

        async def publish() -> None:
            await client.publish(CHANNEL, msgspec.msgpack.encode(BODY))

        task = asyncio.create_task(listen())
        await asyncio.sleep(0.3)
        yield publish
        task.cancel()


@asynccontextmanager
async def channels_redis(url: str, heard: Heard) -> AsyncIterator[Publish]:
    from channels_redis.pubsub import RedisPubSubChannelLayer  # type: ignore[import-not-found]

    layer = RedisPubSubChannelLayer(hosts=[url])
    channel = await layer.new_channel()
    await layer.group_add("bench", channel)

    async def listen() -> None:
        while True:
            await layer.receive(channel)
            heard()

    async def publish() -> None:
        await layer.group_send("bench", {"type": "log", "body": BODY})

    task = asyncio.create_task(listen())
    yield publish
    task.cancel()
    with suppress(Exception):
        await layer.flush()


async def message_us(way: Any, url: str) -> float:
    """Return the CPU of a message of this way; one is published when the one before was heard."""
    news = asyncio.Event()
    async with way(url, news.set) as publish:
        for _ in range(MESSAGES // 10):
            news.clear()
            await publish()
            await asyncio.wait_for(news.wait(), 5)
        begun = time.process_time()
        for _ in range(MESSAGES):
            news.clear()
            await publish()
            await news.wait()
        return (time.process_time() - begun) / MESSAGES * 1e6


async def _pool_as_it_is() -> tuple[Any, Callable[[], Any]]:
    from psycopg_pool import AsyncConnectionPool

    from config.database import new_connections

    arguments = new_connections.connection_arguments()
    pool = AsyncConnectionPool(kwargs=arguments, min_size=1, max_size=8, open=False)
    await pool.open()
    return pool.close, pool.connection


async def _our_stack() -> tuple[Any, Callable[[], Any]]:
    from config import database

    return database.close, database.connection


_POOLS: Final = {_pool_as_it_is: "psycopg_pool as it is", _our_stack: "our stack before it"}


async def statement_us(way: Any, at_once: int) -> float:
    """Return the CPU of one statement, the connection taken and given back."""
    close, connection = await way()
    left = iter(range(STATEMENTS))

    async def client() -> None:
        for _ in left:
            async with connection() as held:
                await (await held.execute("SELECT 1")).fetchone()

    await asyncio.gather(*(client() for _ in range(at_once)))
    left = iter(range(STATEMENTS))
    begun = time.process_time()
    await asyncio.gather(*(client() for _ in range(at_once)))
    took = (time.process_time() - begun) / STATEMENTS * 1e6
    await close()
    return took


def main() -> None:
    """Measure all ways in turns and print a table."""
    os.environ.setdefault("DATABASE_URL", "postgresql://postgres@127.0.0.1:5432/postgres")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    import django
    import uvloop

    django.setup()
    url = os.environ.get("REDIS_URL", "redis://127.0.0.1:6379/15")
    found: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        for way in (ours, ours_by_notify, redis_py, coredis, channels_redis):
            name = f"a message, {way.__name__}"
            with suppress(ImportError):
                found.setdefault(name, []).append(uvloop.run(message_us(way, url)))
        for named, pool in (
            ("psycopg_pool as it is", _pool_as_it_is),
            ("our stack before it", _our_stack),
        ):
            for at_once in (1, AT_ONCE):
                name = f"a statement, {at_once} at once, {named}"
                found.setdefault(name, []).append(uvloop.run(statement_us(pool, at_once)))
    for name, some in found.items():
        if some:
            print(f"{name:<52} {statistics.median(some):>8,.0f} µs of CPU")


if __name__ == "__main__":
    main()
