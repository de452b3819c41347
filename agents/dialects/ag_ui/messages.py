"""Stored messages in AG-UI's shape (specs/ag-ui.md §1.1): a thread as its client sees it.

They equal the streamed ones: same ids, same contents, a call of one of our tools beside its answer.
Values for which AG-UI has no member are under `metadata.parley`, which survives a round trip.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType

from agents.dialects.ag_ui import message_ids, outcomes
from agents.dialects.ag_ui.message_fold import put_beside_call
from agents.dialects.ag_ui.message_types import (
    AgUiActivityMessage,
    AgUiAssistantMessage,
    AgUiClientToolMessage,
    AgUiContent,
    AgUiDocumentContent,
    AgUiFileName,
    AgUiFunctionCall,
    AgUiImageContent,
    AgUiMessage,
    AgUiMessageFacts,
    AgUiMetadata,
    AgUiReasoningMessage,
    AgUiSource,
    AgUiSystemMessage,
    AgUiTextContent,
    AgUiToolCall,
    AgUiToolMessage,
    AgUiUserMessage,
)
from agents.dialects.base import Sign, StoredRow, id_in_run
from agents.dialects.wire import Wire, json_text
from conversations import events, identifiers
from conversations.blocks import arrange
from conversations.cards.card_compiler import ui_schema_for

_NAMED: Final = frozenset({"user", "assistant", "system", "developer"})
_KEPT: Final = ("stage", "latency_ms", "run_id", "tool_name", "contents", "artifact_refs")


def to_messages(rows: Iterable[StoredRow], *, sign: Sign) -> list[AgUiMessage]:
    """Return the messages of a thread; `sign` returns a fresh URL for a stored file (bucket, path)."""
    found: list[AgUiMessage] = []
    for row in rows:
        messages = _messages(row, sign)
        match messages:
            case [AgUiClientToolMessage() | AgUiToolMessage() as answer] if _answers_earlier_run(row):
                put_beside_call(found, answer)
            case _:
                found += messages
    return found


def _answers_earlier_run(row: StoredRow) -> bool:
    output = row.metadata.get("tool_agent_output") or {}
    return row.role == "tool" and bool(output.get("asked_in") and output.get("tool_call_id"))


def with_reasoning(before: list[AgUiMessage], known: Iterable[AgUiMessage]) -> list[AgUiMessage]:
    """Return the messages, and between them the reasoning that only the client has."""
    rest = {message.id: message for message in before}
    merged: list[AgUiMessage] = []
    for message in known:
        if message.role == "reasoning" and message.id not in rest:
            merged.append(message)
        elif message.id in rest:
            while rest:
                message_id = next(iter(rest))
                merged.append(rest.pop(message_id))
                if message_id == message.id:
                    break
    return [*merged, *rest.values()]


def _messages(row: StoredRow, sign: Sign) -> list[AgUiMessage]:
    match row.role:
        case "tool":
            return _tool(row, sign)
        case "user":
            return [AgUiUserMessage(**_head(row), role="user", content=_content(row, sign))]
        case "activity":
            return _activity(row)
        case "assistant":
            return [_assistant(row)]
        case "reasoning":
            head = _head(row) | {"id": _reasoned_id(row)}
            return [AgUiReasoningMessage(**head, role="reasoning", content=row.content)]
    role: Any = row.role  # system or developer
    return [AgUiSystemMessage(**_head(row), role=role, content=row.content)]


def _head(row: StoredRow) -> dict[str, Any]:
    """Return the members that the messages of all roles have."""
    named = row.metadata.get("name") if row.role in _NAMED else None
    optional = {"name": named, "encrypted_value": row.metadata.get("encrypted_value")}
    fields = {key: value for key, value in optional.items() if isinstance(value, str)}
    return fields | {"id": row.client_id or row.id, "metadata": _metadata(row)}


def _metadata(row: StoredRow) -> AgUiMetadata | UnsetType:
    ours = {key: row.metadata[key] for key in _KEPT if key in row.metadata}
    shown = ui_schema_for(row.metadata, row.role)
    if not ours and not shown:
        return UNSET
    return AgUiMetadata(AgUiMessageFacts(**ours, ui_schema=shown or UNSET))


def _assistant(row: StoredRow) -> AgUiAssistantMessage:
    made = row.metadata.get("tool_calls") or ()
    calls = [_tool_call(_asked_id(row, call["id"]), call["name"], call["arguments"]) for call in made]
    head = _head(row) | {"id": _spoken_id(row)}
    content = row.content if row.content or not calls else UNSET
    return AgUiAssistantMessage(**head, role="assistant", content=content, tool_calls=calls or UNSET)


def _asked_id(row: StoredRow, call_id: str) -> str:
    """Return the id of a call that waits for an answer: the client's tools keep theirs."""
    if not row.metadata.get("awaits"):
        return call_id
    return id_in_run(call_id, row.metadata["run_id"])


