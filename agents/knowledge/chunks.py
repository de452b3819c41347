"""Cut a document into chunks: whole paragraphs where they fit, sentences where they do not.

A chunk knows the heading that it stands under, so that it can be found by it too. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

LONGEST: Final = 900
MOST: Final = 20_000
_OVERLAP: Final = 120
_BLANK: Final = re.compile(r"\n\s*\n")
_HEADING: Final = re.compile(r"#{1,6}\s+(\S.*)")
_SENTENCE: Final = re.compile(r"(?<=[.!?。！？；;\n])\s*")


class Chunk(NamedTuple):
    """A piece of a document, and the heading above it."""

    heading: str
    text: str


def chunks_of(text: str) -> list[Chunk]:
    """The chunks in order, each at most `LONGEST` characters; at most `MOST`."""
    found: list[Chunk] = []
    for heading, section in _sections(text):
        for piece in _packed(section):
            found.append(Chunk(heading[:200], piece))
            if len(found) == MOST:
                return found
    return found


def _sections(text: str) -> Iterator[tuple[str, list[str]]]:
    """Paragraphs by the heading that they stand under."""
    heading, held = "", list[str]()
    for paragraph in _BLANK.split(text):
        for line_heading, body in _headed(paragraph.strip()):
            if line_heading is not None:
                if held:
                    yield heading, held
                heading, held = line_heading, []
            if body:
                held.append(body)
    if held:
        yield heading, held
    elif heading:
        yield heading, [heading]


def _headed(paragraph: str) -> Iterator[tuple[str | None, str]]:
    """A paragraph's heading lines, each with what follows it."""
    heading: str | None = None
    lines: list[str] = []
    for line in paragraph.split("\n"):
        found = _HEADING.fullmatch(line.strip())
        if found:
            if heading is not None or lines:
                yield heading, "\n".join(lines).strip()
            heading, lines = found.group(1).strip(), []
        else:
            lines.append(line)
    yield heading, "\n".join(lines).strip()


def _packed(paragraphs: list[str]) -> Iterator[str]:
    """Paragraphs joined as far as they fit; a long one's pieces overlap by their last sentence."""
    held = ""
    for piece in (piece for paragraph in paragraphs for piece in _fitting(paragraph)):
        if held and len(held) + len(piece) + 2 > LONGEST:
            yield held
            held = ""
        held = f"{held}\n\n{piece}" if held else piece
    if held:
        yield held


def _fitting(paragraph: str) -> Iterator[str]:
    if len(paragraph) <= LONGEST:
        yield paragraph
        return
    held, last = "", ""
    for sentence in _sentences(paragraph):
        if held and len(held) + len(sentence) > LONGEST:
            yield held.strip()
            held = last if len(last) <= _OVERLAP and len(last) + len(sentence) <= LONGEST else ""
        held += sentence
        last = sentence
    if held.strip():
        yield held.strip()


def _sentences(paragraph: str) -> Iterator[str]:
    """Sentences, a space kept after those of spaced scripts; one too long is cut anywhere."""
    for sentence in _SENTENCE.split(paragraph):
        if not sentence:
            continue
        spaced = sentence if ord(sentence[-1]) > 0x2E80 else f"{sentence} "
        for place in range(0, len(spaced), LONGEST):
            yield spaced[place : place + LONGEST]
