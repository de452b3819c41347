"""docs/protocols/conformance.md: every requirement of the seeds has a test, or a ruling on a page."""

from __future__ import annotations

from typing import Final

import pytest
from msgspec.structs import replace

from tests.conformance import rows
from tests.conformance.__main__ import PAGE, page
from tests.conformance.rows import Docs, Row

SEEDS: Final = rows.seeds()
REQUIRED: Final = {"000-002": 151, "003": 170, "004": 103}
OURS: Final = "tests/tree/test_conformance.py::test_the_page_is_what_the_rows_say"
GOOD: Final = Row(1, "1-2", "It is so.", tests=(OURS,))


def test_every_row_is_shown_or_ruled_on() -> None:
    faults = {
        f"{seed.seed} row {row.id}": faults
        for seed in SEEDS
        for row in seed.row
        if (faults := rows.faults_of(row))
    }
    assert faults == {}


def test_no_requirement_is_left_out_or_told_twice() -> None:
    assert [seed.seed for seed in SEEDS] == ["000", "001", "002", "003", "004"]
    assert rows.numbers(SEEDS) == {part: [*range(1, last + 1)] for part, last in REQUIRED.items()}


def test_the_page_is_what_the_rows_say() -> None:
    assert PAGE.read_text() == page(), "python -m tests.conformance writes it anew"


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"tests": ("tests/tree/test_conformance.py::test_nowhere",)}, "is no test"),
        ({"tests": ("tests/pure/test_nowhere.py::test_nowhere",)}, "is no test"),
        ({"tests": ("tests/conformance/rows.py::is_test",)}, "is no test"),
        ({"lines": "–"}, "no numbers of lines"),
        ({"tests": ()}, "nothing shows that it holds"),
        ({"ruling": "No."}, "a ruling names the page"),
        ({"docs": Docs("README.md", "Parley")}, "a ruling names the page"),
        ({"ruling": "No.", "docs": Docs("README.md", "no such words")}, "does not say"),
        ({"ruling": "No.", "docs": Docs("NOWHERE.md", "Parley")}, "does not say"),
        ({"ruling": "No.", "docs": Docs("README.md", "Parley"), "open": "?"}, "ruled on and open"),
    ],
)
def test_a_row_that_nothing_shows_is_found(change: dict[str, object], fault: str) -> None:
    assert rows.faults_of(GOOD) == []
    assert fault in " ".join(rows.faults_of(replace(GOOD, **change)))


def test_parameters_may_be_named() -> None:
    assert rows.is_test(OURS + "[a]")
    assert not rows.is_test("tests/tree/test_conformance.py")
