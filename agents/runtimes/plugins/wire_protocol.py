"""The differences between the generations of the plugin SDK, as one interface (specs/runner-host.md).

Each generation has a module: `released_protocol` and `v1_protocol`. The other modules of this package do
not depend on the generation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from agents.host_protocol.manifest import RunnerManifest
from agents.host_protocol.run_context import AgentRunContext
from agents.runtimes.plugins.envelopes import Request

MAX_RUNNERS: Final = 256


class WireProtocol(ABC):
    """One generation's protocol, for one connection."""

    name: ClassVar[str]
    run_action: ClassVar[str]
    list_action: ClassVar[str]
    paced: ClassVar[bool] = False
    cut: ClassVar[bool] = False
    lenient: ClassVar[bool] = False
    cancels: ClassVar[bool] = False
    context: dict[str, Any] | None = None  # of each of Parley's requests

    @abstractmethod
    def greeting(self) -> tuple[str, dict[str, Any]]:
        """Return the request (action, payload) that introduces Parley; then plugins start."""

    @abstractmethod
    def manifest(self, entry: Mapping[str, Any]) -> RunnerManifest:
        """Return a listed runner; raise ValueError (also msgspec's), TypeError or KeyError."""

    @abstractmethod
    def run_context(self, context: AgentRunContext) -> dict[str, Any]:
        """Return the run in the form of this generation's entities."""

    def settings(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        """Return the reply to `get_plugin_settings`, without which a plugin does not start.

        Every plugin is enabled, and bindings configure its runners.
        """
        return {
            "enabled": True,
            "priority": 0,
            "plugin_config": {},
            "install_source": "local",
            "install_info": {},
        }

    @abstractmethod
    def caller(self, request: Request) -> str | None:
        """Return the calling plugin, `author/name`, as far as the runtime vouches for it."""

    @abstractmethod
    def answer(self, action: str, payload: dict[str, Any]) -> dict[str, Any]:
        """Return a Host reply in the form of this generation's entities."""


def read_runners(protocol: WireProtocol, entries: Any) -> tuple[dict[str, RunnerManifest], list[str]]:
    """Return the valid runners of a list by id, and the invalid ones with their reasons (H01)."""
    found: dict[str, RunnerManifest] = {}
    passed_over = []
    for entry in (entries if isinstance(entries, list) else [])[:MAX_RUNNERS]:
        try:
            manifest = protocol.manifest(entry)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            passed_over.append(f"{_name(entry)}: {_why(error)}"[:300])
            continue
        found.setdefault(manifest.id, manifest)
    return found, passed_over


def _name(entry: Any) -> str:
    """Return the own name of a listed runner, valid or not."""
    if not isinstance(entry, Mapping):
        return "an entry that is no object"
    parts = ("plugin_author", "plugin_name", "runner_name")
    return "/".join(str(entry.get(part, "?"))[:60] for part in parts)


def _why(error: Exception) -> str:
    return f"{error.args[0]} is missing" if isinstance(error, KeyError) else str(error)
