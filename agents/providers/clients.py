"""Our clients of the providers' wires, by the name of the wire (`Endpoint.dialect`)."""

from __future__ import annotations

from typing import Final

from agents.providers import (
    anthropic_messages,
    gemini_generate_content,
    openai_chat,
    openai_responses,
)
from agents.providers.exchange import Wire

CLIENTS: Final[dict[str, Wire]] = {
    wire.name: wire
    for wire in (
        openai_chat.stream,
        openai_responses.stream,
        anthropic_messages.stream,
        gemini_generate_content.stream,
    )
}
