"""The runners of installed packages, by the entry point group `parley.runners`.

Each entry is a `HostedRunner`: an object with a `manifest` and `run(context, host)`, or a class of such
objects without arguments. An entry that cannot be loaded, or is no runner, is left out and logged with
its package: it must not stop the start, and `why_not` explains it to staff.
"""

from __future__ import annotations

import inspect
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final, cast

import structlog

from agents.host_protocol.manifest import RunnerManifest
from agents.host_protocol.runner import HostedRunner
from agents.host_protocol.runner_id import home_of

log = structlog.get_logger(__name__)

GROUP: Final = "parley.runners"


class _NotARunner(Exception):
    """The entry is no runner; the message names its fault."""


def runners() -> dict[str, HostedRunner]:
    """Return every runner that could be loaded, by the name of its entry."""
    return dict(_loaded()[0])


def faults() -> dict[str, str]:
    """Return the faults of the others, by the name of the entry."""
    return dict(_loaded()[1])


def why_not(name: str) -> str:
    """Return why there is no runner of this name, in a sentence with the fix; "" if there is one."""
    found, faults = _loaded()
    if name in found:
        return ""
    known = ", ".join(sorted(found)) or "none"
    return faults.get(name) or f"No package brings a runner named {name}. Installed: {known}."


def clear_cache() -> None:
    """Clear the cache, so that the installed packages are read again."""
    _loaded.cache_clear()


@cache
def _loaded() -> tuple[dict[str, HostedRunner], dict[str, str]]:
    found: dict[str, HostedRunner] = {}
    faults: dict[str, str] = {}
    for entry in entry_points(group=GROUP):
        try:
            if entry.name in found:
                raise _NotARunner("another package has taken this name: rename one of the entries")
            found[entry.name] = _runner(entry)
        except _NotARunner as error:
            faults.setdefault(entry.name, f"The runner {entry.name} ({entry.value}): {error}.")
            log.error("runner left out", entry=entry.name, value=entry.value, reason=str(error))
        except Exception as error:  # the package is not ours
            reason = f"it cannot be loaded ({type(error).__name__}): look in the log, mend the package"
            faults.setdefault(entry.name, f"The runner {entry.name} ({entry.value}): {reason}.")
            log.exception("runner not loaded", entry=entry.name, value=entry.value)
    return found, faults


def _runner(entry: EntryPoint) -> HostedRunner:
    loaded = entry.load()
    made = loaded() if inspect.isclass(loaded) else loaded
    run = getattr(made, "run", None)
    if not callable(run) or inspect.iscoroutinefunction(run):
        raise _NotARunner(
            "its run must be an async generator: async def run(self, context, host) with yield"
        )
    try:
        inspect.signature(run).bind(None, None)
    except TypeError:
        raise _NotARunner("its run must take context and host") from None
    _check_manifest(entry.name, getattr(made, "manifest", None))
    return cast("HostedRunner", made)


def _check_manifest(name: str, manifest: Any) -> None:
    """Refuse a runner without a manifest, or with another id than that of its entry."""
    expected = f"python:{name}"
    try:
        home_of(expected)
    except ValueError:
        raise _NotARunner("its name must be letters, digits, dots, - and _: rename the entry") from None
    if not isinstance(manifest, RunnerManifest):
        raise _NotARunner(
            f'it has no manifest: add manifest = RunnerManifest(id="{expected}", name="{name}", '
            f'label={{"en_US": "{name}"}}) to it, from agents.host_protocol.manifest '
            "(docs/extending/runners.md)"
        )
    if manifest.id != expected:
        raise _NotARunner(
            f'the id in its manifest is "{manifest.id}": say id="{expected}", or name the entry after it'
        )
