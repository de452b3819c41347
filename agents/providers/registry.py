"""The registry of providers: the wires that an endpoint can speak, by name (`Endpoint.dialect`).

To add a provider, write its wire in two modules, as `openai_chat` and `openai_chat_body` do, list it
here, and add its name to `prompts.models.ProviderDialect`.
"""

from __future__ import annotations

from typing import Final

from agents.providers import (
    anthropic_messages,
    gemini_generate_content,
    openai_chat,
    openai_responses,
)
from agents.providers.exchange import Wire

WIRES: Final[dict[str, Wire]] = {
    wire.name: wire
    for wire in (
        openai_chat.stream,
        openai_responses.stream,
        anthropic_messages.stream,
        gemini_generate_content.stream,
    )
}
