"""Parse the output of command-line agents, line by line. Pure functions.

The three dialects in use can be recognized: Claude Code's `stream-json`, Codex's `exec --json` and
Gemini's `stream-json`. A line of another form, or without JSON, is ignored.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from msgspec import Struct


class ProgramSession(Struct, frozen=True):
    """The id by which the program can resume the conversation."""

    id: str


class TextDelta(Struct, frozen=True):
    """The next piece of a text."""

    text: str


class WholeText(Struct, frozen=True):
    """A complete text, which may follow its pieces."""

    text: str


class ToolStarted(Struct, frozen=True):
    id: str
    name: str
    parameters: dict[str, Any]


class ToolFinished(Struct, frozen=True):
    id: str
    ok: bool
    result: str


class ProgramDone(Struct, frozen=True):
    """The end; `text` is the whole answer if the program prints it again."""

    text: str = ""
    input_tokens: int = 0
    output_tokens: int = 0


class ProgramFailed(Struct, frozen=True):
    """The program's report of its failure."""

    message: str


OutputItem = (
    ProgramSession | TextDelta | WholeText | ToolStarted | ToolFinished | ProgramDone | ProgramFailed
)


def parse_line(line: bytes) -> Iterator[OutputItem]:
    """Yield the content of a line."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return
    if not isinstance(value, dict):
        return
    session = value.get("session_id") or value.get("thread_id")
    if isinstance(session, str) and session:
        yield ProgramSession(session[:200])
    try:
        yield from _parse_value(value)
    except (AttributeError, TypeError, KeyError, ValueError):  # a form that no known program prints
        return


def _parse_value(value: dict[str, Any]) -> Iterator[OutputItem]:
    match value:
        case {"type": "stream_event", "event": {"delta": {"type": "text_delta", "text": str(text)}}}:
            yield TextDelta(text)
        case {"type": "assistant" | "user", "message": {"content": list(parts)}}:
            yield from _parse_parts(parts)
        case {"type": "message", "role": "assistant", "content": str(text)}:
            yield TextDelta(text) if value.get("delta") else WholeText(text)
        case {"type": "tool_use", "tool_name": str(name), "tool_id": str(call)}:
            yield ToolStarted(call, name, _object(value.get("parameters")))
        case {"type": "tool_result", "tool_id": str(call)}:
            yield ToolFinished(call, value.get("status") == "success", _text(value.get("output")))
        case {"type": "item.started" | "item.completed" as kind, "item": dict(item)}:
            yield from _parse_item(kind, item)
        case {"type": "turn.failed", "error": error}:
            yield ProgramFailed(_text(error))
        case {"type": "error", "message": str(message)}:
            yield ProgramFailed(message)
        case {"type": "turn.completed"}:
            yield _parse_end(value.get("usage"))
        case {"type": "result"} if value.get("is_error") or value.get("status") == "error":
            yield ProgramFailed(_text(value.get("result") or value.get("error")))
        case {"type": "result"}:
            yield _parse_end(value.get("usage") or value.get("stats"), _text(value.get("result")))


def _parse_parts(parts: list[Any]) -> Iterator[OutputItem]:
    for part in parts:
        match part:
            case {"type": "text", "text": str(text)}:
                yield WholeText(text)
            case {"type": "tool_use", "id": str(call), "name": str(name)}:
                yield ToolStarted(call, name, _object(part.get("input")))
            case {"type": "tool_result", "tool_use_id": str(call)}:
                yield ToolFinished(call, not part.get("is_error"), _text(part.get("content")))


def _parse_item(kind: str, item: dict[str, Any]) -> Iterator[OutputItem]:
    call = str(item.get("id") or "")
    match item.get("type"):
        case "agent_message" if kind == "item.completed":
            yield WholeText(_text(item.get("text")))
        case "mcp_tool_call":
            yield ToolStarted(call, str(item.get("tool")), _object(item.get("arguments")))
        case "command_execution":
            yield ToolStarted(call, "shell", {"command": item.get("command")})
        case _:
            return
    if kind == "item.completed" and item.get("type") != "agent_message":
        failed = item.get("status") == "failed" or item.get("exit_code") not in (None, 0)
        outcome = item.get("result") or item.get("aggregated_output") or item.get("error")
        yield ToolFinished(call, not failed, _text(outcome))


def _parse_end(usage: Any, text: str = "") -> ProgramDone:
    counts = _object(usage)
    return ProgramDone(text, _count(counts.get("input_tokens")), _count(counts.get("output_tokens")))


def _count(value: Any) -> int:
    return value if isinstance(value, int) and value >= 0 else 0


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    """Return the text of any of the forms that contain one."""
    match value:
        case str():
            return value
        case None:
            return ""
        case {"message": str(text)} | {"text": str(text)}:
            return text
        case list() if all(isinstance(part, dict) and "text" in part for part in value):
            return "".join(str(part["text"]) for part in value)
    return json.dumps(value, ensure_ascii=False)
