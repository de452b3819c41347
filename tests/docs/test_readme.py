"""The README is a first screen: small, and nothing that it points to is missing."""

from __future__ import annotations

import re

import pytest

from tests.support.paths import ROOT

pytestmark = pytest.mark.once

README = (ROOT / "README.md").read_text()
MOST_BYTES = 8_192


def test_it_is_a_first_screen() -> None:
    assert len(README.encode()) <= MOST_BYTES


def test_its_pictures_and_links_exist() -> None:
    targets = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", README)
    assert targets
    assert [target for target in targets if ":" not in target and not (ROOT / target).exists()] == []
