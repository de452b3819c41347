"""Parse the output of command-line agents, line by line. Pure functions.

The three dialects in use can be recognized: Claude Code's `stream-json`, Codex's `exec --json` and
Gemini's `stream-json`. A line of another form, or without JSON, is ignored.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from msgspec import Struct


class Session(Struct, frozen=True):
    """The id by which the program can resume the conversation."""

    id: str


class More(Struct, frozen=True):
    """The next piece of a text."""

    text: str


class Whole(Struct, frozen=True):
    """A complete text, which may follow its pieces."""

    text: str


class ToolBegun(Struct, frozen=True):
    id: str
    name: str
    parameters: dict[str, Any]


class ToolEnded(Struct, frozen=True):
    id: str
    ok: bool
    result: str


class Done(Struct, frozen=True):
    """The end; `text` is the whole answer if the program prints it again."""

    text: str = ""
    input_tokens: int = 0
    output_tokens: int = 0


class Broke(Struct, frozen=True):
    """The program's report of its failure."""

    message: str


Heard = Session | More | Whole | ToolBegun | ToolEnded | Done | Broke


def heard(line: bytes) -> Iterator[Heard]:
    """Yield the content of a line."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return
    if not isinstance(value, dict):
        return
    session = value.get("session_id") or value.get("thread_id")
    if isinstance(session, str) and session:
        yield Session(session[:200])
    try:
        yield from _meant(value)
    except (AttributeError, TypeError, KeyError, ValueError):  # a form that no known program prints
        return


def _meant(value: dict[str, Any]) -> Iterator[Heard]:
    match value:
        case {"type": "stream_event", "event": {"delta": {"type": "text_delta", "text": str(text)}}}:
            yield More(text)
        case {"type": "assistant", "message": {"content": list(parts)}}:
            yield from _parts(parts)
        case {"type": "user", "message": {"content": list(parts)}}:
            yield from _parts(parts)
        case {"type": "message", "role": "assistant", "content": str(text)}:
            yield More(text) if value.get("delta") else Whole(text)
        case {"type": "tool_use", "tool_name": str(name), "tool_id": str(call)}:
            yield ToolBegun(call, name, _object(value.get("parameters")))
        case {"type": "tool_result", "tool_id": str(call)}:
            yield ToolEnded(call, value.get("status") == "success", _text(value.get("output")))
        case {"type": "item.started" | "item.completed" as kind, "item": dict(item)}:
            yield from _item(kind, item)
        case {"type": "turn.failed", "error": error}:
            yield Broke(_text(error))
        case {"type": "error", "message": str(message)}:
            yield Broke(message)
        case {"type": "turn.completed"}:
            yield _done(value.get("usage"))
        case {"type": "result"} if value.get("is_error") or value.get("status") == "error":
            yield Broke(_text(value.get("result") or value.get("error")))
        case {"type": "result"}:
            yield _done(value.get("usage") or value.get("stats"), _text(value.get("result")))


def _parts(parts: list[Any]) -> Iterator[Heard]:
    for part in parts:
        match part:
            case {"type": "text", "text": str(text)}:
                yield Whole(text)
            case {"type": "tool_use", "id": str(call), "name": str(name)}:
                yield ToolBegun(call, name, _object(part.get("input")))
            case {"type": "tool_result", "tool_use_id": str(call)}:
                yield ToolEnded(call, not part.get("is_error"), _text(part.get("content")))


def _item(kind: str, item: dict[str, Any]) -> Iterator[Heard]:
    call = str(item.get("id") or "")
    match item.get("type"):
        case "agent_message" if kind == "item.completed":
            yield Whole(_text(item.get("text")))
        case "mcp_tool_call":
            yield ToolBegun(call, str(item.get("tool")), _object(item.get("arguments")))
        case "command_execution":
            yield ToolBegun(call, "shell", {"command": item.get("command")})
        case _:
            return
    if kind == "item.completed" and item.get("type") != "agent_message":
        failed = item.get("status") == "failed" or item.get("exit_code") not in (None, 0)
        outcome = item.get("result") or item.get("aggregated_output") or item.get("error")
        yield ToolEnded(call, not failed, _text(outcome))


def _done(usage: Any, text: str = "") -> Done:
    counts = _object(usage)
    return Done(text, _count(counts.get("input_tokens")), _count(counts.get("output_tokens")))


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
