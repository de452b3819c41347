"""Estimates of the tokens of messages and tools."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from agents.providers.base import ChatMessage, ToolSpec
from prompts.wordings.token_estimate import estimate, estimate_bytes

_PER_MESSAGE: Final = 4
_PER_IMAGE: Final = 1_200


def of_message(message: ChatMessage) -> int:
    """Return the tokens of a message with its calls and images."""
    calls = sum(estimate(call.name) + estimate(call.arguments) for call in message.tool_calls)
    return _PER_MESSAGE + estimate(message.content) + calls + _PER_IMAGE * len(message.images)


def of_messages(messages: Iterable[ChatMessage]) -> int:
    return sum(map(of_message, messages))


def of_tools(tools: Iterable[ToolSpec]) -> int:
    """Return the tokens of the tools' descriptions."""
    encoded = (msgspec.json.encode((tool.name, tool.description, tool.parameters)) for tool in tools)
    return sum(estimate_bytes(each) + _PER_MESSAGE for each in encoded)
