"""Runs that take longer than a lease, and a sweeper that looks at them from outside."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

from config import database
from conversations.runs.sweeper import Sweeper
from tests.support.fakes.fake_model import Answer, Pause, text


async def sweep_elsewhere(seconds: float) -> None:
    """Sweep as another process would: what looks dead from there is settled."""
    sweeper, until = Sweeper(), time.monotonic() + seconds
    while time.monotonic() < until:
        await sweeper.sweep()
        await asyncio.sleep(0.2)
    await database.close()


def slowly(words: int) -> Answer:
    """An answer that takes a tenth of a second for each word."""
    spoken = text(*["word "] * words)
    return replace(spoken, steps=tuple(part for step in spoken.steps for part in (step, Pause(0.1))))
