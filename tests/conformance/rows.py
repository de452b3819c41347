"""The rows of `seed-*.toml`: every requirement of the seeds, and where it is shown or ruled on.

A row without `ruling` and `open` holds, and its tests show it. `ruling` says why the seed's letter is
not followed and `docs` which page says so, by a phrase that stands there; `open` what is missing.
"""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from tests.support.paths import ROOT

HERE: Final = Path(__file__).parent
_LINES: Final = re.compile(r"\d+(?:-\d+)?(?:, \d+(?:-\d+)?)*")
State = Literal["holds", "ruling", "open"]


class Docs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A page of the project and words that stand on it."""

    file: str
    phrase: str


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One requirement; `id` is counted over `part`, the lines are the seed's."""

    id: int
    lines: str
    says: str
    tests: tuple[str, ...] = ()
    ruling: str = ""
    docs: Docs | None = None
    open: str = ""

    @property
    def state(self) -> State:
        return "open" if self.open else "ruling" if self.ruling else "holds"


class Seed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One of the five documents. Those of one `part` are numbered together."""

    seed: str
    part: str
    title: str
    row: tuple[Row, ...]


def seeds() -> list[Seed]:
    """All of them, in order."""
    files = sorted(HERE.glob("seed-*.toml"))
    return [msgspec.convert(tomllib.loads(path.read_text()), Seed) for path in files]


def numbers(found: list[Seed]) -> dict[str, list[int]]:
    """The ids of each part, in the order in which they stand."""
    told: dict[str, list[int]] = {}
    for seed in found:
        told.setdefault(seed.part, []).extend(row.id for row in seed.row)
    return told


def faults_of(row: Row) -> list[str]:
    """What is wrong with a row, in words."""
    faults = [f"{name} is no test" for name in row.tests if not is_test(name)]
    if not _LINES.fullmatch(row.lines):
        faults.append("its lines are no numbers of lines")
    if row.ruling and row.open:
        faults.append("it cannot be ruled on and open")
    if not row.tests and row.state == "holds":
        faults.append("nothing shows that it holds")
    if bool(row.ruling) != (row.docs is not None):
        faults.append("a ruling names the page that says it, and nothing else does")
    if row.docs is not None and not says(row.docs):
        faults.append(f"{row.docs.file} does not say: {row.docs.phrase}")
    return faults


def is_test(name: str) -> bool:
    """Whether `file::function`, with or without `[parameters]`, is in the tree."""
    path, _, function = name.partition("::")
    return function.partition("[")[0] in _tests_in(path)


def says(docs: Docs) -> bool:
    """Whether the phrase stands on the page, however its lines are broken."""
    path = ROOT / docs.file
    return path.is_file() and _plain(docs.phrase) in _plain(path.read_text())


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", text)


@cache
def _tests_in(path: str) -> frozenset[str]:
    file = ROOT / path
    if not (path.startswith("tests/") and file.is_file()):
        return frozenset()
    tree: Any = ast.parse(file.read_text())
    return frozenset(
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    )
