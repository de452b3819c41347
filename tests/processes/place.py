"""A fresh machine on which Parley is started as a person starts it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from benchmarks.ports import free_port
from tests.schema_true.recording import records
from tests.support.paths import ROOT

STOP_S = 30


@dataclass
class Place:
    """A fresh machine: a folder, a free port, and the processes started on it."""

    folder: Path
    port: int
    processes: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def notes(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "up.json").read_text())
        return found

    def up(self, *command: str, **variables: str) -> subprocess.Popen[str]:
        """Start Parley, with another command than that of the checkout if one is given."""
        keep = ("PATH", "HOME", "TMPDIR", "LANG", "PYTHONWARNINGS")
        environment = {name: os.environ[name] for name in keep if name in os.environ}
        environment |= {"VAR_DIR": str(self.folder), "PORT": str(self.port), "DEMO_TOKEN_S": "0.001"}
        process = subprocess.Popen(
            command or (sys.executable, "manage.py", "up"),
            cwd=self.folder if command else ROOT,
            env=environment | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.processes.append(process)
        records.servers.add(f"127.0.0.1:{self.port}")
        return process

    def wait_until_ready(self, process: subprocess.Popen[str]) -> str:
        """What it printed up to its last line."""
        assert process.stdout is not None
        said = ""
        for line in process.stdout:
            said += line
            if "Ctrl-C stops everything" in line:
                return said
        raise AssertionError(f"it ended with {process.wait(STOP_S)}: {said}")

    def postmaster(self) -> int:
        return int((self.folder / "postgres" / "postmaster.pid").read_text().split()[0])

    def postgres(self) -> list[int]:
        found = []
        for process in psutil.process_iter(["name", "cmdline"]):
            if process.info["name"] == "postgres" and str(self.folder / "postgres") in (
                process.info["cmdline"] or []
            ):
                found.append(process.pid)
        return found


@contextmanager
def fresh() -> Iterator[Place]:
    """A machine without Parley.

    Not under tmp_path: each new pytest session locks that for PostgreSQL's own user.
    """
    made = Place(Path(tempfile.mkdtemp(prefix="parley-start-")), free_port())
    yield made
    for process in made.processes:
        if process.poll() is None:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
    for pid in made.postgres():
        os.kill(pid, signal.SIGKILL)
    shutil.rmtree(made.folder, ignore_errors=True)
