"""The wheel, installed beside the pinned packages alone, as pipx does it: `parley up` elsewhere."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import zipfile
from importlib.metadata import Distribution, PathDistribution
from pathlib import Path

import httpx
import pytest

from tests.processes.place import STOP_S, fresh
from tests.support.linked_packages import link_pinned
from tests.support.paths import ROOT

pytestmark = pytest.mark.timeout(300)

PACKAGES = ("agents", "config", "conversations", "prompts")
PINS = ROOT / "requirements" / "base.txt"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of a copy of the tree, because a build leaves files beside it."""
    source, made = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for package in (*PACKAGES, "requirements"):
        shutil.copytree(
            ROOT / package, source / package, ignore=shutil.ignore_patterns("__pycache__", "*.pyc")
        )
    for file in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / file, source)
    _pip("wheel", str(source), "--no-deps", "--no-build-isolation", "--wheel-dir", str(made))
    [found] = made.iterdir()
    return found


@pytest.fixture(scope="module")
def scripts(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the programs of an environment that has the wheel and what it requires.

    The files of the pinned packages are linked from where the tests run: nothing is fetched again.
    """
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True, timeout=60)
    [packages] = folder.glob("lib/python*/site-packages")
    link_pinned(PINS, packages)
    interpreter = str(folder / "bin" / "python")
    _pip("--python", interpreter, "install", "--no-deps", "--no-index", str(wheel))
    _pip("--python", interpreter, "check")
    return folder / "bin"


def test_the_wheel_holds_every_file_of_the_packages(wheel: Path) -> None:
    there = {
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert packed == there


def test_it_requires_the_versions_that_are_tested(wheel: Path) -> None:
    about = _metadata(wheel)
    required = {re.sub(r"\s", "", each) for each in about.requires or [] if "extra ==" not in each}
    assert required == set(PINS.read_text().split())
    assert about.metadata["License-Expression"] == "Apache-2.0"
    assert about.metadata.get_all("Provides-Extra") == ["analytics", "daphne", "otel", "s3", "sentry"]
    assert f"## [{about.version}] - " in (ROOT / "CHANGELOG.md").read_text()


def test_parley_up_serves_runs_and_pages_from_any_folder(scripts: Path) -> None:
    with fresh() as place:
        process = place.up(str(scripts / "parley"), "up")
        said = place.wait_until_ready(process)
        with httpx.Client(base_url=place.url, trust_env=False, timeout=30) as client:
            token = {"Authorization": f"Bearer {place.notes['client_token']}"}
            answer = client.post(
                "/v1/chat/completions",
                headers=token,
                json={"model": "demo", "messages": [{"role": "user", "content": "chest"}]},
            )
            page = client.get("/admin/login/")
            style = client.get("/static/config/admin.css")
            contract = client.get("/api/v1/schemas/ui_hints_1")
        process.send_signal(signal.SIGINT)
        assert process.wait(STOP_S) == 0
    assert answer.json()["choices"][0]["finish_reason"] == "stop", answer.text
    assert [reply.status_code for reply in (page, style, contract)] == [200, 200, 200]
    assert "Parley is ready" in said


def test_the_command_says_its_version_its_usage_and_what_it_does_not_know(
    scripts: Path, wheel: Path
) -> None:
    assert _parley(scripts, "--version") == (0, f"{_metadata(wheel).version}\n", "")
    code, usage, _ = _parley(scripts)
    assert code == 0
    assert "parley up" in usage
    assert _parley(scripts, "upp")[::2] == (1, f"parley has no command 'upp'.\n\n{usage}")
    assert "erase_user" in _parley(scripts, "manage")[1]


def test_its_data_are_in_the_users_folder_and_a_missing_extra_is_named(
    scripts: Path, tmp_path: Path
) -> None:
    asked = "from config.process.installation import var_folder; print(var_folder())"
    found = subprocess.run(
        [scripts / "python", "-c", asked],
        cwd=tmp_path,
        env={"HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert Path(found.stdout.strip()).is_relative_to(tmp_path)
    given = {
        "DATABASE_URL": "postgresql:///unused",
        "VAR_DIR": str(tmp_path),
        "ATTACHMENT_STORAGE": "s3",
    }
    code, _, refusal = _parley(scripts, "manage", "check", **given)
    assert code == 1
    assert "Run pip install 'parley[s3]', or leave ATTACHMENT_STORAGE unset." in refusal


_IMPORT_ALL = """
import pkgutil, sys
from importlib import import_module
import django
django.setup()
from kombu.transport import get_transport_cls
names = [
    module.name
    for package in sys.argv[1:]
    for module in pkgutil.walk_packages(import_module(package).__path__, f"{package}.")
]
names += ["celery.bin.worker", "celery.worker.consumer", "celery.worker.components"]
for name in names:
    try:
        import_module(name)
    except ModuleNotFoundError as missing:
        print(name, missing.name)
for broker in ("redis", "amqp"):
    get_transport_cls(broker)
"""


def test_only_modules_of_extras_lack_what_they_import(scripts: Path, tmp_path: Path) -> None:
    """Also Celery's, whose transport for Redis imports what its package does not require."""
    given = {"DATABASE_URL": "postgresql:///unused", "VAR_DIR": str(tmp_path)}
    given |= {"DJANGO_SETTINGS_MODULE": "config.settings", "PATH": os.environ["PATH"]}
    command = [str(scripts / "python"), "-c", _IMPORT_ALL, *PACKAGES]
    done = subprocess.run(command, cwd=tmp_path, env=given, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert dict(line.split() for line in done.stdout.splitlines()) == {
        "agents.runners.pydantic_ai": "pydantic_ai",
        "config.telemetry.resource": "opentelemetry.sdk",
        "config.telemetry.sentry_reports": "sentry_sdk",
        "conversations.attachments.s3_storage": "boto3",
    }


def _metadata(wheel: Path) -> Distribution:
    archive = zipfile.ZipFile(wheel)
    [folder] = {name.split("/")[0] for name in archive.namelist() if ".dist-info/" in name}
    return PathDistribution(zipfile.Path(archive, f"{folder}/"))


def _parley(scripts: Path, *arguments: str, **variables: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [scripts / "parley", *arguments],
        env={"PATH": os.environ["PATH"], "HOME": os.environ["HOME"]} | variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done.returncode, done.stdout, done.stderr


def _pip(*arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
