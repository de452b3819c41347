"""The words of ThinkingML, and a scanner that finds them in a text that comes in pieces.

A tag is a name of letters (or 标题, which models write for title) in angle brackets, with or without
attributes. Everything that could still become a tag is held back, at most `LONGEST_TAG` characters, so
the scanner's tokens do not depend on the cuts.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

LONGEST_TAG: Final = 128
LONGEST_QUERIES: Final = 8_192
LONGEST_GAP: Final = 4_096
STRUCTURE: Final = frozenset({"think", "serp", "thinking", "phase", "title", "final"})
PARSING_ERROR: Final = "<<ParsingError>>"

_NAME: Final = "(?:[A-Za-z]{1,32}|标题)"
_NAMED: Final = rf"<(?P<mark>/?)(?P<name>{_NAME})(?:\s[^<>]{{0,90}})?/?>"
TAG: Final = re.compile(_NAMED)
PHASE: Final = re.compile(r'<phase\s+id="([0-9]{1,6})"\s*>')
_TOKEN: Final = re.compile(
    rf"(?P<tag>{_NAMED})"
    r"|(?P<queries>(?:<!--\s{0,64})?<serp_queries>)"
    r"|(?P<queried></serp_queries>(?:\s{0,64}-->)?)"
    # `<name …` right before another `<`: no tag, unless the next text is rewritten into plain text
    rf"|(?P<stub></?{_NAME}(?:\s[^<>]{{0,90}})?/?)(?=<)"
)
_CANDIDATE: Final = re.compile(r"<(?:[A-Za-z/!标]|\Z)")


def _begun(literal: str) -> str:
    """Return a pattern for every beginning of a literal but "" and the whole."""
    pattern = ""
    for character in reversed(literal[1:-1]):
        pattern = f"(?:{re.escape(character)}{pattern})?"
    return re.escape(literal[0]) + pattern


_BEGUN: Final = re.compile(
    rf"(?:</?(?:{_NAME}(?:\s[^<>]{{0,90}})?/?|标)?"
    rf"|{_begun('<!--')}|<!--\s{{0,64}}(?:{_begun('<serp_queries>')})?|{_begun('<serp_queries>')}"
    rf"|{_begun('</serp_queries>')}|</serp_queries>\s{{0,64}}(?:{_begun('-->')})?"
    r")\Z"
)
_BROKEN: Final = re.compile(
    "|".join(_begun(f"<{mark}{name}>") for name in sorted(STRUCTURE) for mark in ("", "/"))
    + r"|<phase\s[^<>]*|<!--.*|</?serp_.*|</?标.*",
    re.DOTALL,
)


class Tag(NamedTuple):
    """Something that is not plain text: `name` has a leading `/` if it closes.

    Names are lower case. `queries` and `/queries` are the texts around the search queries, `stub` is a
    text that an edit right after it would make a tag.
    """

    name: str
    text: str


Token = Tag | str


class Scanner:
    """A cutter of a text, piece by piece, into plain texts and tags; joined they are the text again."""

    def __init__(self) -> None:
        self.rest = ""

    def feed(self, piece: str) -> list[Token]:
        """Return the tokens that are certain by now."""
        return self._cut(self.rest + piece, ended=False)

    def finish(self) -> list[Token]:
        """Return the last tokens, when nothing more comes."""
        return self._cut(self.rest, ended=True)

    def _cut(self, text: str, *, ended: bool) -> list[Token]:
        tokens: list[Token] = []
        done, end = 0, len(text)
        for candidate in _CANDIDATE.finditer(text):
            place = candidate.start()
            if place < done:
                continue
            if not ended and _BEGUN.match(text, place):
                end = place
                break
            tag = _tag(text, place)
            if tag is not None:
                if done < place:
                    tokens.append(text[done:place])
                tokens.append(tag)
                done = place + len(tag.text)
        if done < end:
            tokens.append(text[done:end])
        self.rest = text[end:]
        return tokens


def _tag(text: str, place: int) -> Tag | None:
    found = _TOKEN.match(text, place)
    if found is None:
        return None
    match found.lastgroup:
        case "tag":
            name = "title" if found["name"] == "标题" else found["name"].lower()
            return Tag(found["mark"] + name, found[0])
        case "queried":
            return Tag("/queries", found[0])
        case name:
            return Tag(str(name), found[0])


def is_broken(rest: str) -> bool:
    """Return whether a text that ends with `rest` breaks off inside a tag of ours."""
    return len(rest) > 1 and _BROKEN.fullmatch(rest) is not None
