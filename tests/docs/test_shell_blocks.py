"""The shell commands of the pages that no other test runs: run here, or at least there to be run."""

from __future__ import annotations

import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from django.contrib.auth.models import Group
from django.core.management import call_command

from benchmarks.ports import free_port
from config.auth.models import User
from config.auth.roles import sync_roles
from tests.support.doc_pages import DOCS, page, snippets
from tests.support.paths import ROOT

pytestmark = pytest.mark.once

_BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TARGETS = set(re.findall(r"^([a-z]+):.*?## ", (ROOT / "Makefile").read_text(), re.MULTILINE))


def shell_lines() -> Iterator[tuple[str, str]]:
    """Each page with each line of its shell blocks."""
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))):
        for block in _BLOCK.findall(path.read_text()):
            for line in block.splitlines():
                yield str(path.relative_to(ROOT)), line


def test_every_target_of_make_in_a_block_exists() -> None:
    named = [
        (name, target) for name, line in shell_lines() for target in re.findall(r"\bmake ([a-z]+)", line)
    ]
    assert len(named) >= 6
    assert [one for one in named if one[1] not in _TARGETS] == []


def test_every_path_that_contributing_names_exists() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    named = re.findall(r"\b(?:tests|docs|agents|config|requirements)/[\w./-]+\w|\.ci/run", text)
    assert len(named) >= 10
    assert [path for path in named if not (ROOT / path).exists()] == []


@pytest.mark.django_db
def test_the_roles_command_of_the_staff_page_gives_the_role() -> None:
    [line] = snippets("guides/staff.md", "sh")
    _python, _manage, command, flag, role, username = shlex.split(line)
    sync_roles()
    anna = User.objects.create_user(f"{username}-{uuid4().hex[:8]}")
    call_command(command, flag, role, anna.username)
    anna.refresh_from_db()
    assert anna.is_staff
    assert list(Group.objects.filter(user=anna).values_list("name", flat=True)) == [role]


@pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl here")
def test_the_runtime_command_of_the_plugin_page_listens(tmp_path: Path) -> None:
    [block] = snippets("extending/plugin-runtimes.md", "sh")
    wanted = re.search(r"langbot-plugin==[\d.]+", block)
    assert wanted
    assert wanted[0] in (ROOT / "requirements/oracle.txt").read_text().splitlines()
    port, last = free_port(), block.strip().splitlines()[-1]
    lbp = shlex.quote(str(Path(sys.executable).parent / "lbp"))
    command = last.replace("lbp rt", f"exec {lbp} rt").replace("5400", str(port))
    assert f"ws://127.0.0.1:{last.split()[-1]}/" in page("extending/plugin-runtimes.md")
    more = f" --ws-debug-port {free_port()} --skip-deps-check"
    with (tmp_path / "said").open("wb") as said:
        runtime = subprocess.Popen(
            ["bash", "-c", command + more], cwd=tmp_path, stdout=said, stderr=said
        )
    try:
        until = time.monotonic() + 60
        while not listens(port):
            assert runtime.poll() is None, (tmp_path / "said").read_text()
            assert time.monotonic() < until, (tmp_path / "said").read_text()
            time.sleep(0.1)
    finally:
        runtime.send_signal(signal.SIGTERM)
        try:
            runtime.wait(10)
        except subprocess.TimeoutExpired:
            runtime.kill()
            runtime.wait()


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
