"""The decision records are listed, have one shape, name code that is there, and explain each package."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.paths import ROOT

FOLDER = ROOT / "docs" / "decisions"
INDEX = (FOLDER / "index.md").read_text()
PAGES = sorted(FOLDER.glob("[0-9]*.md"))
LISTS = sorted((ROOT / "requirements").glob("*.in"))
DEPENDENCIES = (FOLDER / "0009-dependencies.md").read_text()
HEADINGS = [
    "Question",
    "Decision",
    "Why",
    "What it costs",
    "What would change our mind",
    "Where in the code",
]
_LISTED = re.compile(r"^\| (?P<number>\d+) \| \[(?P<title>.+)\]\((?P<page>[\w.-]+)\) \| [^|]+ \|$", re.M)
_HEADING = re.compile(r"^## (.+)$", re.M)
_PATH = re.compile(r"`([a-z.][\w.-]*(?:/[\w.-]*)+)`")
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")
_ROW = re.compile(r"^\| `([^`]+)` \|(?: [^|]+ \|){4}$", re.M)


def _name(page: Path) -> str:
    return page.stem


def _section(title: str) -> str:
    """Return the text of the page of dependencies below this heading of the third level."""
    _, found, after = DEPENDENCIES.partition(f"\n### `{title}`")
    assert found, f"docs/decisions/0009-dependencies.md has no section ### `{title}`"
    return re.split(r"^##", after, maxsplit=1, flags=re.M)[0]


def test_the_index_lists_every_page_in_order_by_its_title() -> None:
    listed = [(int(row["number"]), row["title"], row["page"]) for row in _LISTED.finditer(INDEX)]
    titles = [page.read_text().splitlines()[0] for page in PAGES]
    assert [(f"# {number}. {title}", page) for number, title, page in listed] == [
        (title, page.name) for title, page in zip(titles, PAGES, strict=True)
    ]
    assert [number for number, _, _ in listed] == [int(page.name[:4]) for page in PAGES]
    assert [number for number, _, _ in listed] == list(range(1, len(PAGES) + 1))


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_page_has_the_same_headings(page: Path) -> None:
    assert _HEADING.findall(page.read_text()) == HEADINGS


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_the_code_that_a_page_names_is_there(page: Path) -> None:
    named = _PATH.findall(page.read_text())
    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("listing", LISTS, ids=_name)
def test_every_package_of_a_list_has_a_row_and_no_row_is_too_many(listing: Path) -> None:
    lines = [line.strip() for line in listing.read_text().splitlines()]
    listed = [_package(line) for line in lines if line and not line.startswith(("#", "-"))]
    assert sorted(_ROW.findall(_section(f"requirements/{listing.name}"))) == sorted(listed)


def test_no_section_explains_a_list_that_is_gone() -> None:
    explained = re.findall(r"^### `(requirements/\S+)`", DEPENDENCIES, re.M)
    assert sorted(explained) == [f"requirements/{listing.name}" for listing in LISTS]


def _package(line: str) -> str:
    """Return the name in a line of requirements, without extras and versions."""
    found = _NAME.match(line)
    assert found is not None, line
    return found[0]
