"""Answers of a client's own tool in blocks: its texts and images apart, and no base64 as text.

The blocks are those of MCP, Anthropic, AgentScope and OpenAI. Blocks that a model cannot see are listed
under `left_out`, as those of MCP servers' results are.
"""

from __future__ import annotations

from typing import Any, Final

from agents.dialects import client_inputs
from agents.dialects.client_inputs import Parts
from agents.dialects.wire import json_text
from agents.requests import Upload

_TEXTS: Final = frozenset({"text", "input_text", "output_text"})
_MOST_LEFT_OUT: Final = 50
Block = dict[str, Any]


def add_output(output: Any, place: str, parts: Parts) -> None:
    """Add an answer to the parts: blocks by their kinds, a text unchanged, anything else as JSON."""
    if isinstance(output, str):
        parts.add(output)
        return
    blocks = blocks_in(output)
    if blocks is None:
        parts.add(json_text(output))
        return
    left_out: list[Block] = []
    for number, block in enumerate(blocks):
        _take(block, f"{place}[{number}]", parts, left_out)
    if left_out:
        parts.add(json_text({"left_out": left_out[:_MOST_LEFT_OUT]}))


def blocks_in(output: Any) -> list[Block] | None:
    """Return the blocks of an answer that consists of some, also as the `content` of an MCP result."""
    if isinstance(output, dict) and output.keys() <= {"content", "isError", "is_error"}:
        output = output.get("content")
    if not isinstance(output, list) or not output:
        return None
    typed = all(isinstance(block, dict) and isinstance(block.get("type"), str) for block in output)
    return output if typed else None


def _take(block: Block, place: str, parts: Parts, left_out: list[Block]) -> None:
    match block:
        case {"type": kind, "text": str(text)} if kind in _TEXTS:
            parts.add(text)
        case {"type": "image", "data": str(data)}:
            parts.add(_inline(block.get("mimeType") or block.get("mime_type"), data, place))
        case {"type": "image", "source": {"data": str(data), **source}}:
            parts.add(_inline(source.get("media_type"), data, place))
        case {"type": "image", "source": {"url": str(url)}} if _is_data(url):
            parts.add(client_inputs.image_upload(url, place))
        case {"type": "image_url", "image_url": {"url": str(url)}} if _is_data(url):
            parts.add(client_inputs.image_upload(url, place))
        case {"type": "input_image" | "image" | "image_url", "image_url": str(url)} if _is_data(url):
            parts.add(client_inputs.image_upload(url, place))
        case _ if (size := _size(block)) is not None:
            mime_type = block.get("mimeType") or block.get("format") or ""
            summary = {"type": block["type"][:50], "mime_type": str(mime_type)[:100], "size_bytes": size}
            left_out.append(summary)
        case _:
            parts.add(json_text(block))


def _inline(mime_type: Any, data: str, place: str) -> Upload:
    found = client_inputs.parse_data_url(data)
    media_type = mime_type if isinstance(mime_type, str) else ""
    return Upload(media_type, data=found.data if found else data, place=place)


def _size(block: Block) -> int | None:
    """Return the bytes that a block holds in base64; None if it holds none."""
    source, resource = block.get("source"), block.get("resource")
    for holder in (block, source, resource):
        if isinstance(holder, dict):
            for name in ("data", "blob", "file_data"):
                if isinstance(value := holder.get(name), str):
                    return len(value) * 3 // 4
    return None


def _is_data(url: str) -> bool:
    return url[:5].lower() == "data:"
