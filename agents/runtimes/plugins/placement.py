"""Who can serve a run of a plugin's runner: this process, another worker, or soon one of them.

Of the worker processes one holds the connection to a runtime over WebSocket. A run that another one
claimed is handed to it before anything is said. While the runtime is on its way (its worker died and the
hold lapses, it is being restarted, a program starts) the run waits, PLUGIN_WAIT_S at most.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final

import msgspec
from django.conf import settings
from msgspec import Struct

from agents.host import runner_catalogue
from agents.runners.base import RunFailure
from agents.runtimes.plugins.runner_listing import LATELY_S, ListedRunner
from config import sql

_LOOK_S: Final = 0.2
_OFFERS: Final = """
SELECT max(held_by) FILTER (
    WHERE transport = 'websocket' AND status = 'connected'
    AND held_until > now() AND held_by <> %(worker)s
) FROM agents_pluginruntime
WHERE is_active AND runners @> %(runner)s::jsonb
    AND seen_at > now() - make_interval(secs => %(lately_s)s)
HAVING count(*) > 0
"""


class Elsewhere(Exception):
    """Another worker holds the connection of the run's runner."""

    def __init__(self, worker: str) -> None:
        super().__init__(worker)
        self.worker = worker


async def reach(runner_id: str, *, worker: str) -> None:
    """Return when this process can run the runner, or when nobody offers it, which the run then says.

    Elsewhere where another worker can. RunFailure `runner.unavailable` after PLUGIN_WAIT_S.
    """
    until = time.monotonic() + settings.PLUGIN_WAIT_S
    while runner_id.startswith("plugin:") and not _is_here(runner_id):
        offered = await _offer(runner_id, worker)
        if offered is None:
            return
        if offered.holder:
            raise Elsewhere(offered.holder)
        if time.monotonic() >= until:
            raise RunFailure(
                "runner.unavailable", "No worker is connected to the plugin runtime now.", retryable=True
            )
        await asyncio.sleep(_LOOK_S)


class _Offer(Struct, frozen=True):
    holder: str


def _is_here(runner_id: str) -> bool:
    found = runner_catalogue.find(runner_id)
    return found is not None and not isinstance(found, ListedRunner)


async def _offer(runner_id: str, worker: str) -> _Offer | None:
    """Which other worker holds its runtime, "" if none does now; None of a runner that nobody offers."""
    asked: dict[str, Any] = {
        "worker": worker,
        "lately_s": 2 * settings.PLUGIN_REFRESH_S + LATELY_S,
        "runner": msgspec.json.encode([{"id": runner_id}]).decode(),
    }
    row = await sql.one(_OFFERS, asked)
    return _Offer(row[0] or "") if row else None
