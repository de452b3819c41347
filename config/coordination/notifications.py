"""Notifications of every process that it should look again.

A notification may be lost, late or duplicated, and nothing may depend on it (DESIGN §2): listeners
also poll. So `notify` never waits and never raises; while what carries them is slow or down,
notifications are lost. Afterwards listeners get MISSED, and look by themselves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from django.conf import settings

from config.coordination.memory_exchange import Exchange, Listener
from config.coordination.memory_exchange import Message as Message
from config.coordination.postgres_exchange import PostgresExchange
from config.coordination.redis_exchange import RedisExchange


def notify(group: str, message: Message) -> None:
    """Notify all listeners of `group` soon; call it on an event loop."""
    _exchange().notify(group, message)


def carries(size: int) -> bool:
    """Return whether a text of so many bytes should be in a notification, rather than be read."""
    return _exchange().carries(size)


@contextmanager
def subscribe(group: str, listener: Listener) -> Iterator[None]:
    """Inside the block, call the listener with each notification of the group on the running loop."""
    with _exchange().subscribe(group, listener):
        yield


async def listen(group: str, listener: Listener) -> None:
    """Listen until cancelled."""
    with subscribe(group, listener):
        await asyncio.get_running_loop().create_future()


_exchanges: Final[dict[asyncio.AbstractEventLoop, Exchange]] = {}


def _exchange() -> Exchange:
    loop = asyncio.get_running_loop()
    found = _exchanges.get(loop)
    if found is None:
        _drop_closed()
        found = _exchanges[loop] = _new_exchange()
    return found


def _new_exchange() -> Exchange:
    match settings.COORDINATION:
        case "redis":
            return RedisExchange(settings.REDIS_URL)
        case "postgresql":
            return PostgresExchange()
        case _:
            return Exchange()


def _drop_closed() -> None:
    for loop in [known for known in _exchanges if known.is_closed()]:
        _exchanges.pop(loop, None)  # another operating-system thread may do the same
