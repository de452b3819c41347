"""OpenAI's Chat Completions, as its SDKs speak it (docs/connect-chat-completions.md).

Stateless, as OpenAI's is: the body brings the whole conversation, and each request has a thread of
its own. Nobody can come back to a completion, so a client that goes ends its run.
"""

from __future__ import annotations

from typing import Any, Final

from agents.dialects.base import RunHead
from agents.dialects.completions import request, shape
from agents.dialects.completions.encoder import CompletionEncoder
from agents.requests import RunRequest

NAME: Final = "chat-completions"
OPENING: Final = b""


def parse(body: dict[str, Any], *, request_id: str) -> RunRequest:
    """The canonical request; InvalidRequest, naming the field, for a wrong body."""
    return request.parse(body, dialect=NAME, request_id=request_id)


def streams(body: dict[str, Any], *, accept: str) -> bool:
    """When the body says so."""
    return body.get("stream") is True


def waits(body: dict[str, Any]) -> bool:
    """Always: this wire has no way to look later."""
    return True


def accepted(head: RunHead) -> dict[str, Any]:
    """The completion's id alone: nothing is known of it yet."""
    return {"id": shape.completion_id(head.run_id), "object": "chat.completion"}


def encoder(head: RunHead) -> CompletionEncoder:
    """A fresh encoder for one reader."""
    return CompletionEncoder(head)
