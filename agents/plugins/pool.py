"""The runtimes of this process: connected as staff enter them, each in its own task."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from contextvars import Context
from typing import Final
from weakref import WeakKeyDictionary

import structlog

from agents.plugins.link import Link
from agents.plugins.rows import Runtime, release, to_connect

log = structlog.get_logger(__name__)

_LOOK_S: Final = 1.0
_GOODBYE_S: Final = 6.0
_Kept = dict[int, tuple[Link, asyncio.Task[None]]]
_of_loop: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, _Kept]] = WeakKeyDictionary()


def links() -> tuple[Link, ...]:
    """The links of this loop by name or, in a thread without one, of this process; never waits."""
    try:
        found = [_of_loop.get(asyncio.get_running_loop(), {})]
    except RuntimeError:
        found = list(_of_loop.values())
    all_links = [link for kept in found for link, _ in list(kept.values())]
    return tuple(sorted(all_links, key=lambda link: link.runtime.name))


async def connect_for_ever(worker: str) -> None:
    """Keep a connection to each runtime that is this worker's, for ever."""
    kept = _of_loop.setdefault(asyncio.get_running_loop(), {})
    ending: dict[int, asyncio.Task[None]] = {}
    try:
        while True:
            try:
                _adjust(kept, {one.id: one for one in await to_connect(worker)}, ending)
            except Exception as error:  # the database is away: keep what there is
                log.warning("reading plugin runtimes failed", error=type(error).__name__)
            await asyncio.sleep(_LOOK_S)
    finally:
        held = list(kept)
        _adjust(kept, {}, ending)
        if ending:
            await asyncio.wait(ending.values(), timeout=_GOODBYE_S)
        if held:
            with suppress(Exception):
                await release(held, worker)


def _adjust(kept: _Kept, wanted: dict[int, Runtime], ending: dict[int, asyncio.Task[None]]) -> None:
    """End what changed or went, and begin what is new, without waiting for either.

    A runtime's new connection begins when its old one has ended: both would be the same program.
    """
    for known in [known for known, (link, _) in kept.items() if wanted.get(known) != link.runtime]:
        link, task = kept.pop(known)
        link.runners = {}
        task.cancel()
        ending[known] = task
    for known in [known for known, task in ending.items() if task.done()]:
        del ending[known]
    for known, runtime in wanted.items():
        if known not in kept and known not in ending:
            link = Link(runtime)
            kept[known] = (link, asyncio.create_task(link.keep(), context=Context()))
