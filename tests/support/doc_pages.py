"""What the README and the pages of docs/ hold."""

from __future__ import annotations

import re

from tests.support.paths import ROOT

README = (ROOT / "README.md").read_text()


def section(title: str) -> str:
    """The text of one `## title`."""
    return README.split(f"\n## {title}\n")[1].split("\n## ")[0]


DOCS = ROOT / "docs"


def snippets(page: str, language: str) -> list[str]:
    """The blocks of code in this language on a page of docs/."""
    found = re.findall(
        rf"^```{language}\n(.*?)^```$", (DOCS / page).read_text(), re.MULTILINE | re.DOTALL
    )
    assert found
    return [str(code) for code in found]