def _spoken_id(row: StoredRow) -> str:
    """Return the id under which the message was streamed, or the client's own."""
    message_id, run = row.metadata.get("message_id"), row.metadata.get("run_id")
    if row.metadata.get("awaits"):
        return identifiers.call_message_id(_asked_id(row, row.metadata["tool_calls"][0]["id"]))
    if not (message_id and run) or row.metadata.get("tool_calls"):
        return row.client_id or row.id
    return id_in_run(message_id, run)


def _reasoned_id(row: StoredRow) -> str:
    """Return the id under which the reasoning was streamed, or the client's own."""
    message_id, run = row.metadata.get("message_id"), row.metadata.get("run_id")
    return message_ids.reasoning_id(message_id, run) if message_id and run else row.client_id or row.id


def _content(row: StoredRow, sign: Sign) -> str | list[AgUiContent]:
    files = row.metadata.get("user_message_attachments") or []
    images = [_file(file, sign) for file in ([files] if isinstance(files, dict) else files)]
    layout = row.metadata.get("content_layout")
    if not images and not layout:
        return row.content
    return [
        AgUiTextContent(block) if isinstance(block, str) else block
        for block in arrange(row.content, images, layout)
    ]


def _file(file: Wire, sign: Sign) -> AgUiContent:
    """Return an image, or a document under its name."""
    source = AgUiSource("url", sign(file["bucket"], file["path"]), file["mime_type"])
    if file["mime_type"].startswith("image/"):
        return AgUiImageContent(source)
    name = file.get("name")
    return AgUiDocumentContent(source, AgUiFileName(name) if name else UNSET)


def _activity(row: StoredRow) -> list[AgUiMessage]:
    """Return an activity that a client has sent; our own stages are steps, not messages."""
    kind, content = row.metadata.get("activity_type"), row.metadata.get("activity")
    if not isinstance(kind, str) or not isinstance(content, dict):
        return []
    return [AgUiActivityMessage(**_head(row), role="activity", activity_type=kind, content=content)]


def _tool(row: StoredRow, sign: Sign) -> list[AgUiMessage]:
    """Return an answer; one of our own tools has its call in the same row."""
    output = row.metadata.get("tool_agent_output") or {}
    call_id = output.get("tool_call_id") or row.metadata.get("tool_call_id")
    if not call_id:
        return [AgUiAssistantMessage(**_head(row), role="assistant", content=row.content)]
    if "message_id" not in row.metadata:
        problem = output.get("error") or {}
        answer = AgUiClientToolMessage(
            **_head(row),
            role="tool",
            content=_content(row, sign),
            tool_call_id=call_id,
            error=problem.get("message") or UNSET,
        )
        return [answer]
    called = [] if output.get("asked_in") else [_call(row, call_id)]
    return [*called, _answer(row, call_id, output)]


def _call(row: StoredRow, call_id: str) -> AgUiAssistantMessage:
    wire_id = id_in_run(call_id, row.metadata["run_id"])
    arguments = json_text(row.metadata.get("tool_arguments") or {})
    call = _tool_call(wire_id, row.metadata.get("tool_name") or "tool", arguments)
    message_id = identifiers.call_message_id(wire_id)
    return AgUiAssistantMessage(message_id, role="assistant", tool_calls=[call])


def _tool_call(wire_id: str, name: str, arguments: str) -> AgUiToolCall:
    return AgUiToolCall(wire_id, "function", AgUiFunctionCall(name, arguments))


def _answer(row: StoredRow, call_id: str, output: Wire) -> AgUiToolMessage:
    run, ok = row.metadata["run_id"], bool(output.get("ok"))
    problem = msgspec.convert(output.get("error"), events.Problem | None)
    head = _head(row) | {"id": identifiers.tool_message_id(run, call_id, output.get("asked_in"))}
    return AgUiToolMessage(
        **head,
        role="tool",
        tool_call_id=id_in_run(call_id, output.get("asked_in") or run),
        content=outcomes.answer_text(output.get("result"), problem, ok=ok),
    )
