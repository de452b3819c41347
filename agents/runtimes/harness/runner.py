"""The runner that drives a command-line agent (specs/runner-host.md, External harness runner).

Its session and working directory are stored in the conversation's state, so the next run resumes; a
session that the program does not know any more is begun anew, once. In every case the program and its
children end with the run.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Final
from uuid import UUID
from weakref import WeakKeyDictionary

import msgspec
import structlog
from msgspec import Struct
from msgspec.structs import replace

from agents.host_protocol.errors import HostRefusal
from agents.host_protocol.host_api import HostApi
from agents.host_protocol.run_context import AgentRunContext
from agents.runtimes.harness.folder_cleanup import folder_of
from agents.runtimes.harness.input_files import write_input_files
from agents.runtimes.harness.mcp_server import ServerAddress, granted_tools, serve_tools
from agents.runtimes.harness.options import MANIFEST, HarnessOptions, read_options
from agents.runtimes.harness.printed_answer import PrintedAnswer
from agents.runtimes.harness.program import Program, start_program
from config.process import subprocesses
from conversations.events import Fact

log = structlog.get_logger(__name__)

SESSION: Final = "external.session_id"
DIRECTORY: Final = "external.working_directory"
_SESSION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,199}")
_PLACEHOLDER: Final = re.compile(r"\{(?:prompt|session_id|mcp_config|mcp_url|context)\}")
_AT_ONCE: Final = 16
_limits: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore]] = WeakKeyDictionary()


class _Workspace(Struct, frozen=True):
    """The directory, files, prompt and server of one run of the program."""

    directory: str
    files: Path
    prompt: str
    server: ServerAddress


class HarnessRunner:
    """A runner that starts a binding's command-line agent for each run."""

    manifest = MANIFEST
    inlines = True  # the files of a message are written where the program can read them

    async def run(self, context: AgentRunContext, host: HostApi) -> AsyncGenerator[Fact]:
        """Yield the program's output as facts; raise RunFailure `harness.…` for options and failures."""
        options = read_options(context.config)
        async with _concurrency_limit(), _open_workspace(context, host, options) as workspace:
            session = await _read_session(host, workspace.directory)
            for resumed in [session, ""] if session else [""]:
                answer = PrintedAnswer(f"execution-{UUID(context.run_id).hex}")
                async with aclosing(_run_program(context, options, workspace, answer, resumed)) as facts:
                    async for fact in facts:
                        yield fact
                if not (resumed and answer.is_lost):
                    break
                log.info("harness session is lost; begun anew", run_id=context.run_id)
            await _store_session(host, answer.session, workspace.directory)
            for fact in answer.finish():
                yield fact


def _concurrency_limit() -> asyncio.Semaphore:
    """Return the limit of programs that run at once in a process; others wait for their turn."""
    return _limits.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(_AT_ONCE))


async def _run_program(
    context: AgentRunContext,
    options: HarnessOptions,
    workspace: _Workspace,
    answer: PrintedAnswer,
    session: str,
) -> AsyncGenerator[Fact]:
    """Run the program once and yield its facts; `answer` records them too."""
    line, in_line = _command_line(options, workspace, session)
    secrets = {"PARLEY_MCP_URL": workspace.server.url, "PARLEY_MCP_TOKEN": workspace.server.token}
    more = secrets | {
        "PARLEY_RUN_ID": context.run_id,
        "PARLEY_CONTEXT": str(workspace.files / "context.json"),
    }
    variables = subprocesses.build_environment(options.environment, more)
    async with start_program(
        line,
        directory=workspace.directory,
        environment=variables,
        input_text="" if in_line else workspace.prompt,
    ) as program:
        async for printed in program.lines():
            for fact in answer.add_line(printed, as_text=options.output == "text"):
                yield fact
        answer.code = program.code
        if program.code:
            _log_failure(context, program, variables)


def _command_line(
    options: HarnessOptions, workspace: _Workspace, session: str
) -> tuple[list[str], bool]:
    """Return the command line, and whether it contains the prompt."""
    template, prompt = options.arguments, workspace.prompt
    if session:
        template = options.resume_arguments or options.arguments
    fills = {
        "{prompt}": f" {prompt}" if prompt.startswith("-") else prompt,  # not an option
        "{session_id}": session,
        "{mcp_config}": str(workspace.files / "mcp.json"),
        "{mcp_url}": workspace.server.url,
        "{context}": str(workspace.files / "context.json"),
    }
    in_line = any("{prompt}" in word for word in template)
    return [options.command, *(_fill_in(word, fills) for word in template)], in_line


def _fill_in(word: str, fills: Mapping[str, str]) -> str:
    """Return the word with its placeholders filled in; the filled-in values are not read again."""
    return _PLACEHOLDER.sub(lambda found: fills[found[0]].replace("\x00", ""), word)


@asynccontextmanager
async def _open_workspace(
    context: AgentRunContext, host: HostApi, options: HarnessOptions
) -> AsyncIterator[_Workspace]:
    """Open the working directory, files that only this run's program may read, and the MCP server."""
    directory = options.working_directory or await asyncio.to_thread(_own_directory, context)
    async with serve_tools(granted_tools(context, host)) as server:
        files, prompt = await asyncio.to_thread(_write_run_files, context, server)
        try:
            yield _Workspace(directory, files, prompt, server)
        finally:
            await asyncio.to_thread(shutil.rmtree, files, ignore_errors=True)


def _own_directory(context: AgentRunContext) -> str:
    """Return the conversation's own folder under VAR_DIR, or the run's if it has no conversation."""
    conversation = context.conversation.conversation_id if context.conversation else None
    found = folder_of(UUID(conversation or context.run_id))
    if conversation is None:
        found = found.with_name(f"run-{found.name}")
    found.mkdir(mode=0o700, parents=True, exist_ok=True)
    return str(found)


def _write_run_files(context: AgentRunContext, server: ServerAddress) -> tuple[Path, str]:
    """Write the files for the program; return their folder, and the prompt, which names them."""
    files = Path(tempfile.mkdtemp(prefix="parley-harness-"))
    (files / "mcp.json").write_text(server.config)
    prompt = write_input_files(context.input, files)
    words = tuple(part for part in context.input.contents if part.type == "text")
    in_words = replace(context, input=replace(context.input, contents=words))
    (files / "context.json").write_text(json.dumps(msgspec.to_builtins(in_words), ensure_ascii=False))
    return files, prompt


async def _read_session(host: HostApi, directory: str) -> str:
    """Return the session to resume: the conversation's, if it began in this directory; else ""."""
    try:
        session = await host.state.get("conversation", SESSION)
        began_in = await host.state.get("conversation", DIRECTORY)
    except HostRefusal:  # the binding has no state: every run is the first
        return ""
    usable = isinstance(session, str) and bool(_SESSION.fullmatch(session)) and began_in == directory
    return str(session) if usable else ""


async def _store_session(host: HostApi, session: str, directory: str) -> None:
    if not session:
        return
    try:
        await host.state.set("conversation", SESSION, session)
        await host.state.set("conversation", DIRECTORY, directory)
    except HostRefusal as refusal:
        log.info("harness session is not kept", why=refusal.message)


def _log_failure(context: AgentRunContext, program: Program, variables: Mapping[str, str]) -> None:
    """Log the end of a failed program's error output, without the values of its variables."""
    printed = program.error_output
    for value in sorted(variables.values(), key=len, reverse=True):
        if len(value) >= 6:
            printed = printed.replace(value, "***")
    log.warning("harness failed", run_id=context.run_id, code=program.code, printed=printed[-500:])
