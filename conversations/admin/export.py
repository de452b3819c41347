"""A whole conversation as a file, JSON or Markdown, in pieces: it is never whole in memory."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

import msgspec

from config import sql
from conversations.threads.history_message import timestamp

FORMATS: Final = {"json": "application/json", "md": "text/markdown; charset=utf-8"}
_AT_ONCE: Final = 200
_THREAD: Final = """
SELECT thread.id, title, username, thread.created_at, thread.updated_at, thread.state
FROM conversations_thread thread JOIN accounts_user owner ON owner.id = owner_id WHERE thread.id = %s
"""
_MESSAGES: Final = f"""
SELECT message.seq, message.role, message.content, message.created_at, message.metadata, message.run_id,
    run.model, run.resolved_model, run.status, run.error_code, run.input_tokens, run.output_tokens,
    run.cost_usd::text, run.prompt_versions, run.created_at, run.finished_at,
    coalesce(run.request->'metadata', jsonb_build_object()),
    replace(run.continues_run_id::text, '-', '')
FROM conversations_message message LEFT JOIN conversations_run run ON run.id = message.run_id
WHERE message.thread_id = %s AND message.seq > %s ORDER BY message.seq LIMIT {_AT_ONCE}
"""
_RUN: Final = (
    "model",
    "resolved_model",
    "status",
    "error_code",
    "input_tokens",
    "output_tokens",
    "cost_usd",
    "prompt_versions",
    "created_at",
    "finished_at",
    "metadata",
    "continues",
)
_NAMES: Final = {"user": "User", "assistant": "Assistant", "tool": "Tool", "system": "System"}
_encode: Final = msgspec.json.Encoder().encode


async def export(thread_id: UUID, form: str) -> AsyncGenerator[bytes]:
    """Yield the conversation in one of `FORMATS`, piece by piece; nothing for an unknown thread."""
    thread = await sql.one(_THREAD, (thread_id,))
    if thread is None:
        return
    begin, each, end = (_json_begin, _json_message, b"\n]}\n") if form == "json" else _MARKDOWN
    yield begin(thread)
    after, first = 0, True
    while True:
        rows = await sql.every(_MESSAGES, (thread_id, after))
        if rows:
            yield b"".join(each(row, first and not place) for place, row in enumerate(rows))
        if len(rows) < _AT_ONCE:
            break
        after, first = rows[-1][0], False
    yield end


def _json_begin(thread: Any) -> bytes:
    thread_id, title, owner, created_at, updated_at, state = thread
    head = {
        "id": str(thread_id),
        "title": title,
        "owner": owner,
        "created_at": timestamp(created_at),
        "updated_at": timestamp(updated_at),
        "state": state,
        "exported_at": timestamp(datetime.now(UTC)),
    }
    return b'{"thread": ' + _encode(head) + b',\n"messages": [\n'


def _json_message(row: Any, first: bool) -> bytes:
    seq, role, content, created_at, metadata, run_id, *of_run = row
    entry = {
        "seq": seq,
        "role": role,
        "content": content,
        "created_at": timestamp(created_at),
        "metadata": metadata,
        "run_id": run_id.hex if run_id else None,
        "run": dict(zip(_RUN, of_run, strict=True)) if run_id else None,
    }
    return (b"" if first else b",\n") + _encode(entry)


def _markdown_begin(thread: Any) -> bytes:
    thread_id, title, owner, created_at, *_ = thread
    name = " ".join((title or str(thread_id)).split())
    return (
        f"# {name}\n\nConversation `{thread_id}` of {owner}, begun {timestamp(created_at)}.\n".encode()
    )


def _markdown_message(row: Any, _first: bool) -> bytes:
    seq, role, content, created_at, metadata, _run_id, model, *_ = row
    by = f" ({model})" if role == "assistant" and model else ""
    lines = [f"\n## {seq}. {_NAMES.get(role, role)}{by}, {timestamp(created_at)}\n"]
    if tool := metadata.get("tool_name"):
        lines.append(f"`{tool}`\n\n{_fenced(metadata.get('tool_arguments'))}")
        output = metadata.get("tool_agent_output") or {}
        lines.append(_fenced(output.get("result", output.get("error"))))
    elif content:
        lines.append(f"{content}\n")
    files = metadata.get("user_message_attachments") or []
    for file in [files] if isinstance(files, dict) else files:
        lines.append(f"Attached: `{file.get('bucket')}/{file.get('path')}`\n")
    return "\n".join(lines).encode()


def _fenced(value: Any) -> str:
    """Return JSON in a block that nothing in it can close: no line of JSON is a fence."""
    text = msgspec.json.format(_encode(value), indent=2).decode()
    return f"```json\n{text}\n```\n"


_MARKDOWN: Final = (_markdown_begin, _markdown_message, b"")
