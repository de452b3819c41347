"""A process with a wrong setting ends at once with one sentence; with good ones it starts."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.middleware.security import SecurityMiddleware
from django.utils.module_loading import import_string

from tests.support.paths import ROOT


def test_a_wrong_value_ends_the_start_in_one_line(tmp_path: Path) -> None:
    code, words = _start(tmp_path, {"ATTACHMENT_STORAGE": "floppy"})
    assert (code, words.count("\n")) == (1, 1)
    assert words.startswith("ATTACHMENT_STORAGE must be one of")


def test_good_settings_start_and_the_check_for_deployment_warns_of_nothing_that_is_there(
    tmp_path: Path,
) -> None:
    good = {
        "PUBLIC_URL": "https://parley.example",
        "REDIS_URL": "redis://127.0.0.1:1/0",
        "PORT": "8001",
        "ATTACHMENT_STORAGE": "supabase",
        "ATTACHMENT_SCANNER": "conversations.attachments.clamav.scan",
        "SUPABASE_URL": "https://project.supabase.co",
        "SUPABASE_JWT_SECRET": "x" * 40,
        "S3_ACCESS_KEY_ID": "key",
        "S3_SECRET_ACCESS_KEY": "secret",
    }
    assert _start(tmp_path, good, "check --deploy --fail-level WARNING") == (0, "")


def test_the_check_for_deployment_warns_of_plain_http(tmp_path: Path) -> None:
    code, words = _start(tmp_path, {}, "check --deploy --fail-level WARNING")
    assert (code, re.findall(r"W\d+", words)) == (1, ["W012", "W016"])


def test_the_check_that_is_silenced_looks_for_the_class_of_which_ours_is_made() -> None:
    classes = [import_string(name) for name in settings.MIDDLEWARE]
    assert any(issubclass(one, SecurityMiddleware) for one in classes)


@pytest.mark.parametrize("command", ["web", "worker", "beat"])
def test_separate_processes_that_nothing_connects_do_not_start(tmp_path: Path, command: str) -> None:
    code, words = _start(tmp_path, {"COORDINATION": "memory"}, command)
    assert (code, "COORDINATION" in words, "Traceback" in words) == (1, True, False)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({}, "CELERY_BROKER_URL"),
        ({"REDIS_URL": "redis://127.0.0.1:1/0", "COORDINATION": "memory"}, "COORDINATION"),
    ],
)
def test_a_bare_celery_worker_that_nothing_reaches_does_not_start(
    tmp_path: Path, changes: dict[str, str], named: str
) -> None:
    command = [sys.executable, "-m", "celery", "-A", "config.celery", "worker"]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=_environment(tmp_path) | changes,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, named in done.stderr, "Traceback" in done.stderr) == (1, True, False)


def test_without_a_broker_nothing_imports_celery_and_nobody_the_openapi_document(tmp_path: Path) -> None:
    script = (
        "import sys, django; django.setup()\n"
        "import agents.worker.loop, config.asgi\n"
        "from config.management.commands import serve, up, web, worker\n"
        "unused = {'celery', 'kombu', 'config.celery', 'config.openapi.document'}\n"
        "print(sorted(unused & sys.modules.keys()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env=_environment(tmp_path) | {"DJANGO_SETTINGS_MODULE": "config.settings"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == "[]\n", done.stdout + done.stderr


def _start(folder: Path, changes: dict[str, str], command: str = "check") -> tuple[int, str]:
    """Start a process with these variables; its exit code and what it says on stderr."""
    done = subprocess.run(
        [sys.executable, "manage.py", *command.split()],
        cwd=ROOT,
        env=_environment(folder) | changes,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stderr


def _environment(folder: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "VAR_DIR": str(folder),
        "DATABASE_URL": "postgresql://127.0.0.1:1/nowhere",
    }
