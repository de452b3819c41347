"""Programs that Parley starts for runners: which are allowed, with which variables, and how they end.

Who may edit admin may not thereby run programs here: whoever runs Parley names the command lines.
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
    """Whether one of the entries is this command line, or its beginning if the entry ends in ` *`."""
    return any(_fits(list(line), entry) for entry in entries)


def environment(names: Iterable[str], more: Mapping[str, str] | None = None) -> dict[str, str]:
    """The variables of a program: the usual ones, those named, and `more`; never our own secrets."""
    wanted = (*_ALWAYS, *names)
    return {name: os.environ[name] for name in wanted if name in os.environ} | dict(more or {})


async def end_group(process: asyncio.subprocess.Process, *, grace_s: float) -> None:
    """End a program that was started in a session of its own, with all that it started."""
    _signal(process, signal.SIGTERM)
    with suppress(TimeoutError):
        async with asyncio.timeout(grace_s):
            await process.wait()
    _signal(process, signal.SIGKILL)
    await process.wait()


def _signal(process: asyncio.subprocess.Process, wanted: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, wanted)


def _fits(line: list[str], entry: str) -> bool:
    try:
        allowed = shlex.split(entry)
    except ValueError:
        return False
    if allowed[-1:] == ["*"]:
        return len(allowed) > 1 and line[: len(allowed) - 1] == allowed[:-1]
    return bool(allowed) and line == allowed
