"""What the pages of docs/ hold."""

from __future__ import annotations

import re

from tests.support.paths import ROOT

DOCS = ROOT / "docs"


def page(name: str) -> str:
    """The text of a page of docs/."""
    return (DOCS / name).read_text()


def snippets(name: str, language: str) -> list[str]:
    """The blocks of code in this language on a page of docs/."""
    found = re.findall(rf"^```{language}\n(.*?)^```$", page(name), re.MULTILINE | re.DOTALL)
    assert found
    return [str(code) for code in found]
