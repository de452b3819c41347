"""Correct misspelled English words: one letter too many, too few, wrong or misplaced.

Two words are one error apart if they become equal when at most one letter of each is left out. So an
index of all such shorter forms finds the correction without a comparison of words.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

SHORTEST: Final = 5  # too many words of four letters are one error apart, such as code and core
LONGEST: Final = 24


class Spellings:
    """An index of known words, by their misspellings."""

    __slots__ = ("_by_form",)

    def __init__(self, known: Iterable[str]) -> None:
        self._by_form: defaultdict[str, list[str]] = defaultdict(list)
        for word in known:
            if _is_correctable(word):
                for form in _forms(word):
                    self._by_form[form].append(word)

    def find_nearest(self, typed: str) -> tuple[str, ...]:
        """Return the known word one error away with the same first letter (of several, one)."""
        if not _is_correctable(typed):
            return ()
        near = {word for form in _forms(typed) for word in self._by_form.get(form, ())}
        alike = (word for word in near if word[0] == typed[0] and _one_error(typed, word))
        return tuple(sorted(alike, key=lambda word: (abs(len(word) - len(typed)), word))[:1])


def _is_correctable(word: str) -> bool:
    return word.isascii() and word.isalpha() and SHORTEST <= len(word) <= LONGEST


def _forms(word: str) -> Iterator[str]:
    yield word
    yield from {word[:at] + word[at + 1 :] for at in range(len(word))}


def _one_error(typed: str, word: str) -> bool:
    """Return whether one letter differs, or two neighbours are swapped, in words of equal length."""
    if len(typed) != len(word):
        return True
    wrong = [at for at, (one, other) in enumerate(zip(typed, word, strict=True)) if one != other]
    match wrong:
        case [_]:
            return True
        case [first, second]:
            return second == first + 1 and typed[first] == word[second] and typed[second] == word[first]
    return False
