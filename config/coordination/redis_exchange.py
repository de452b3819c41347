"""Notifications through Redis pub/sub."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import msgspec

from config.coordination.memory_exchange import MISSED, Exchange, Listener, Message
from config.coordination.redis_pubsub import Publisher, Subscriber

_PREFIX: Final = "parley:ring:"


class RedisExchange(Exchange):
    """The listeners of one loop, connected to other processes through Redis."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._publisher = Publisher(url)
        self._subscriber = Subscriber(url, self._receive, on_subscribed=self._recheck)

    def notify(self, group: str, message: Message) -> None:
        self._publisher.publish(_PREFIX + group, msgspec.msgpack.encode(message))

    @contextmanager
    def subscribe(self, group: str, listener: Listener) -> Iterator[None]:
        with super().subscribe(group, listener):
            self._subscriber.subscribe(_PREFIX + group)
            yield

    def _receive(self, channel: str, message: bytes) -> None:
        self._deliver_encoded(channel.removeprefix(_PREFIX), message)

    def _recheck(self, channel: str) -> None:
        self._deliver(channel.removeprefix(_PREFIX), MISSED)
