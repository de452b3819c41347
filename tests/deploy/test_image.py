"""The steps of the Dockerfile, done without Docker: the same lines, in folders of a test.

Packages are linked from where the tests run instead of fetched, and the accounts of the final stage are
not made. All else is what a build does.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest

from benchmarks.ports import free_port
from benchmarks.stack import Parts, healthy_at
from tests.support.linked_packages import link_pinned
from tests.support.paths import ROOT

pytestmark = [pytest.mark.once, pytest.mark.timeout(240)]

DOCKERFILE: Final = (ROOT / "deploy" / "Dockerfile").read_text()
_OFFLINE: Final = {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0"}  # 0 is how pip reads a yes here


@dataclass(frozen=True)
class Step:
    """An instruction of a Dockerfile and its arguments."""

    name: str
    words: str


def stages() -> list[list[Step]]:
    """The steps of each stage, without its FROM."""
    found: list[list[Step]] = []
    lines = [line for line in DOCKERFILE.splitlines() if line and not line.startswith("#")]
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        name, _, words = line.partition(" ")
        if name == "FROM":
            found.append([])
        elif found:
            found[-1].append(Step(name, words.strip()))
    return found


BUILD, FINAL = stages()


def variables(steps: list[Step]) -> dict[str, str]:
    pairs = [
        word.partition("=") for step in steps if step.name == "ENV" for word in shlex.split(step.words)
    ]
    return {name: value for name, _, value in pairs}


def one(name: str) -> str:
    [words] = [step.words for step in FINAL if step.name == name]
    return words


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file system that the first stage leaves, as far as it writes in it."""
    made = tmp_path_factory.mktemp("image")
    (made / "bin").mkdir()
    (made / "bin" / "python").symlink_to(sys.executable)
    [source] = [made / step.words.lstrip("/") for step in BUILD if step.name == "WORKDIR"]
    source.mkdir()
    for step in BUILD:
        if step.name == "COPY":
            copy(step.words.split()[0], source)
        elif step.name == "RUN":
            run(step.words, made, source)
    return made


def copy(name: str, source: Path) -> None:
    """Copy what the ignore file lets through."""
    lines = (ROOT / "deploy" / "Dockerfile.dockerignore").read_text().splitlines()
    sent = [line[1:] for line in lines if line.startswith("!")]
    for path in sent if name == "." else [name]:
        assert path in sent
        if (ROOT / path).is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / path, source / path, ignore=ignored, dirs_exist_ok=True)
        else:
            shutil.copy(ROOT / path, source / path)


def run(line: str, root: Path, source: Path) -> None:
    """Run a line in the stage's folders; one that installs lists of packages links them."""
    words = line.split()
    if "-r" in words:
        [packages] = root.glob("opt/parley/lib/python*/site-packages")
        for flag, pins in pairwise(words):
            if flag == "-r":
                link_pinned(source / pins, packages)
        return
    for folder in ("/opt/parley", "/wheels"):
        line = line.replace(folder, f"{root}{folder}")
    environment = {"PATH": f"{root}/bin:/usr/bin:/bin", "HOME": os.environ["HOME"]}
    done = subprocess.run(
        ["sh", "-ec", line.replace("python -m", f"{sys.executable} -m")],
        cwd=source,
        env=environment | variables(BUILD) | _OFFLINE,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_final_stage_gets_the_environment_alone_and_runs_as_nobody_special(root: Path) -> None:
    assert [step.words for step in FINAL if step.name in ("COPY", "ADD")] == [
        "--from=build /opt/parley /opt/parley"
    ]
    [packages] = root.glob("opt/parley/lib/python*/site-packages")
    there = {path.name for path in packages.iterdir()}
    assert {"agents", "config", "conversations", "prompts", "django", "storages"} <= there
    assert not {"pip", "setuptools", "pytest"} & there
    assert one("USER") == "10001:10001"
    assert "--uid 10001" in one("RUN")


def test_the_image_serves_is_healthy_and_ends_on_sigterm(root: Path, tmp_path: Path) -> None:
    port, inside = free_port(), variables(FINAL)
    path = inside["PATH"].replace("/opt/parley", f"{root}/opt/parley").replace("$PATH", "/usr/bin:/bin")
    given = {"DATABASE_URL": os.environ["DATABASE_URL"], "COORDINATION": ""}
    given |= {"PORT": str(port), "HOST": "127.0.0.1", "VAR_DIR": str(tmp_path), "REDIS_URL": ""}
    assert given.keys() >= {name for name in inside if name in ("HOST", "VAR_DIR")}
    environment = inside | given | {"PATH": path}
    check = json.loads(one("HEALTHCHECK").partition("CMD ")[2])

    def healthy() -> bool:
        done = subprocess.run(
            [shutil.which(check[0], path=path) or check[0], *check[1:]],
            env=environment,
            capture_output=True,
            timeout=30,
            check=False,
        )
        return done.returncode == 0

    command = [*json.loads(one("ENTRYPOINT")), *json.loads(one("CMD"))]
    with Parts(tmp_path) as parts:
        assert not healthy()
        program = shutil.which(command[0], path=path)
        assert program is not None
        web = parts.start("web", program, *command[1:], env=environment)
        parts.wait("web", lambda: healthy_at(port))
        assert healthy()
        web.send_signal(signal.SIGTERM)
        assert web.wait(15) == 0
