"""About how many tokens a text is, without any provider's tokenizer.

Each provider counts in its own way and none of their tables is at hand offline, so this is an
estimate for people who write prompts: a Latin word is a token for every five letters or so, a CJK
character one, a number one for three digits, a mark one.
"""

from __future__ import annotations

import re
from typing import Final

_PIECE: Final = re.compile(
    r"(?P<cjk>[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff])"
    r"|(?P<digits>\d+)|(?P<ascii>[A-Za-z]+)|(?P<word>[^\W\d_]+)|(?P<space>\s+)|(?P<marks>.)",
    re.DOTALL,
)
_LETTERS: Final = {"digits": 3, "ascii": 6, "word": 3}


def estimate(text: str) -> int:
    """About how many tokens."""
    count = 0
    for piece in _PIECE.finditer(text):
        kind = piece.lastgroup or ""
        if kind == "space":
            count += piece[0].count("\n") > 0
        elif kind in _LETTERS:
            count += -(-len(piece[0]) // _LETTERS[kind])
        else:
            count += 1
    return count
