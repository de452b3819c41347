"""OpenAI's Responses API, as its SDKs use it (specs/agent-api.md, "What to build" 1)."""

from __future__ import annotations

from typing import Any, Final

from agents.dialects.base import RunHead
from agents.dialects.openai_responses import objects
from agents.dialects.openai_responses.encoder import ResponsesEncoder
from agents.dialects.openai_responses.request import NAME as NAME
from agents.dialects.openai_responses.request import parse as parse

OPENING: Final = b""
encoder: Final = ResponsesEncoder


def streams(body: dict[str, Any], *, accept: str) -> bool:
    """Return whether the body sets `stream`."""
    return body.get("stream") is True


def waits(body: dict[str, Any]) -> bool:
    """Return true unless the client looks for the outcome later (`background`)."""
    return body.get("background") is not True


def accepted(head: RunHead) -> objects.Response:
    """Return the response before anything is known of it."""
    return objects.response(head, "queued", [])
