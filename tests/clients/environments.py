"""Where the real clients live: an environment each, made once and used by every session after.

What a client needs stands in `requirements/clients`: `NAME.txt` for Python, `NAME/package.json` for
Node. Its folder is below `var/clients`, or below `CLIENTS_DIR`, and is named after what it holds, so
checkouts with other versions do not disturb each other.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple, NoReturn

import pytest

from tests.support.paths import ROOT

PINS: Final = ROOT / "requirements" / "clients"
PROGRAMS: Final = Path(__file__).with_name("programs")
KEPT: Final = Path(os.environ.get("CLIENTS_DIR") or ROOT / "var" / "clients")
ASKED: Final = os.environ.get("CLIENTS", "")
"""`all` has every client installed, `record` writes anew what the heavy ones send, too."""
EVERY: Final = ASKED in {"all", "record"}
RECORDS: Final = ASKED == "record"
_INSTALL_S: Final = 600
_NODE: Final = 20


class Client(NamedTuple):
    """A client: the package whose version counts, and what its environment weighs.

    Seconds are those of an installation on two cores with nothing kept from an earlier one.
    """

    package: str
    megabytes: int
    seconds: int
    heavy: bool = False


CLIENTS: Final[dict[str, Client]] = {
    "openai": Client("openai", 46, 5),
    "openai-agents": Client("openai-agents", 94, 12),
    "langchain-openai": Client("langchain-openai", 111, 30, heavy=True),
    "litellm": Client("litellm", 202, 50, heavy=True),
    "pydantic-ai": Client("pydantic-ai-slim", 85, 11),
    "agentscope-runtime": Client("agentscope-runtime", 58, 8),
    "openai-node": Client("openai", 35, 4),
    "openai-agents-node": Client("@openai/agents", 85, 9),
    "ai-sdk": Client("ai", 33, 4),
    "ag-ui": Client("ag-ui-client", 28, 3),
    "assistant-ui": Client("@assistant-ui/react-ag-ui", 81, 12, heavy=True),
    "copilotkit": Client("@copilotkit/runtime", 282, 49, heavy=True),
    "codex": Client("@openai/codex", 404, 12, heavy=True),
}


class Unavailable(Exception):
    """What a client needs cannot be had here."""


def is_played(name: str) -> bool:
    """Whether the client itself is run here, or only what it sent once is sent again."""
    return EVERY or not CLIENTS[name].heavy


def version(name: str) -> str:
    """The version of the client's package, as it is pinned."""
    package = CLIENTS[name].package
    if (manifest := PINS / name / "package.json").exists():
        pinned: str = json.loads(manifest.read_text())["dependencies"][package]
        return pinned.rpartition("@")[2]
    found = re.search(rf"(?m)^{re.escape(package)}==(\S+)$", (PINS / f"{name}.txt").read_text())
    assert found is not None, f"requirements/clients/{name}.txt does not name {package}"
    return found[1]


def python(name: str) -> Path:
    """The interpreter of a client's environment, which is made if need be."""
    pins = PINS / f"{name}.txt"
    with _kept(name, pins, f"python {sys.version_info[:2]}") as folder:
        interpreter = folder / "bin" / "python"
        if not _is_whole(folder):
            _run([sys.executable, "-m", "venv", "--clear", "--without-pip", str(folder)])
            pip = [sys.executable, "-m", "pip", "--python", str(interpreter), "--quiet", "--quiet"]
            _run([*pip, "install", "--no-compile", "--no-deps", "-r", str(pins)])
            _mark(folder)
    return interpreter


def node(name: str) -> tuple[str, Path]:
    """Node, and the folder of a client whose packages are there."""
    program = _node()
    with _kept(name, PINS / name / "package.json", "node") as folder:
        if not _is_whole(folder):
            shutil.rmtree(folder / "node_modules", ignore_errors=True)
            shutil.copy(PINS / name / "package.json", folder)
            options = ["--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts"]
            _run(["npm", "install", *options], folder)
            _mark(folder)
    return program, folder


@contextmanager
def beside_packages(folder: Path, *programs: Path) -> Iterator[Path]:
    """A folder for the programs from which Node finds the packages of the client's folder."""
    with tempfile.TemporaryDirectory(dir=folder, prefix="run-") as made:
        for program in programs:
            shutil.copy(program, made)
        yield Path(made)


def missing(reason: str) -> NoReturn:
    """Skip the test, or fail it where every client must be there."""
    if EVERY or os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@contextmanager
def _kept(name: str, pins: Path, made_by: str) -> Iterator[Path]:
    """The client's folder; one session at a time."""
    print_of = hashlib.sha256(pins.read_bytes() + made_by.encode()).hexdigest()[:10]
    folder = KEPT / f"{name}-{print_of}"
    folder.mkdir(parents=True, exist_ok=True)
    with (KEPT / f".{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


def _is_whole(folder: Path) -> bool:
    return (folder / ".installed").exists()


def _mark(folder: Path) -> None:
    (folder / ".installed").touch()


def _run(command: list[str], folder: Path | None = None) -> None:
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=_INSTALL_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{command[0]} took more than {_INSTALL_S} s") from None
    if done.returncode:
        raise Unavailable(f"{' '.join(command[:3])} … failed (no registry?): {done.stderr[-500:]}")


@functools.cache
def _node() -> str:
    found, npm = shutil.which("node"), shutil.which("npm")
    if found is None or npm is None or _major(found) < _NODE:
        raise Unavailable(f"Node {_NODE} or newer with npm is needed")
    return found


def _major(node: str) -> int:
    said = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=30, check=False)
    return int(said.stdout.lstrip("v").split(".")[0] or 0)
