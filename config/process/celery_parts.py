"""The parts of Celery that run inside Parley's processes, where there is a broker.

Celery is imported only then: it is a twentieth of what a process imports.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from django.conf import settings


@asynccontextmanager
async def receive_wake_ups() -> AsyncIterator[None]:
    """Receive Celery's messages inside the block, if a broker brings any."""
    if not settings.CELERY_BROKER_URL:
        yield
        return
    from config.process.celery_threads import Consumer

    consumer = Consumer()
    consumer.start()
    try:
        yield
    finally:
        await asyncio.to_thread(consumer.stop)


@asynccontextmanager
async def schedule_chores() -> AsyncIterator[None]:
    """Send the periodic tasks inside the block, if there is a broker for them."""
    if not settings.CELERY_BROKER_URL:
        yield
        return
    from config.process.celery_beat import Beat

    beat = Beat(settings.VAR_DIR)
    beat.start()
    try:
        yield
    finally:
        await asyncio.to_thread(beat.stop)
