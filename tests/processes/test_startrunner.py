"""`manage.py startrunner` makes a package that is found by its entry point and passes its own test."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import PathDistribution
from importlib.util import find_spec
from pathlib import Path
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command

from agents.host import runner_catalogue
from agents.host_protocol.runner import HostedRunner
from agents.runners import registry
from tests.agents.runtimes.plugins.bound import audited, bound, said
from tests.support.client import Client
from tests.support.paths import ROOT


def test_the_made_runner_passes_its_own_test(tmp_path: Path) -> None:
    call_command("startrunner", "my_agent", str(tmp_path), verbosity=0)
    made = tmp_path / "my_agent"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:django", "-p", "no:cacheprovider", "tests"],
        cwd=made,
        env=os.environ | {"PYTHONPATH": f"{ROOT}:{made}", "DJANGO_SETTINGS_MODULE": "config.settings"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The id of a made runner that pip has built and installed, in a folder of the test's own."""
    if find_spec("setuptools.command.bdist_wheel") is None and find_spec("wheel") is None:
        pytest.skip("without the network pip builds a package only with setuptools 70.1 or later")
    name, site = f"made_{uuid4().hex[:8]}", tmp_path / "site"
    call_command("startrunner", name, str(tmp_path), verbosity=0)
    offline = ["--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check"]
    pip = [sys.executable, "-m", "pip", "install", "-q", *offline, "--target", str(site)]
    done = subprocess.run(
        [*pip, str(tmp_path / name)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    monkeypatch.syspath_prepend(str(site))
    registry.clear_cache()
    yield f"python:{name}"
    monkeypatch.undo()
    registry.clear_cache()


def test_the_made_runner_is_installed_by_pip_and_serves_runs(installed: str, client: Client) -> None:
    """As `pip install ./NAME` and a restart do: it is found by its entry point, listed, and runs."""
    greeting = {"greeting": "Hello. "}
    with bound(client, installed, config=greeting):
        run_id, answer, run = said(client, "Hi?")
        _, again, _ = said(client, "Again?", conversation_id=run["conversation_id"])
    assert (answer, again, run["status"]) == ("Hello. ", "Hello. ", "completed")
    assert audited(run_id, 2)[:2] == [("state_get", "ok"), ("state_set", "ok")]
    assert runner_catalogue.find(installed) is not None


def test_the_made_runner_is_found_by_its_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call_command("startrunner", "found_agent", str(tmp_path), verbosity=0)
    made = tmp_path / "found_agent"
    about = made / "found.dist-info"  # as pip would write it
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: parley-runner-found\nVersion: 0.1.0\n")
    declared = (made / "pyproject.toml").read_text().split('"parley.runners"]\n')[1].splitlines()[0]
    (about / "entry_points.txt").write_text(f"[parley.runners]\n{declared.replace(chr(34), '')}\n")
    monkeypatch.syspath_prepend(str(made))
    (entry,) = PathDistribution(about).entry_points
    runner = entry.load()
    assert isinstance(runner, HostedRunner)
    assert runner.manifest.id == f"python:{entry.name}" == "python:found_agent"


@pytest.mark.parametrize("name", ["My-Agent", "", "1st", "../up"])
def test_a_name_that_is_no_package_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(CommandError, match="small letters"):
        call_command("startrunner", name, str(tmp_path))


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(CommandError, match="already"):
        call_command("startrunner", "taken", str(tmp_path))
