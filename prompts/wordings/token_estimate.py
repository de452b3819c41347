"""About how many tokens a text has, without a tokenizer: it costs next to nothing (5 ns a character).

Three kinds of bytes are counted: letters and blanks, other ASCII (digits and marks, two of which make
about one token), and what is beyond ASCII (a Chinese character has three). The constants are calibrated
with OpenAI's tokenizers o200k and cl100k; `tests/pure/agents/test_window.py` has the figures.
"""

from __future__ import annotations

from typing import Final

_LETTERS: Final = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ "
_ASCII: Final = bytes(range(128))
_LETTERS_PER_TOKEN: Final = 4.4
_PER_MARK: Final = 0.55
_PER_BYTE_BEYOND: Final = 0.38


def estimate(text: str) -> int:
    """Return about how many tokens the text has, rather too many than too few."""
    return estimate_bytes(text.encode("utf-8", "replace"))


def estimate_bytes(raw: bytes) -> int:
    """Return the same for a text in UTF-8."""
    beyond = len(raw.translate(None, _ASCII))
    letters = len(raw) - len(raw.translate(None, _LETTERS))
    marks = len(raw) - beyond - letters
    return int(letters / _LETTERS_PER_TOKEN + marks * _PER_MARK + beyond * _PER_BYTE_BEYOND) + bool(raw)
