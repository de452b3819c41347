"""Subprocesses of runners: allowed command lines, environment and termination.

Access to admin must not allow running programs: only the operator's settings allow command lines.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final

_ALWAYS: Final = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "USER", "LOGNAME")


def is_allowed(line: Sequence[str], entries: Iterable[str]) -> bool:
    """Return whether an entry is this command line, or its prefix if the entry ends with ` *`."""
    return any(_matches(list(line), entry) for entry in entries)


def build_environment(names: Iterable[str], more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return a program's variables: the usual ones, those named, and `more`; no secrets of Parley."""
    copied = (*_ALWAYS, *names)
    return {name: os.environ[name] for name in copied if name in os.environ} | dict(more or {})


async def end_group(process: asyncio.subprocess.Process, *, grace_s: float) -> None:
    """End a program that runs in its own session, with all its children."""
    _signal(process, signal.SIGTERM)
    with suppress(TimeoutError):
        async with asyncio.timeout(grace_s):
            await process.wait()
    _signal(process, signal.SIGKILL)
    await process.wait()


def _signal(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _matches(line: list[str], entry: str) -> bool:
    try:
        allowed = shlex.split(entry)
    except ValueError:
        return False
    if allowed[-1:] == ["*"]:
        return len(allowed) > 1 and line[: len(allowed) - 1] == allowed[:-1]
    return bool(allowed) and line == allowed
