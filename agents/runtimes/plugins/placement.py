"""The process that can serve a run of a plugin's runner: this one, another worker, or soon one of them.

One of the worker processes holds the connection to a runtime over WebSocket. A run that another worker
has claimed is handed to that process before any output. While the runtime is not available (its worker
died and the hold expires, it is restarted, a program starts) the run waits, at most PLUGIN_WAIT_S.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final

import msgspec
from django.conf import settings

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


class RunnerElsewhere(Exception):
    """Another worker holds the connection of the run's runner; the message is its name."""


async def wait_until_reachable(runner_id: str, *, worker: str) -> None:
    """Return when this process can run the runner, or when no runtime offers it; the run then fails.

    Raise RunnerElsewhere if another worker can run it, RunFailure `runner.unavailable` after
    PLUGIN_WAIT_S.
    """
    until = time.monotonic() + settings.PLUGIN_WAIT_S
    while runner_id.startswith("plugin:") and not _is_here(runner_id):
        holder = await _find_holder(runner_id, worker)
        if holder is None:
            return
        if holder:
            raise RunnerElsewhere(holder)
        if time.monotonic() >= until:
            raise RunFailure(
                "runner.unavailable", "No worker is connected to the plugin runtime now.", retryable=True
            )
        await asyncio.sleep(_LOOK_S)


def _is_here(runner_id: str) -> bool:
    found = runner_catalogue.find(runner_id)
    return found is not None and not isinstance(found, ListedRunner)


async def _find_holder(runner_id: str, worker: str) -> str | None:
    """Return the worker that holds the runner's runtime, or ""; None if no runtime offers it."""
    parameters: dict[str, Any] = {
        "worker": worker,
        "lately_s": 2 * settings.PLUGIN_REFRESH_S + LATELY_S,
        "runner": msgspec.json.encode([{"id": runner_id}]).decode(),
    }
    row = await sql.one(_OFFERS, parameters)
    return row and (row[0] or "")
