"""The README is a first screen: small, and nothing that it points to is missing."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.client import Client
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


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl here")
def test_its_first_command_streams_an_answer(client: Client, tmp_path: Path) -> None:
    [commands] = re.findall(r"```sh\n(TOKEN=.*?)```", README, re.DOTALL)
    (tmp_path / "var").mkdir()
    (tmp_path / "var" / "up.json").write_text(json.dumps({"client_token": client.token}, indent=1))
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands.replace("http://127.0.0.1:8000", client.url)],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "NO_PROXY": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    shown = re.findall(r"^event: \w+\nid: \d+$", README, re.MULTILINE)
    assert len(shown) == 3
    assert all(frame in done.stdout for frame in shown), done.stdout
