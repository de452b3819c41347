"""Every promise of docs/operating/threat-model.md names a test that is there."""

from __future__ import annotations

import ast
import re

import pytest

from tests.support.paths import ROOT

pytestmark = pytest.mark.once

PAGE = (ROOT / "docs" / "operating" / "threat-model.md").read_text()
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py(?:::\w+)?)`", PAGE)))


@pytest.mark.parametrize("name", NAMED)
def test_a_named_test_is_there(name: str) -> None:
    path, _, function = name.partition("::")
    tree = ast.parse((ROOT / path).read_text())
    tests = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    assert function in tests if function else any(one.startswith("test_") for one in tests)


def test_every_promise_names_one() -> None:
    promised = PAGE.split("## What is promised")[1].split("\n## ")[0]
    rows = [line for line in promised.splitlines() if line.startswith("| ") and "---" not in line]
    without = [row for row in rows if "`tests/" not in row and row != "| promise | test |"]
    assert len(rows) > 20
    assert without == []
