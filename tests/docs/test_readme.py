"""The README is a first screen: small, and nothing that it points to is missing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.client import Client
from tests.support.paths import ROOT
from tests.support.shell import needs_curl, run_commands

pytestmark = pytest.mark.once

README = (ROOT / "README.md").read_text()
MOST_BYTES = 8_192


def test_it_is_a_first_screen() -> None:
    assert len(README.encode()) <= MOST_BYTES


def test_its_pictures_and_links_exist() -> None:
    targets = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", README)
    assert targets
    assert [target for target in targets if ":" not in target and not (ROOT / target).exists()] == []


@needs_curl
def test_its_first_command_streams_an_answer(client: Client, tmp_path: Path) -> None:
    [commands] = re.findall(r"```sh\n(TOKEN=.*?)```", README, re.DOTALL)
    printed = run_commands(commands, client, tmp_path)
    shown = re.findall(r"^event: \w+\nid: \d+$", README, re.MULTILINE)
    assert len(shown) == 3
    assert all(frame in printed for frame in shown), printed
