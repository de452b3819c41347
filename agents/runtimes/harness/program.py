"""One program of one run: in its own process group, with limited output, ended with its children."""

from __future__ import annotations

import asyncio
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

from agents.runners.base import RunFailure
from config.process import subprocesses

_LONGEST_LINE: Final = 4 * 1024 * 1024
_MAX_OUTPUT: Final = 32 * 1024 * 1024
_TAIL: Final = 2_000
_GRACE_S: Final = 1.0


class Program:
    """A running program; its lines are read once, and then `code` is its exit code."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._tail = b""
        self.code = 0

    async def lines(self) -> AsyncIterator[bytes]:
        """Yield the output's lines; raise RunFailure `harness.output_too_large` beyond 32 MiB."""
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
            if size > _MAX_OUTPUT:
                raise _too_large()
            yield line
        self.code = await self._process.wait()

    async def write_input(self, text: str) -> None:
        """Write to the program's input and close it; ignore a program that does not read it."""
        stdin = self._process.stdin
        if stdin is None:
            return
        with suppress(ConnectionError):
            stdin.write(text.encode(errors="replace"))
            await stdin.drain()
        stdin.close()

    async def read_errors(self) -> None:
        """Keep the end of the error output, and drop the rest."""
        assert self._process.stderr is not None
        while some := await self._process.stderr.read(8192):
            self._tail = (self._tail + some)[-_TAIL:]

    @property
    def error_output(self) -> str:
        """Return the end of the error output."""
        return self._tail.decode(errors="replace").strip()


@asynccontextmanager
async def start_program(
    command_line: Sequence[str], *, directory: str, environment: Mapping[str, str], input_text: str
) -> AsyncIterator[Program]:
    """Start the program with `input_text` as its input; end it at the latest a second after the context.

    Raise RunFailure `harness.command_not_found` or `harness.working_directory_not_found`.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            *command_line,
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
    except OSError:  # the line is too long for the system, or the system lacks resources
        raise RunFailure("harness.failed", "The harness's command cannot be started.") from None
    program = Program(process)
    tasks = [
        asyncio.create_task(program.write_input(input_text)),
        asyncio.create_task(program.read_errors()),
    ]
    try:
        yield program
    finally:
        await asyncio.shield(_end(process, tasks))


async def _end(process: asyncio.subprocess.Process, tasks: list[asyncio.Task[None]]) -> None:
    await subprocesses.end_group(process, grace_s=_GRACE_S)
    await asyncio.wait(tasks, timeout=_GRACE_S)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _too_large() -> RunFailure:
    return RunFailure("harness.output_too_large", "The harness printed more than it may.")


def _no_directory() -> RunFailure:
    return RunFailure(
        "harness.working_directory_not_found", "The harness's working directory is not there."
    )
