"""The runners that plugin runtimes offer to any process of this installation, read from their rows.

A process without a worker has no connection of its own; it lists these, for staff and for clients.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, Final

import msgspec
from django.conf import settings

from agents.host_protocol.host_api import HostApi
from agents.host_protocol.manifest import RunnerManifest
from agents.host_protocol.results import RunResult
from agents.host_protocol.run_context import AgentRunContext
from agents.runners.base import RunFailure
from config import sql
from config.cache import CachedValue

_LISTED: Final = """
SELECT runners FROM agents_pluginruntime
WHERE is_active AND status = 'connected' AND seen_at > now() - make_interval(secs => %s)
ORDER BY name
"""
LATELY_S: Final = 15.0
_runners: tuple[ListedRunner, ...] = ()


class ListedRunner:
    """A runner that another process can reach."""

    def __init__(self, manifest: RunnerManifest) -> None:
        self.manifest = manifest

    async def run(self, context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
        """Raise RunFailure `runner.unavailable`, because another process has the connection."""
        yield _fail_elsewhere()


def _fail_elsewhere() -> RunResult:
    message = "The plugin runtime is connected to another worker."
    raise RunFailure("runner.unavailable", message, retryable=True)


def known_runners() -> tuple[ListedRunner, ...]:
    """Return the runners of the last `refresh`; never wait."""
    return _runners


async def refresh() -> None:
    """Read the runners again if the last time is half a second ago."""
    global _runners
    _runners = await _cache.get()


def manifest_to_json(manifest: RunnerManifest) -> dict[str, Any]:
    """Return a runner in the form of its runtime's row."""
    return {"id": manifest.id, "title": manifest.title, "manifest": msgspec.to_builtins(manifest)}


async def _fetch_runners() -> tuple[ListedRunner, ...]:
    found = await sql.every(_LISTED, (2 * settings.PLUGIN_REFRESH_S + LATELY_S,))
    listed = [one for row in found for one in row[0]]
    return tuple(
        ListedRunner(msgspec.convert(one["manifest"], RunnerManifest, strict=False)) for one in listed
    )


_cache: Final = CachedValue(_fetch_runners, seconds=0.5)
