"""The ring: "look again", told to every process through the channel layer.

A ring may be lost, late or doubled, and nothing may depend on it (DESIGN §2): whoever listens also
looks by itself from time to time. So telling never waits and never raises; when the layer is slow
or gone, the oldest rings are dropped.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, Final
from weakref import WeakKeyDictionary

import structlog
from channels.layers import get_channel_layer

log = structlog.get_logger(__name__)

Message = dict[str, Any]
_WAITING: Final = 1024
_SEND_S: Final = 2.0
_RETRY_S: Final = 0.5


class Bell:
    """Sends rings one after the other on its loop, dropping the oldest when it falls behind."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[str, Message]] = deque(maxlen=_WAITING)
        self._sender: asyncio.Task[None] | None = None

    def ring(self, group: str, message: Message) -> None:
        """Tell all who listen to `group`, soon."""
        self._waiting.append((group, message))
        if self._sender is None or self._sender.done():
            self._sender = asyncio.get_running_loop().create_task(self._send())

    async def _send(self) -> None:
        while self._waiting:
            group, message = self._waiting.popleft()
            try:
                async with asyncio.timeout(_SEND_S):
                    await get_channel_layer().group_send(group, message | {"type": "ring"})
            except Exception as error:  # the layer's own errors differ by backend; none may matter
                log.warning("ring failed", group=group, error=type(error).__name__)
                await asyncio.sleep(_RETRY_S)


_bells: WeakKeyDictionary[asyncio.AbstractEventLoop, Bell] = WeakKeyDictionary()


def ring(group: str, message: Message) -> None:
    """Tell all who listen to `group`, soon; call it on an event loop."""
    loop = asyncio.get_running_loop()
    bell = _bells.get(loop)
    if bell is None:
        bell = _bells[loop] = Bell()
    bell.ring(group, message)


async def listen(group: str, *, every_s: float) -> AsyncIterator[Message | None]:
    """The rings of a group for ever; None at least every `every_s` seconds, and when it is down."""
    while True:
        try:
            layer = get_channel_layer()
            channel = await layer.new_channel()
            await layer.group_add(group, channel)
            try:
                async for message in _receive(layer, channel, every_s=every_s):
                    yield message
            finally:
                await _leave(layer, group, channel)
        except (asyncio.CancelledError, GeneratorExit):
            raise
        except Exception as error:
            log.warning("ring is down", group=group, error=type(error).__name__)
            yield None
            await asyncio.sleep(_RETRY_S)


async def _leave(layer: Any, group: str, channel: str) -> None:
    """Best effort: a layer that is down must not take the place of the cancellation that ends us."""
    with suppress(Exception):
        async with asyncio.timeout(_SEND_S):
            await layer.group_discard(group, channel)


async def _receive(layer: Any, channel: str, *, every_s: float) -> AsyncIterator[Message | None]:
    pending: asyncio.Task[Message] | None = None
    try:
        while True:
            pending = pending or asyncio.ensure_future(layer.receive(channel))
            await asyncio.wait({pending}, timeout=every_s)
            if pending.done():
                message, pending = pending.result(), None
                yield message
            else:
                yield None
    finally:
        if pending is not None:
            pending.cancel()
