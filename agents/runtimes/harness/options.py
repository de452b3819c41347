"""The options of a harness in a binding: program, arguments, working directory and variables."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

from django.conf import settings
from msgspec import Struct

from agents.host_protocol.manifest import Capabilities, FormItem, Permissions, RunnerManifest
from agents.runners.base import RunFailure
from config.process.subprocesses import is_allowed

Output = Literal["jsonl", "text"]
RUNNER_ID: Final = "builtin:harness"


def _item(kind: str, name: str, label: str, description: str, **more: Any) -> FormItem:
    return FormItem(
        type=kind, name=name, label={"en_US": label}, description={"en_US": description}, **more
    )


MANIFEST: Final = RunnerManifest(
    id=RUNNER_ID,
    name="harness",
    label={"en_US": "Command-line agent", "zh_Hans": "命令行智能体"},
    description={"en_US": "Runs a command-line agent, such as Claude Code or Codex, for each run."},
    capabilities=Capabilities(
        streaming=True,
        tool_calling=True,
        knowledge_retrieval=True,
        interrupt=True,
        stateful_session=True,
    ),
    permissions=Permissions(
        tools=("detail", "call"), knowledge_bases=("list", "retrieve"), history=("page", "search")
    ),
    config_schema=(
        _item(
            "string", "command", "Command", "The program; RUNNER_COMMANDS must allow the whole line.",
            required=True,
        ),
        _item(
            "text", "arguments", "Arguments",
            "As in a shell, without one: {prompt}, {mcp_config}, {mcp_url} and {context} are filled in. "
            "Without {prompt} the prompt goes to the program's input.",
        ),
        _item(
            "text", "resume_arguments", "Arguments to resume",
            "Instead of these, when the conversation has a session: {session_id} is filled in.",
        ),
        _item(
            "string", "working_directory", "Working directory",
            "Empty: a folder of its own for each conversation.",
        ),
        _item(
            "string", "environment", "Environment",
            "Names of variables that it gets, with spaces between; RUNNER_ENV must name them.",
        ),
        _item(
            "select", "output", "Output", "What it prints.", default="jsonl",
            options=[{"name": "jsonl", "label": {"en_US": "JSON lines"}},
                     {"name": "text", "label": {"en_US": "text"}}],
        ),
    ),
)  # fmt: skip


class HarnessOptions(Struct, frozen=True, kw_only=True):
    """The checked options of one binding's harness."""

    command: str
    arguments: tuple[str, ...]
    resume_arguments: tuple[str, ...]
    working_directory: str
    environment: tuple[str, ...]
    output: Output


def read_options(config: Mapping[str, Any]) -> HarnessOptions:
    """Return the config as a value; raise RunFailure `harness.config_invalid` with the error."""
    command = _text(config, "command")
    if not command:
        raise _invalid("The binding names no command.")
    options = HarnessOptions(
        command=command,
        arguments=_words(config, "arguments"),
        resume_arguments=_words(config, "resume_arguments"),
        working_directory=_text(config, "working_directory"),
        environment=tuple(_text(config, "environment").replace(",", " ").split()),
        output="text" if config.get("output") == "text" else "jsonl",
    )
    for arguments in {options.arguments, options.resume_arguments or options.arguments}:
        if not is_allowed([command, *arguments], settings.RUNNER_COMMANDS):
            raise _invalid("RUNNER_COMMANDS does not allow the binding's command line.")
    if unknown := sorted(set(options.environment) - set(settings.RUNNER_ENV)):
        raise _invalid(f"RUNNER_ENV does not name {', '.join(unknown)[:200]}.")
    if options.working_directory and not Path(options.working_directory).is_absolute():
        raise _invalid("The working directory must be an absolute path.")
    return options


def _invalid(message: str) -> RunFailure:
    return RunFailure("harness.config_invalid", message)


def _text(config: Mapping[str, Any], name: str) -> str:
    value = config.get(name)
    return value.strip() if isinstance(value, str) else ""


def _words(config: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = config.get(name)
    if isinstance(value, list):
        return tuple(str(word) for word in value)
    try:
        return tuple(shlex.split(value if isinstance(value, str) else ""))
    except ValueError:
        raise _invalid(f"The binding's {name} have a quote that is not closed.") from None
