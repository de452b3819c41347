"""The result of a call as a JSON object for the event log and the model."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

import msgspec
from pydantic import model_validator

if TYPE_CHECKING:
    from mcp.types import CallToolResult

LONGEST: Final = 8_000_000  # what is too large for a model goes to an artifact
MOST_PARTS: Final = 1_000


@cache
def result_type() -> type[CallToolResult]:
    """Return the SDK's result type, limited to MOST_PARTS parts: a hundred thousand take a second."""
    from mcp.types import CallToolResult

    class Bounded(CallToolResult):
        @model_validator(mode="before")
        @classmethod
        def has_few_parts(cls, raw: Any) -> Any:
            parts = raw.get("content") if isinstance(raw, dict) else None
            if isinstance(parts, list) and len(parts) > MOST_PARTS:
                raise ValueError(f"more than {MOST_PARTS:,} parts")
            return raw

    return Bounded


def result_to_json(result: CallToolResult) -> dict[str, Any]:
    """Return `text` and `structured` if there are any, and other contents under `left_out`."""
    texts: list[str] = []
    left_out: list[dict[str, Any]] = []
    for block in result.content:
        _take(block.model_dump(mode="json", by_alias=True, exclude_none=True), texts, left_out)
    text = "\n".join(texts)
    found: dict[str, Any] = {}
    if result.structured_content is not None:
        structured = result.structured_content
        if len(msgspec.json.encode(structured)) <= LONGEST:
            found["structured"] = structured
            text = "" if _repeats(text, structured) else text
        else:
            left_out.append({"type": "structured", "note": f"larger than {LONGEST:,} bytes"})
    if text or not found:
        found["text"] = _cut(text)
    if left_out:
        found["left_out"] = left_out[:50]
    return found


def _take(block: dict[str, Any], texts: list[str], left_out: list[dict[str, Any]]) -> None:
    match block:
        case {"type": "text", "text": str(text)}:
            texts.append(text)
        case {"type": "resource", "resource": {"text": str(text)}}:
            texts.append(text)
        case {"type": "resource_link", "uri": uri}:
            left_out.append({"type": "resource_link", "uri": str(uri)[:500]})
        case {"type": kind, "data": str(data)} | {"type": kind, "resource": {"blob": str(data)}}:
            mime = block.get("mimeType") or block.get("resource", {}).get("mimeType", "")
            left_out.append({"type": kind, "mime_type": mime[:100], "size_bytes": len(data) * 3 // 4})
        case _:
            left_out.append({"type": str(block.get("type"))[:50]})


def _repeats(text: str, structured: Any) -> bool:
    """Return whether the text only repeats the structured content, as the protocol recommends."""
    if structured == {"result": text}:
        return True
    try:
        decoded = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return False
    return bool(decoded == structured or structured == {"result": decoded})


def _cut(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]}… (cut: {len(text):,} characters in all)"
