"""The terms of a search, and where they stand in a text.

A term is a word, found where a word begins with it (so "meet" finds "meetings"), or a run of a script
that is written without spaces, found anywhere. The database cuts a query as it cut the messages
(`conversations_spaced`), so that a term of one is a term of the other. A match holds all terms.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from config import sql
from config.http.documentation.json_types import Shown

_UNSPACED: Final = (
    "\u0e00-\u109f\u1100-\u11ff\u1780-\u17ff\u2190-\u2bff\u2e80-\uffef\U00010000-\U0010ffff"
)
_RUN: Final = re.compile(f"[{_UNSPACED}]")
_WITHIN_WORD: Final = rf"(?<![^\W_{_UNSPACED}])"  # not after a letter or digit of a spaced script
_KEY: Final = 40  # characters of a word that the index keeps
_BEFORE: Final = 40
_SNIPPET: Final = 160


async def spaced(text: str) -> str:
    """Return the text as the database cuts it into words."""
    row = await sql.one("SELECT conversations_spaced(%s)", (text,))
    return row[0] if row else ""


class SnippetPart(Shown, frozen=True):
    """A part of a text, always plain."""

    text: str
    match: bool


_CUT: Final = SnippetPart("…", False)


@dataclass(frozen=True)
class Terms:
    """The terms of a query, in the database's form and in that of a reader of the text."""

    texts: tuple[str, ...]

    @property
    def rough(self) -> list[str]:
        """Return LIKE patterns for the folded text, necessary but not sufficient, and cheap."""
        return [f"%{text}%" for text in self.texts]

    @property
    def exact(self) -> list[str]:
        """Return LIKE patterns for the spaced text; terms hold no character special to LIKE."""
        return [f"%{text}%" if _RUN.match(text) else f"% {text}%" for text in self.texts]

    def tsquery(self, owner: object) -> str:
        """Return the required keys of the index; terms hold no character special to a tsquery."""
        return " & ".join([f"'@{owner}'", *(key for text in self.texts for key in _keys(text))])

    @property
    def pieces(self) -> list[str]:
        """Return a text's keys in the index: words, and pairs of characters of runs without spaces."""
        found = [piece for text in self.texts for piece in _pieces(text)]
        return list(dict.fromkeys(found))

    def snippet(self, content: str) -> list[SnippetPart]:
        """Return the text about the first match in parts."""
        first = self._pattern.search(content)
        begin = max(0, first.start() - _BEFORE) if first else 0
        cut = " ".join(content[begin : begin + _SNIPPET].split())
        before = [_CUT] if begin else []
        after = [_CUT] if begin + _SNIPPET < len(content) else []
        return [*before, *self._parts(cut), *after]

    @property
    def _pattern(self) -> re.Pattern[str]:
        longest_first = sorted(self.texts, key=len, reverse=True)
        return re.compile(
            "|".join(
                re.escape(text) if _RUN.match(text) else _WITHIN_WORD + re.escape(text)
                for text in longest_first
            ),
            re.IGNORECASE,
        )

    def _parts(self, text: str) -> Iterator[SnippetPart]:
        place = 0
        for found in self._pattern.finditer(text):
            if found.start() > place:
                yield SnippetPart(text[place : found.start()], False)
            yield SnippetPart(found.group(), True)
            place = found.end()
        if place < len(text):
            yield SnippetPart(text[place:], False)


def make_terms(spaced: str) -> Terms:
    """Return the terms of a query that the database has spaced, each once."""
    return Terms(tuple(dict.fromkeys(spaced.split())))


def _pieces(text: str) -> list[str]:
    if not _RUN.match(text) or len(text) < 3:
        return [text[:_KEY]]
    return [text[place : place + 2] for place in range(len(text) - 1)]


def _keys(text: str) -> list[str]:
    """Return the index's keys for a term, as parts of a tsquery."""
    if not _RUN.match(text):
        return [f"'{text[:_KEY]}':*"]
    if len(text) == 1:
        return [f"'{text}':*"]  # the first of a pair, or the last of a run
    return [f"'{text[place : place + 2]}'" for place in range(len(text) - 1)]
