"""Texts that make a backtracking pattern slow, made from the pattern itself, and what they cost.

A pattern is slow where it can begin or go on in many ways and then fails. So a text is a *pump*: the
beginning of a match, one piece again and again, and an end that fits nothing. The pieces are every
body that the pattern repeats and every beginning of the pattern, written with each kind of character
that its classes tell apart.
"""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final, NamedTuple

_parser: Any = import_module("re._parser")

SIZES: Final = (16, 24, 36, 54, 81, 120, 180, 270, 400, 600, 1_000, 3_000, 10_000, 30_000, 100_000)
"""In small steps at first, so that what is exponential is seen before it takes years."""
_SLOWEST: Final = ((1_000, None), (10_000, 10), (100_000, 3))
"""How many of a pattern's texts are tried up to which length, the slowest first; None is all."""
METHODS: Final = frozenset(
    {"search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer"}
)
_BOUND_S: Final = 10e-6  # of CPU per character, five times what the slowest linear pattern takes
_LEAST_S: Final = 0.02
_CHARACTERS: Final = "a0 \n-_.A中é!:/\"'\\<{\x00"
_ANYTHING: Final = (
    *"a0A \n\t\u3000{}[]()<>\"'\\`#/-_:;,.=&@*é中",
    "ab", "a ", "a-", "a.", "a:", "a=", "0,", "{}", "[]", "()", "<>", "<a ", "](", '\\"', "\n ", "中a",
)  # fmt: skip
_ENDS: Final = ("", "\n\x00!")
_CATEGORIES: Final = {
    f"CATEGORY_{name}": re.compile(letter)
    for name, letter in (
        ("DIGIT", r"\d"),
        ("NOT_DIGIT", r"\D"),
        ("SPACE", r"\s"),
        ("NOT_SPACE", r"\S"),
        ("WORD", r"\w"),
        ("NOT_WORD", r"\W"),
    )
}
Node = tuple[Any, Any]


