"""How many tokens a text is, by a guess that costs next to nothing (5 ns a character).

Three kinds of bytes are counted: letters and blanks, other ASCII (digits and marks, nearly a token each
two of them), and what is beyond ASCII (a Chinese character is three). The constants are calibrated
with OpenAI's tokenizers o200k and cl100k; `tests/pure/test_window.py` has the figures.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from agents.providers.base import ChatMessage, ToolSpec

_LETTERS: Final = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ "
_ASCII: Final = bytes(range(128))
_LETTERS_A_TOKEN: Final = 4.4
_OF_MARK: Final = 0.55
_OF_BYTE_BEYOND: Final = 0.38
_OF_MESSAGE: Final = 4
_OF_IMAGE: Final = 1_200


def estimate(text: str) -> int:
    """About how many tokens the text is, rather too many than too few."""
    return _of_bytes(text.encode("utf-8", "replace"))


def _of_bytes(raw: bytes) -> int:
    beyond = len(raw.translate(None, _ASCII))
    letters = len(raw) - len(raw.translate(None, _LETTERS))
    marks = len(raw) - beyond - letters
    return int(letters / _LETTERS_A_TOKEN + marks * _OF_MARK + beyond * _OF_BYTE_BEYOND) + 1


def of_message(said: ChatMessage) -> int:
    """A message with its calls and images."""
    calls = sum(estimate(call.name) + estimate(call.arguments) for call in said.tool_calls)
    return _OF_MESSAGE + estimate(said.content) + calls + _OF_IMAGE * len(said.images)


def of_messages(said: Iterable[ChatMessage]) -> int:
    return sum(map(of_message, said))


def of_tools(tools: Iterable[ToolSpec]) -> int:
    """What a model is told of its tools."""
    told = (msgspec.json.encode((tool.name, tool.description, tool.parameters)) for tool in tools)
    return sum(_of_bytes(each) + _OF_MESSAGE for each in told)
