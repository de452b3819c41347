"""Notifications of every process that it should look again, through Redis if there are several.

A notification may be lost, late or duplicated, and nothing may depend on it (DESIGN §2): listeners
also poll. So `notify` never waits and never raises; if Redis is slow or down, notifications are lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import msgspec
import structlog
from django.conf import settings

from config.coordination.redis_pubsub import Publisher, Subscriber

log = structlog.get_logger(__name__)

Message = dict[str, Any]
Listener = Callable[[Message], None]
_PREFIX: Final = "parley:ring:"


def notify(group: str, message: Message) -> None:
    """Notify all listeners of `group` soon; call it on an event loop."""
    _exchange().notify(group, message)


@contextmanager
def subscribe(group: str, listener: Listener) -> Iterator[None]:
    """Inside the block, call the listener with each notification of the group on the running loop."""
    with _exchange().subscribe(group, listener):
        yield


async def listen(group: str, listener: Listener) -> None:
    """Listen until cancelled."""
    with subscribe(group, listener):
        await asyncio.get_running_loop().create_future()


class Exchange:
    """The listeners of one loop; without Redis there is only one process."""

    def __init__(self) -> None:
        self._listeners: dict[str, list[Listener]] = {}

    def notify(self, group: str, message: Message) -> None:
        asyncio.get_running_loop().call_soon(self._deliver, group, message)

    @contextmanager
    def subscribe(self, group: str, listener: Listener) -> Iterator[None]:
        self._listeners.setdefault(group, []).append(listener)
        try:
            yield
        finally:
            self._listeners[group].remove(listener)

    def _deliver(self, group: str, message: Message) -> None:
        for listener in tuple(self._listeners.get(group, ())):
            try:
                listener(message)
            except Exception:  # the failure of one listener must not affect the others
                log.exception("notification not understood", group=group)


class RedisExchange(Exchange):
    """The listeners of one loop, connected to other processes through Redis."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._publisher = Publisher(url)
        self._subscriber = Subscriber(url, self._receive)

    def notify(self, group: str, message: Message) -> None:
        self._publisher.publish(_PREFIX + group, msgspec.msgpack.encode(message))

    @contextmanager
    def subscribe(self, group: str, listener: Listener) -> Iterator[None]:
        with super().subscribe(group, listener):
            self._subscriber.subscribe(_PREFIX + group)
            yield

    def _receive(self, channel: str, message: bytes) -> None:
        try:
            decoded = msgspec.msgpack.decode(message)
        except msgspec.DecodeError:
            log.warning("notification not understood", channel=channel)
            return
        self._deliver(channel.removeprefix(_PREFIX), decoded)


_exchanges: Final[dict[asyncio.AbstractEventLoop, Exchange]] = {}


def _exchange() -> Exchange:
    loop = asyncio.get_running_loop()
    found = _exchanges.get(loop)
    if found is None:
        _drop_closed()
        url = settings.REDIS_URL
        found = _exchanges[loop] = RedisExchange(url) if url else Exchange()
    return found


def _drop_closed() -> None:
    for loop in [known for known in _exchanges if known.is_closed()]:
        _exchanges.pop(loop, None)  # another operating-system thread may do the same
