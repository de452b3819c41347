"""Store results that are too large for a model as files; it gets the head, and a tool to read on."""

from __future__ import annotations

from typing import Any, Final

import msgspec
import structlog

from agents.tools.arguments import closed_schema
from agents.tools.base import Tool, ToolContext, ToolFailure, tool_context
from config.errors import ParleyError
from conversations import attachments
from conversations.events import ArtifactCreated
from conversations.identifiers import uuid_of

log = structlog.get_logger(__name__)

READ: Final = "parley.read_artifact"
LONGEST_RESULT: Final = 48_000
LONGEST_HEAD: Final = 12_000
LARGEST: Final = 16 * 1024 * 1024
_LONGEST_PIECE: Final = 40_000
_encode: Final = msgspec.json.Encoder().encode


async def fit_result(
    tool: Tool, result: dict[str, Any], caller: ToolContext | None
) -> tuple[dict[str, Any], ArtifactCreated | None]:
    """Return the result for a model, and the artifact with the whole of a large one.

    Above 48,000 characters of JSON only the head stays, with a note; above 16 MiB nothing is stored.
    """
    encoded = _encode(result)
    if len(encoded) <= LONGEST_RESULT or tool.name == READ:
        return result, None
    text = encoded.decode()
    if len(text) <= LONGEST_RESULT:
        return result, None
    artifact = await _store(tool, encoded, caller)
    head = {"head": text[:LONGEST_HEAD], "note": _note(len(text), artifact)}
    if artifact is None:
        return head, None
    reference = {
        "artifact_id": artifact.artifact_id,
        "name": artifact.name,
        "mime_type": artifact.mime_type,
        "size_bytes": artifact.size_bytes,
    }
    return head | {"artifact": reference}, artifact


async def _store(tool: Tool, data: bytes, caller: ToolContext | None) -> ArtifactCreated | None:
    if caller is None or len(data) > LARGEST:
        return None
    try:
        stored = await attachments.store_artifact(
            data, owner_id=caller.user_id, thread_id=caller.thread_id, run_id=caller.run_id
        )
    except ParleyError as error:
        log.warning("artifact not kept", tool=tool.name, code=error.error_code)
        return None
    name = f"{tool.name}.json"
    mime_type = attachments.mime_type_of(stored)
    return ArtifactCreated(stored.file_id.hex, "tool_result", mime_type, name, len(data))


def _note(length: int, artifact: ArtifactCreated | None) -> str:
    first = f"These are the first {LONGEST_HEAD:,} of {length:,} characters of the result as JSON text."
    if artifact is None:
        return f"{first} The rest was too large to be kept: ask for less."
    return f"{first} Read on with {READ}: artifact_id {artifact.artifact_id}, offset {LONGEST_HEAD}."


async def read_artifact(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return a piece of an artifact of the conversation; raise ToolFailure `artifact_not_found`."""
    context, offset = tool_context(), int(arguments.get("offset", 0))
    artifact_id = uuid_of(arguments["artifact_id"])
    stored = artifact_id and await attachments.find_artifact(
        artifact_id, owner_id=context.user_id, thread_id=context.thread_id
    )
    data = stored and await attachments.read_bytes(stored.bucket, stored.path, limit=LARGEST)
    if not data:
        raise ToolFailure("artifact_not_found", "This conversation has no artifact of this id.")
    text = data.decode("utf-8", "replace")
    length = int(arguments.get("length", LONGEST_HEAD))
    piece = text[offset : offset + length]
    while len(_encode(piece)) > _LONGEST_PIECE:  # quotes are longer in a text inside JSON
        piece = piece[: len(piece) * 3 // 4]
    end = offset + len(piece)
    following = {"next_offset": end} if end < len(text) else {}
    return {"text": piece, "offset": offset, "total_characters": len(text)} | following


TOOL: Final = Tool(
    name=READ,
    description="Reads on in a tool's result that was too large: its artifact, from an offset on.",
    parameters=closed_schema(
        {
            "artifact_id": {"type": "string", "maxLength": 64},
            "offset": {"type": "integer", "minimum": 0, "maximum": LARGEST},
            "length": {"type": "integer", "minimum": 1, "maximum": 30_000},
        },
        "artifact_id",
    ),
    call=read_artifact,
    idempotent=True,
    timeout_s=10,
)
