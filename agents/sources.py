"""The runners that are not installed packages: of plugin runtimes, and the command-line agent."""

from __future__ import annotations

from agents.harness.runner import HarnessRunner
from agents.hostcalls import catalogue
from agents.hosting.runner import HostedRunner
from agents.plugins import listing
from agents.plugins.runner import offered

_HARNESS: tuple[HostedRunner, ...] = (HarnessRunner(),)


def _harness() -> tuple[HostedRunner, ...]:
    return _HARNESS


def add_sources() -> None:
    """Let this process list and run them; more than once is no more."""
    catalogue.add_source(offered)
    catalogue.add_source(listing.known)
    catalogue.add_source(_harness)


async def refresh() -> None:
    """Know what runtimes offer to other processes, before the runners are listed."""
    await listing.refresh()
