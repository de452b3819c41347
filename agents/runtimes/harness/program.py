"""One program of one run: in a group of its own, heard within bounds, ended with all it started."""

from __future__ import annotations

import asyncio
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

from agents.runners.base import RunFailure
from config.process import subprocesses

_LONGEST_LINE: Final = 4 * 1024 * 1024
_MOST_OUTPUT: Final = 32 * 1024 * 1024
_TAIL: Final = 2_000
_GRACE_S: Final = 1.0


class Program:
    """A program that runs. Its lines are read once; afterwards `code` says how it ended."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._tail = b""
        self.code = 0

    async def lines(self) -> AsyncIterator[bytes]:
        """What it prints, to its end. RunFailure `harness.output_too_large` beyond 32 MiB."""
        assert self._process.stdout is not None
        size = 0
        while True:
            try:
                line = await self._process.stdout.readline()
            except ValueError:
                raise _too_large() from None
            if not line:
                break
            size += len(line)
            if size > _MOST_OUTPUT:
                raise _too_large()
            yield line
        self.code = await self._process.wait()

    async def tell(self, text: str) -> None:
        """Write to its input and close that; a program that does not read it is left alone."""
        stdin = self._process.stdin
        if stdin is None:
            return
        with suppress(ConnectionError):
            stdin.write(text.encode(errors="replace"))
            await stdin.drain()
        stdin.close()

    async def listen_to_errors(self) -> None:
        """Keep the end of what it prints as errors; the rest is let go."""
        assert self._process.stderr is not None
        while some := await self._process.stderr.read(8192):
            self._tail = (self._tail + some)[-_TAIL:]

    @property
    def complaint(self) -> str:
        """The end of what it printed as errors."""
        return self._tail.decode(errors="replace").strip()


@asynccontextmanager
async def started(
    line: Sequence[str], *, directory: str, environment: Mapping[str, str], told: str
) -> AsyncIterator[Program]:
    """The program, told this at its input; ended at the latest a second after we leave.

    RunFailure `harness.command_not_found` or `harness.working_directory_not_found`.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            *line,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            cwd=directory,
            env=dict(environment),
            limit=_LONGEST_LINE,
            start_new_session=True,
        )
    except NotADirectoryError:
        raise _no_directory() from None
    except (FileNotFoundError, PermissionError) as error:
        if error.filename == directory:
            raise _no_directory() from None
        raise RunFailure(
            "harness.command_not_found", "The harness's command cannot be started."
        ) from None
    except OSError:  # the line is longer than the system takes, or it is out of something
        raise RunFailure("harness.failed", "The harness's command cannot be started.") from None
    program = Program(process)
    chores = [asyncio.create_task(program.tell(told)), asyncio.create_task(program.listen_to_errors())]
    try:
        yield program
    finally:
        await asyncio.shield(_end(process, chores))


async def _end(process: asyncio.subprocess.Process, chores: list[asyncio.Task[None]]) -> None:
    await subprocesses.end_group(process, grace_s=_GRACE_S)
    await asyncio.wait(chores, timeout=_GRACE_S)
    for chore in chores:
        chore.cancel()
    await asyncio.gather(*chores, return_exceptions=True)


def _too_large() -> RunFailure:
    return RunFailure("harness.output_too_large", "The harness printed more than it may.")


def _no_directory() -> RunFailure:
    return RunFailure(
        "harness.working_directory_not_found", "The harness's working directory is not there."
    )
