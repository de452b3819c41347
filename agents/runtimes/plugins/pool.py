"""The runtimes of this process: connected as staff enter them, each in its own task."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from agents.runtimes.plugins.connection import RuntimeLink
from agents.runtimes.plugins.runtime import Runtime, release, to_connect
from config.process.reconnecting import Pool

# two connections to a stdio runtime would both be the same program
_pool: Final[Pool[Runtime, RuntimeLink]] = Pool(
    RuntimeLink, rows="plugin runtimes", goodbye_s=6, one_at_a_time=True
)


def links() -> tuple[RuntimeLink, ...]:
    """The links of this loop by name or, in a thread without one, of this process; never waits."""
    return tuple(sorted(_pool.links(), key=lambda link: link.runtime.name))


async def connect_for_ever(worker: str) -> None:
    """Keep a connection to each runtime that is this worker's, for ever."""
    held: list[int] = []

    async def read() -> dict[int, Runtime]:
        found = await to_connect(worker)
        held[:] = found
        return found

    try:
        await _pool.keep(read)
    finally:
        if held:
            with suppress(Exception):
                await release(held, worker)
