"""Notifications within one process, and what every carrier of them has in common."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import msgspec
import structlog

log = structlog.get_logger(__name__)

Message = dict[str, Any]
Listener = Callable[[Message], None]
MISSED: Final[Message] = {"missed": True}
"""Tells listeners that notifications may have been lost: the connection that brings them is new."""


class Exchange:
    """The listeners of one loop; alone, it connects no processes (COORDINATION=memory)."""

    def __init__(self) -> None:
        self._listeners: dict[str, list[Listener]] = {}

    def notify(self, group: str, message: Message) -> None:
        """Notify all listeners of the group soon."""
        asyncio.get_running_loop().call_soon(self._deliver, group, message)

    def carries(self, size: int) -> bool:
        """Return whether a text of so many bytes should be in a notification, rather than be read."""
        return True

    @contextmanager
    def subscribe(self, group: str, listener: Listener) -> Iterator[None]:
        """Inside the block, call the listener with each notification of the group."""
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

    def _deliver_encoded(self, group: str, message: bytes) -> None:
        try:
            decoded = msgspec.msgpack.decode(message)
        except msgspec.DecodeError:
            log.warning("notification not understood", group=group)
            return
        self._deliver(group, decoded)
