"""`python -m tests.conformance`: write docs/protocols/conformance.md. Needs no database."""

from __future__ import annotations

from collections import Counter
from os.path import relpath
from typing import Final

from tests.conformance.rows import Row, Seed, State, seeds
from tests.support.paths import ROOT

PAGE: Final = ROOT / "docs" / "protocols" / "conformance.md"
STATES: Final[tuple[State, ...]] = ("holds", "ruling", "open")
HEAD: Final = """# Conformance

What the five seeds require, row by row, and the test that shows each. Made by
`python -m tests.conformance` from `tests/conformance/seed-*.toml`: change a row there.
`tests/tree/test_conformance.py` fails where a named test is not there, where nothing shows a row,
and where this page is not what the rows say.

**holds**: the tests show it. **ruling**: the seed's letter is not followed; the reason stands in the row
and on the page that it names. **open**: what is missing stands in the row.
"""


def page() -> str:
    """The whole page: totals first, then a table per seed."""
    found = seeds()
    return "\n".join([HEAD, *_totals(found), *(line for seed in found for line in _table(seed))]) + "\n"


def _totals(found: list[Seed]) -> list[str]:
    head = "| seed | requirements | " + " | ".join(STATES) + " |"
    each = [_total(f"{seed.seed} {seed.title}", seed.row) for seed in found]
    every = _total("all", tuple(row for seed in found for row in seed.row))
    return [head, "|---" * (2 + len(STATES)) + "|", *each, every]


def _total(name: str, rows: tuple[Row, ...]) -> str:
    counted = Counter(row.state for row in rows)
    return f"| {name} | {len(rows)} | " + " | ".join(str(counted[state]) for state in STATES) + " |"


def _table(seed: Seed) -> list[str]:
    title = ["", f"## Seed {seed.seed}: {seed.title}", ""]
    head = ["| # | lines | requirement | state | shown by |", "|---|---|---|---|---|"]
    return [*title, *head, *map(_line, seed.row)]


def _line(row: Row) -> str:
    shown = "<br>".join(f"`{name}`" for name in row.tests)
    cells = (str(row.id), row.lines, row.says, _state(row), shown)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _state(row: Row) -> str:
    if row.docs is not None:
        return f"ruling: {row.ruling} ([{row.docs.file}]({relpath(row.docs.file, 'docs/protocols')}))"
    return f"open: {row.open}" if row.open else "holds"


if __name__ == "__main__":
    PAGE.write_text(page())
