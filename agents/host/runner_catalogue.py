"""All available runners: built-in ones, those of installed packages, and those of other sources.

A source is read each time, and returns the runners that are live. An entry with a wrong manifest is left
out with a warning; the others are listed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import structlog
from msgspec.structs import replace

from agents.host_protocol.manifest import Capabilities, RunnerManifest
from agents.host_protocol.runner import HostedRunner
from agents.host_protocol.runner_id import home_of
from agents.runners import registry

log = structlog.get_logger(__name__)

Source = Callable[[], Iterable[HostedRunner]]
CHAT: Final = "builtin:chat"
DEMO: Final = "builtin:demo"
BUILTIN: Final = {
    manifest.id: manifest
    for manifest in (
        RunnerManifest(
            id=CHAT,
            name="chat",
            label={"en_US": "Model-driven"},
            description={"en_US": "Asks the run's model, and runs the tools that it calls."},
            capabilities=Capabilities(
                streaming=True,
                tool_calling=True,
                multimodal_input=True,
                interrupt=True,
                self_managed_context=False,
            ),
        ),
        RunnerManifest(
            id=DEMO,
            name="demo",
            label={"en_US": "Offline demo"},
            description={"en_US": "Answers without a model, from the exercise library."},
            capabilities=Capabilities(streaming=True, tool_calling=True, interrupt=True),
        ),
    )
}
_MAX_WARNINGS: Final = 1_000
_warned: set[tuple[str, str]] = set()
_sources: list[Source] = []


def add_source(read: Source) -> None:
    """Add the source `read` to the list."""
    if read not in _sources:
        _sources.append(read)


def find_hosted() -> dict[str, HostedRunner]:
    """Return the available hosted runners by id."""
    found: dict[str, HostedRunner] = {}
    for runner in (*registry.runners().values(), *_read_sources()):
        if (known := _valid_id(runner)) and known not in found:
            found[known] = runner
    return found


def list_manifests() -> list[RunnerManifest]:
    """Return the manifests of all runners, the built-in ones first."""
    return [*BUILTIN.values(), *(runner.manifest for runner in find_hosted().values())]


def find(runner_id: str) -> HostedRunner | None:
    """Return the hosted runner with this id, if it is available."""
    return find_hosted().get(runner_id)


def explain_absence(runner_id: str) -> str:
    """Return why no runner of this id is available, for staff; "" if it is, or if unknown."""
    home, _, name = runner_id.partition(":")
    return registry.why_not(name) if home == "python" and find(runner_id) is None else ""


def _read_sources() -> list[HostedRunner]:
    found: list[HostedRunner] = []
    for read in _sources:
        try:
            found += read()
        except Exception:  # one broken source must not affect the others
            log.exception("runner source failed")
    return found


def _valid_id(runner: HostedRunner) -> str | None:
    """Return the runner's id; None, with a warning, if its manifest is wrong."""
    try:
        home_of(runner.manifest.id)
        replace(runner.manifest)
    except (ValueError, TypeError, AttributeError) as problem:
        _warn(str(getattr(runner, "manifest", ""))[:100], str(problem)[:200])
        return None
    return runner.manifest.id


def _warn(runner: str, reason: str) -> None:
    """Log a warning only once: the runners are listed for every run."""
    if (runner, reason) not in _warned and len(_warned) < _MAX_WARNINGS:
        _warned.add((runner, reason))
        log.warning("runner left out", runner=runner, reason=reason)
