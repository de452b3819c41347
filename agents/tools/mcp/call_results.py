"""What a call gave, as a JSON object for the event log and the model."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

import msgspec
from pydantic import model_validator

if TYPE_CHECKING:
    from mcp.types import CallToolResult

LONGEST: Final = 8_000_000  # what is beyond a model goes to an artifact
MOST_PARTS: Final = 1_000


@cache
def result_type() -> type[CallToolResult]:
    """The SDK's type of a result, of at most MOST_PARTS parts: a hundred thousand take it a second."""
    from mcp.types import CallToolResult

    class Bounded(CallToolResult):
        @model_validator(mode="before")
        @classmethod
        def has_few_parts(cls, said: Any) -> Any:
            parts = said.get("content") if isinstance(said, dict) else None
            if isinstance(parts, list) and len(parts) > MOST_PARTS:
                raise ValueError(f"more than {MOST_PARTS:,} parts")
            return said

    return Bounded


def as_json(result: CallToolResult) -> dict[str, Any]:
    """`text` and `structured` where there are any; what is no text is told of under `left_out`."""
    texts: list[str] = []
    left_out: list[dict[str, Any]] = []
    for block in result.content:
        _take(block.model_dump(mode="json", by_alias=True, exclude_none=True), texts, left_out)
    text = "\n".join(texts)
    said: dict[str, Any] = {}
    if result.structured_content is not None:
        structured = result.structured_content
        if len(msgspec.json.encode(structured)) <= LONGEST:
            said["structured"] = structured
            text = "" if _same(text, structured) else text
        else:
            left_out.append({"type": "structured", "note": f"larger than {LONGEST:,} bytes"})
    if text or not said:
        said["text"] = _cut(text)
    if left_out:
        said["left_out"] = left_out[:50]
    return said


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


def _same(text: str, structured: Any) -> bool:
    """Whether the text only says the structured content once more, as the protocol advises."""
    if structured == {"result": text}:
        return True
    try:
        said = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return False
    return bool(said == structured or structured == {"result": said})


def _cut(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]}… (cut: {len(text):,} characters in all)"
