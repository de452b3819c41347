"""The ring: "look again", told to every process, through Redis where there are several.

A ring may be lost, late or doubled, and nothing may depend on it (DESIGN §2): whoever listens also
looks by itself from time to time. So telling never waits and never raises; when Redis is slow or
gone, rings are dropped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import msgspec
import structlog
from django.conf import settings

from config.pubsub import Publisher, Subscriber

log = structlog.get_logger(__name__)

Message = dict[str, Any]
Listener = Callable[[Message], None]
_PREFIX: Final = "parley:ring:"


def ring(group: str, message: Message) -> None:
    """Tell all who listen to `group`, soon; call it on an event loop."""
    _exchange().ring(group, message)


@contextmanager
def listening(group: str, listener: Listener) -> Iterator[None]:
    """Inside the block the listener is called with each ring of the group, on the running loop."""
    with _exchange().listening(group, listener):
        yield


async def listen(group: str, listener: Listener) -> None:
    """Listen until cancelled."""
    with listening(group, listener):
        await asyncio.get_running_loop().create_future()


class Exchange:
    """Who listens on this loop. Without Redis nobody listens elsewhere: there is one process."""

    def __init__(self) -> None:
        self._listeners: dict[str, list[Listener]] = {}

    def ring(self, group: str, message: Message) -> None:
        asyncio.get_running_loop().call_soon(self._tell, group, message)

    @contextmanager
    def listening(self, group: str, listener: Listener) -> Iterator[None]:
        self._listeners.setdefault(group, []).append(listener)
        try:
            yield
        finally:
            self._listeners[group].remove(listener)

    def _tell(self, group: str, message: Message) -> None:
        for listener in tuple(self._listeners.get(group, ())):
            try:
                listener(message)
            except Exception:  # one that cannot make sense of a ring shall not keep it from the others
                log.exception("ring not understood", group=group)


class RedisExchange(Exchange):
    """The same for processes that share a Redis."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._publisher = Publisher(url)
        self._subscriber = Subscriber(url, self._heard)

    def ring(self, group: str, message: Message) -> None:
        self._publisher.publish(_PREFIX + group, msgspec.msgpack.encode(message))

    @contextmanager
    def listening(self, group: str, listener: Listener) -> Iterator[None]:
        with super().listening(group, listener):
            self._subscriber.subscribe(_PREFIX + group)
            yield

    def _heard(self, channel: str, message: bytes) -> None:
        try:
            said = msgspec.msgpack.decode(message)
        except msgspec.DecodeError:
            log.warning("ring not understood", channel=channel)
            return
        self._tell(channel.removeprefix(_PREFIX), said)


_exchanges: Final[dict[asyncio.AbstractEventLoop, Exchange]] = {}


def _exchange() -> Exchange:
    loop = asyncio.get_running_loop()
    found = _exchanges.get(loop)
    if found is None:
        _forget_the_closed()
        url = settings.REDIS_URL
        found = _exchanges[loop] = RedisExchange(url) if url else Exchange()
    return found


def _forget_the_closed() -> None:
    for loop in [known for known in _exchanges if known.is_closed()]:
        _exchanges.pop(loop, None)  # another thread may be doing the same