class Pump(NamedTuple):
    """A text of any length: the head, the body as often as it fits, the end."""

    head: str
    body: str
    end: str = ""

    def text(self, size: int) -> str:
        """The text of about `size` characters."""
        return self.head + self.body * (size // len(self.body)) + self.end


@dataclass
class _Writer:
    """Writes what a part of a pattern matches; its classes by `favourite` where they take it."""

    favourite: str
    optional: bool
    groups: dict[int, str] = field(default_factory=dict)

    def text(self, nodes: Iterable[Node]) -> str:
        return "".join(self._one(op.name, value) for op, value in nodes)

    def _one(self, op: str, value: Any) -> str:
        match op:
            case "LITERAL":
                return chr(value)
            case "NOT_LITERAL" | "ANY" | "IN":
                return next((c for c in self.favourite + _of(value) if _takes(op, value, c)), "")
            case "BRANCH":
                return self.text(value[1][0])
            case "SUBPATTERN":
                written = self.text(value[3])
                self.groups[value[0] or 0] = written
                return written
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                return self.text(value[2]) * (value[0] or self.optional)
            case "ATOMIC_GROUP":
                return self.text(value)
            case "GROUPREF":
                return self.groups.get(value, "")
            case "ASSERT" if value[0] < 0:
                return self.text(value[1])
        return ""


def pumps(pattern: re.Pattern[Any]) -> set[Pump]:
    """The adversarial texts of a pattern."""
    tree = list(_parser.parse(pattern.pattern, pattern.flags))
    found = {Pump("", piece) for piece in _ANYTHING}
    for favourite in _favourites(tree):
        for optional in (False, True):
            found |= set(_pumped(tree, "", _Writer(favourite, optional)))
    return {Pump(pump.head, pump.body, end) for pump in found if pump.body for end in _ENDS}


def _pumped(nodes: Iterable[Node], head: str, writer: _Writer) -> Iterator[Pump]:
    """Every repeated body behind what precedes it, and every beginning of the pattern by itself."""
    for op, value in nodes:
        for inner in _inner(op.name, value):
            if op.name.endswith("_REPEAT"):
                yield Pump(head, writer.text(inner))
            yield from _pumped(inner, head, writer)
        head += writer.text([(op, value)])
        yield Pump("", head)


def _inner(op: str, value: Any) -> Iterable[Iterable[Node]]:
    match op:
        case "BRANCH":
            return list(value[1])
        case "SUBPATTERN":
            return [value[3]]
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            return [value[2]]
        case "ATOMIC_GROUP":
            return [value]
        case "ASSERT" | "ASSERT_NOT":
            return [value[1]]
    return []


def _favourites(tree: Iterable[Node]) -> list[str]:
    """A character of every kind that the pattern's classes tell apart."""
    atoms = list(_atoms(tree))
    classes = [atom for atom in atoms if atom[0] != "LITERAL"]
    literals = {chr(value) for op, value in atoms if op == "LITERAL"}
    known = {*_CHARACTERS, *literals, *(c for op, value in classes for c in _of(value))}
    kinds = {(*(_takes(op, value, c) for op, value in classes), c in literals): c for c in sorted(known)}
    return [c for kind, c in kinds.items() if any(kind[:-1])] or ["a"]


def _atoms(nodes: Iterable[Node]) -> Iterator[tuple[str, Any]]:
    for op, value in nodes:
        if op.name in ("LITERAL", "NOT_LITERAL", "ANY", "IN"):
            yield op.name, value
        for inner in _inner(op.name, value):
            yield from _atoms(inner)


def _of(value: Any) -> str:
    """Characters to try for a class: those that it names, and some of every kind."""
    items = value if isinstance(value, list) else []
    named = (item if op.name == "LITERAL" else item[0] for op, item in items if _is_named(op))
    return "".join(map(chr, named)) + _CHARACTERS


def _is_named(op: Any) -> bool:
    return op.name in ("LITERAL", "RANGE")


def _takes(op: str, value: Any, character: str) -> bool:
    """Whether a class takes a character."""
    if op == "ANY":
        return character != "\n"
    if op == "NOT_LITERAL":
        return bool(ord(character) != value)
    negated = bool(value[0][0].name == "NEGATE")
    return any(_holds(item.name, what, character) for item, what in value[negated:]) != negated


def _holds(item: str, what: Any, character: str) -> bool:
    match item:
        case "LITERAL":
            return bool(ord(character) == what)
        case "RANGE":
            return bool(what[0] <= ord(character) <= what[1])
    return _CATEGORIES[what.name].match(character) is not None


# --- what they cost ------------------------------------------------------------------------------


def too_slow(
    pattern: re.Pattern[Any], methods: Iterable[str], *, longest: int = SIZES[-1]
) -> str | None:
    """The first text, method and size that costs more than any linear pattern does; None if none."""
    texts = pumps(pattern)
    for method in sorted({_like(method) for method in methods}):
        if found := _too_slow(pattern, method, texts, min(longest, SIZES[-1])):
            return found
    return None


def _too_slow(pattern: re.Pattern[Any], method: str, texts: Iterable[Pump], longest: int) -> str | None:
    costs = dict.fromkeys(texts, 0.0)
    for size in sorted({min(size, longest) for size in SIZES}):
        most = next(most for length, most in _SLOWEST if size <= length)
        for pump in sorted(costs, key=costs.__getitem__, reverse=True)[:most]:
            costs[pump] = cost = _cpu_s(pattern, method, pump.text(size))
            if cost > max(_LEAST_S, size * _BOUND_S):
                return f"{method} of {size:,} characters like {pump}: {cost:.2f} s of CPU"
    return None


def _like(method: str) -> str:
    """The methods that go over a whole text cost what `finditer` costs."""
    return method if method in ("search", "match", "fullmatch") else "finditer"


def _cpu_s(pattern: re.Pattern[Any], method: str, text: str) -> float:
    given = text if isinstance(pattern.pattern, str) else text.encode("latin-1", "replace")
    begun = time.thread_time()
    found = getattr(pattern, method)(given)
    if method == "finditer":
        deque(found, maxlen=0)
    return time.thread_time() - begun
