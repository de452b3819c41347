"""Cut a document into chunks: whole paragraphs where they fit, and otherwise sentences.

A chunk has the heading above it, so that a search finds the chunk by the heading too. Pure functions.
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
    """Return the chunks in order: at most `MOST`, each of at most `LONGEST` characters."""
    found: list[Chunk] = []
    for heading, section in _sections(text):
        for piece in _join_paragraphs(section):
            found.append(Chunk(heading[:200], piece))
            if len(found) == MOST:
                return found
    return found


def _sections(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each heading with its paragraphs."""
    heading, pending = "", list[str]()
    for paragraph in _BLANK.split(text):
        for line_heading, body in _split_headings(paragraph.strip()):
            if line_heading is not None:
                if pending:
                    yield heading, pending
                heading, pending = line_heading, []
            if body:
                pending.append(body)
    if pending:
        yield heading, pending
    elif heading:
        yield heading, [heading]


def _split_headings(paragraph: str) -> Iterator[tuple[str | None, str]]:
    """Yield the heading lines of a paragraph, each with the text that follows it."""
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


def _join_paragraphs(paragraphs: list[str]) -> Iterator[str]:
    """Yield joined paragraphs, as many as fit; pieces of a long one overlap by a sentence."""
    pending = ""
    for piece in (piece for paragraph in paragraphs for piece in _split_paragraph(paragraph)):
        if pending and len(pending) + len(piece) + 2 > LONGEST:
            yield pending
            pending = ""
        pending = f"{pending}\n\n{piece}" if pending else piece
    if pending:
        yield pending


def _split_paragraph(paragraph: str) -> Iterator[str]:
    if len(paragraph) <= LONGEST:
        yield paragraph
        return
    pending, last = "", ""
    for sentence in _sentences(paragraph):
        if pending and len(pending) + len(sentence) > LONGEST:
            yield pending.strip()
            pending = last if len(last) <= _OVERLAP and len(last) + len(sentence) <= LONGEST else ""
        pending += sentence
        last = sentence
    if pending.strip():
        yield pending.strip()


def _sentences(paragraph: str) -> Iterator[str]:
    """Yield sentences, with a final space in scripts that have spaces; cut long ones anywhere."""
    for sentence in _SENTENCE.split(paragraph):
        if not sentence:
            continue
        spaced = sentence if ord(sentence[-1]) > 0x2E80 else f"{sentence} "
        for place in range(0, len(spaced), LONGEST):
            yield spaced[place : place + LONGEST]
