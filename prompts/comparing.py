"""Two wordings side by side: lines that stay, go, come or change, and the words that differ in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Final, Literal

_WORDS: Final = re.compile(r"\w+|\s+|[^\w\s]")
_MOST_LINES: Final = 4_000
_LONGEST_LINE: Final = 500
_MOST_BY_WORDS: Final = 200
_AROUND: Final = 3
_ALIKE: Final = 0.5  # below it two lines have nothing to do with each other
Kind = Literal["same", "changed", "added", "removed", "gap"]


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of a line; `differs` if it is what distinguishes two lines that are alike."""

    text: str
    differs: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """One line of each side; a number is None where that side has no line. A gap's spans are empty."""

    kind: Kind
    left_number: int | None = None
    right_number: int | None = None
    left: tuple[Span, ...] = ()
    right: tuple[Span, ...] = ()
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class Comparison:
    """What differs between two texts."""

    rows: tuple[Row, ...]
    added: int
    removed: int

    @property
    def same(self) -> bool:
        return not self.added and not self.removed


def compare(before: str, after: str) -> Comparison:
    """The lines of both texts; long stretches that stay are left out but for a few lines around."""
    rows = list(_rows(_lines(before), _lines(after)))
    return Comparison(
        tuple(_without_stretches(rows)),
        added=sum(row.kind in ("added", "changed") for row in rows),
        removed=sum(row.kind in ("removed", "changed") for row in rows),
    )


def _lines(text: str) -> list[str]:
    return text.split("\n")[:_MOST_LINES]


def _rows(left: list[str], right: list[str]) -> Iterator[Row]:
    """Rows of all lines; past so many changed ones their words are not compared, which takes long."""
    by_words = 0
    matcher = SequenceMatcher(None, left, right, autojunk=len(left) + len(right) > 1_000)
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal":
            for offset in range(b - a):
                same = (Span(left[a + offset]),)
                yield Row("same", a + offset + 1, c + offset + 1, same, same)
        else:
            yield from _changed(left[a:b], right[c:d], a, c, words=by_words < _MOST_BY_WORDS)
            by_words += min(b - a, d - c)


def _changed(left: list[str], right: list[str], a: int, c: int, *, words: bool) -> Iterator[Row]:
    for offset, (old, new) in enumerate(zip_longest(left, right)):
        if old is None:
            yield Row("added", None, c + offset + 1, (), (Span(new),))
        elif new is None:
            yield Row("removed", a + offset + 1, None, (Span(old),), ())
        else:
            near = words and offset < _MOST_BY_WORDS
            spans = _words(old, new) if near else ((Span(old),), (Span(new),))
            yield Row("changed", a + offset + 1, c + offset + 1, *spans)


def _words(old: str, new: str) -> tuple[tuple[Span, ...], tuple[Span, ...]]:
    if len(old) > _LONGEST_LINE or len(new) > _LONGEST_LINE:
        return (Span(old),), (Span(new),)
    ours, theirs = _WORDS.findall(old), _WORDS.findall(new)
    matcher = SequenceMatcher(None, ours, theirs, autojunk=False)
    if matcher.ratio() < _ALIKE:
        return (Span(old),), (Span(new),)
    left, right = list[Span](), list[Span]()
    for tag, a, b, c, d in matcher.get_opcodes():
        differs = tag != "equal"
        if b > a:
            left.append(Span("".join(ours[a:b]), differs))
        if d > c:
            right.append(Span("".join(theirs[c:d]), differs))
    return tuple(left), tuple(right)


def _without_stretches(rows: list[Row]) -> Iterator[Row]:
    """Rows near a change; each stretch between is one gap that says how many lines it stands for."""
    places = [place for place, row in enumerate(rows) if row.kind != "same"]
    near = {shown for place in places for shown in range(place - _AROUND, place + _AROUND + 1)}
    skipped = 0
    for place, row in enumerate(rows):
        if place in near:
            if skipped:
                yield Row("gap", skipped=skipped)
                skipped = 0
            yield row
        else:
            skipped += 1
    if skipped and places:
        yield Row("gap", skipped=skipped)
