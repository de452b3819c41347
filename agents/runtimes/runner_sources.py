"""The sources of runners outside installed packages: plugin runtimes, and the command-line agent."""

from __future__ import annotations

from typing import Final

from agents.host import runner_catalogue
from agents.host_protocol.runner import HostedRunner
from agents.runtimes.harness.runner import HarnessRunner
from agents.runtimes.plugins import runner_listing
from agents.runtimes.plugins.runner import reachable_runners

_HARNESS: Final = HarnessRunner()


def _harness() -> list[HostedRunner]:
    return [_HARNESS]


def add_sources() -> None:
    """Let this process list and run them; a repeated call has no effect."""
    runner_catalogue.add_source(reachable_runners)
    runner_catalogue.add_source(runner_listing.known_runners)
    runner_catalogue.add_source(_harness)


async def refresh() -> None:
    """Read the runners that runtimes offer to other processes, before all runners are listed."""
    await runner_listing.refresh()
