"""The glossary stays short, and every word of it leads to code."""

from __future__ import annotations

import re
from importlib.util import find_spec

from tests.support.paths import ROOT

GLOSSARY = ROOT / "docs" / "glossary.md"
ROW = re.compile(r"^\| (?P<term>[^|]+) \| (?P<meaning>[^|]+) \| `(?P<module>[a-z_.]+)` \|$", re.M)
MOST_TERMS = 40


def test_at_most_forty_terms_in_order_and_each_leads_to_a_module() -> None:
    rows = [found.groupdict() for found in ROW.finditer(GLOSSARY.read_text())]
    terms = [row["term"] for row in rows]
    assert 30 <= len(terms) <= MOST_TERMS, "drop or merge a term"
    assert terms == sorted(set(terms))
    assert [row["term"] for row in rows if find_spec(row["module"]) is None] == []
