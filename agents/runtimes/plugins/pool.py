"""The runtimes of this process: connected as staff enter them, each in its own task."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from agents.runtimes.plugins.connection import RuntimeLink
from agents.runtimes.plugins.runtime import Runtime, hold_runtimes, release
from config.process.reconnecting import Pool

# two connections to a stdio runtime would both be the same program
_pool: Final[Pool[Runtime, RuntimeLink]] = Pool(
    RuntimeLink, rows="plugin runtimes", goodbye_s=6, one_at_a_time=True
)


def links() -> tuple[RuntimeLink, ...]:
    """Return this loop's links by name, or this process's in an OS thread without a loop; never wait."""
    return tuple(sorted(_pool.links(), key=lambda link: link.runtime.name))


async def connect_for_ever(worker: str) -> None:
    """Keep a connection to each of this worker's runtimes, until cancelled."""
    connected: list[int] = []

    async def read() -> dict[int, Runtime]:
        found = await hold_runtimes(worker)
        connected[:] = found
        return found

    try:
        await _pool.keep(read)
    finally:
        if connected:
            with suppress(Exception):
                await release(connected, worker)
