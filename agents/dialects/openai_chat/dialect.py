"""OpenAI's Chat Completions, as its SDKs use it (docs/clients/chat-completions.md).

It is stateless, as OpenAI's is: the body contains the whole conversation, and each request has a thread
of its own. No client can come back to a completion, so a client that goes ends its run.
"""

from __future__ import annotations

from typing import Any, Final

from agents.dialects.base import RunHead
from agents.dialects.openai_chat import objects
from agents.dialects.openai_chat.encoder import CompletionEncoder
from agents.dialects.openai_chat.request import NAME as NAME
from agents.dialects.openai_chat.request import parse as parse

OPENING: Final = b""
encoder: Final = CompletionEncoder


def streams(body: dict[str, Any], *, accept: str) -> bool:
    """Return whether the body sets `stream`."""
    return body.get("stream") is True


def waits(body: dict[str, Any]) -> bool:
    """Return true: this wire has no way to look later."""
    return True


def accepted(head: RunHead) -> dict[str, Any]:
    """Return only the completion's id: nothing else is known of it yet."""
    return {"id": objects.completion_id(head.run_id), "object": "chat.completion"}
