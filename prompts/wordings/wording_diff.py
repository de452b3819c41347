"""A side-by-side diff of two wordings, by lines and by the words in changed lines."""

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
_ALIKE: Final = 0.5  # lines that are less similar are shown as unrelated
Kind = Literal["same", "changed", "added", "removed", "gap"]


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a line; `differs` marks the differences between two similar lines."""

    text: str
    differs: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """One line of each side; a number is None if that side has no line. A gap has no spans."""

    kind: Kind
    left_number: int | None = None
    right_number: int | None = None
    left: tuple[Span, ...] = ()
    right: tuple[Span, ...] = ()
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class Comparison:
    """The differences between two texts."""

    rows: tuple[Row, ...]
    added: int
    removed: int

    @property
    def same(self) -> bool:
        return not self.added and not self.removed


def compare(before: str, after: str) -> Comparison:
    """Compare two texts by lines; long unchanged parts are reduced to a few lines of context."""
    rows = list(_rows(_lines(before), _lines(after)))
    return Comparison(
        tuple(_collapse_unchanged(rows)),
        added=sum(row.kind in ("added", "changed") for row in rows),
        removed=sum(row.kind in ("removed", "changed") for row in rows),
    )


def _lines(text: str) -> list[str]:
    return text.split("\n")[:_MOST_LINES]


def _rows(left: list[str], right: list[str]) -> Iterator[Row]:
    """Yield rows of all lines; words are compared only up to a number of changes, as that is slow."""
    by_words = 0
    matcher = SequenceMatcher(None, left, right, autojunk=len(left) + len(right) > 1_000)
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal":
            for offset in range(b - a):
                same = (Span(left[a + offset]),)
                yield Row("same", a + offset + 1, c + offset + 1, same, same)
        else:
            yield from _changed_rows(left[a:b], right[c:d], a, c, words=by_words < _MOST_BY_WORDS)
            by_words += min(b - a, d - c)


def _changed_rows(left: list[str], right: list[str], a: int, c: int, *, words: bool) -> Iterator[Row]:
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


def _collapse_unchanged(rows: list[Row]) -> Iterator[Row]:
    """Yield the rows near a change; a gap with a count of lines replaces each part in between."""
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
