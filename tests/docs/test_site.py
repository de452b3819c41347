"""The site of docs/ is built without a warning, needs no network, and every page is on the list."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.doc_pages import DOCS, page
from tests.support.paths import ROOT

pytestmark = pytest.mark.once

_LOADED = re.compile(r"<(?:script|link|img)\b[^>]*\b(?:src|href)=[\"']?((?:https?:)?//[^\"'\s>]+)")


class Loader(yaml.SafeLoader):
    """YAML as mkdocs reads it, its own tags left alone."""


Loader.add_multi_constructor("!", lambda loader, suffix, node: None)


def nav() -> list[str]:
    """The pages of the navigation, in order."""

    def pages(entry: Any) -> Iterator[str]:
        match entry:
            case str():
                yield entry
            case list():
                for one in entry:
                    yield from pages(one)
            case dict():
                for one in entry.values():
                    yield from pages(one)

    return list(pages(yaml.load((ROOT / "mkdocs.yml").read_text(), Loader)["nav"]))


def test_the_site_is_built_and_nothing_of_it_is_elsewhere(tmp_path: Path) -> None:
    """`--strict`: a link, an anchor or a page of the navigation that is missing is an error."""
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    loaded = {
        address
        for html in (tmp_path / "site").rglob("*.html")
        for address in _LOADED.findall(html.read_text())
    }
    assert loaded == set()


def test_every_page_of_the_navigation_is_on_the_list_for_models() -> None:
    told = re.findall(r"^- \[[^]]+\]\(([^)]+)\): \S", page("llms.txt"), re.MULTILINE)
    assert sorted(told) == sorted(nav())
    assert [name for name in told if not (DOCS / name).exists()] == []
