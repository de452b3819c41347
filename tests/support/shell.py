"""The shell commands of a page, run as a reader would after `make up`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.client import Client

needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl here")


def run_commands(commands: str, client: Client, folder: Path, **variables: str) -> str:
    """What the commands print, in a folder with the notes of `make up`, at the client's server."""
    (folder / "var").mkdir()
    (folder / "var" / "up.json").write_text(json.dumps({"client_token": client.token}, indent=1))
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands.replace("http://127.0.0.1:8000", client.url)],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "NO_PROXY": "127.0.0.1"} | variables,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
