"""The real AG-UI clients in a Node process of the test session (see clients.mjs)."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
GENERATIONS = ("1.0.0", "0.0.59")
_CI = os.environ.get("CI") == "true"


def installed(folder: Path = HERE) -> str:
    """The path of Node once a folder's packages are there; skips the test where they cannot be had."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None or _major(node) < 20:
        return _missing("Node 20 or newer with npm is needed to run the real AG-UI clients")
    modules = folder / "node_modules"
    modules.mkdir(exist_ok=True)
    mark, wanted = modules / ".installed", (folder / "package.json").read_text()
    with (modules / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (mark.exists() and mark.read_text() == wanted):
            command = [
                npm,
                "install",
                "--no-audit",
                "--no-fund",
                "--no-package-lock",
                "--ignore-scripts",
            ]
            done = subprocess.run(command, cwd=folder, capture_output=True, timeout=300, check=False)
            if done.returncode:
                return _missing("npm could not install the AG-UI clients (no registry?)")
            mark.write_text(wanted)
    return node


def _major(node: str) -> int:
    said = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=30, check=False)
    return int(said.stdout.lstrip("v").split(".")[0] or 0)


def _missing(reason: str) -> str:
    if _CI:
        pytest.fail(reason)
    pytest.skip(reason)


class Clients:
    """Answers to `ask` come from `clients.mjs`, one at a time."""

    def __init__(self, node: str) -> None:
        self._process = subprocess.Popen(
            [node, "clients.mjs"],
            cwd=HERE,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        self._made = 0

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(10)
        self._process.stdout.close()

    def ask(self, op: str, **given: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"op": op} | given) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        assert "broken" not in answer, answer["broken"]
        return answer

    def new(self, generation: str, **given: Any) -> RealClient:
        made = self.made(generation, **given)
        self.ask(**made)
        return RealClient(self, made["agent"])

    def made(self, generation: str, **given: Any) -> dict[str, Any]:
        """What to ask for a new client, of a name of its own."""
        self._made += 1
        name = f"agent-{self._made}"
        url = {"url": "http://127.0.0.1:9/"}
        return {"op": "new", "agent": name, "generation": generation} | url | given

    def chains(self, chains: list[list[dict[str, Any]]], *, at_once: int = 1) -> list[list[Any]]:
        """The answers to lists of questions, so many lists at once; nothing that a client warns of."""
        told = self.ask("chains", chains=chains, atOnce=at_once)
        assert [said for said in told["warnings"] if "connection cut" not in said] == []
        answers: list[list[Any]] = told["answers"]
        return answers


class RealClient:
    """One `HttpAgent`, and what its app would see."""

    def __init__(self, clients: Clients, name: str) -> None:
        self._clients = clients
        self._name = name

    def run(self, **given: Any) -> dict[str, Any]:
        seen: dict[str, Any] = self._clients.ask("run", agent=self._name, **given)
        return seen


def start() -> Iterator[Clients]:
    """The clients for a session."""
    clients = Clients(installed())
    yield clients
    clients.close()
