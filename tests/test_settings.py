"""A wrong setting stops the start with one sentence that names it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from config import env, keys

ROOT = Path(__file__).resolve().parent.parent
WRONG = {
    "PORT": "eighty",
    "PUBLIC_URL": "parley.example.com",
    "DEBUG": "maybe",
    "REDIS_URL": "http://127.0.0.1:6379",
    "CELERY_BROKER_URL": "kafka://127.0.0.1",
    "DATABASE_URL": "mysql://127.0.0.1/parley",
    "DATABASE_POOL_SIZE": "1",
    "WORKER_CAPACITY": "-3",
    "LEASE_S": "soon",
    "DRAIN_S": "nan",
    "LOG_LEVEL": "LOUD",
    "LOG_FORMAT": "xml",
    "SECRET_KEY": "short",
    "JWT_SECRET": "short",
    "SEALING_KEYS": "not-a-fernet-key",
}


def test_every_wrong_value_is_refused_by_name(tmp_path: Path) -> None:
    said = {name: _start(tmp_path, {name: value}) for name, value in WRONG.items()}
    assert {
        name: (code, name in words, "Traceback" in words) for name, (code, words) in said.items()
    } == dict.fromkeys(WRONG, (1, True, False))


def test_an_address_with_a_password_is_not_repeated(tmp_path: Path) -> None:
    code, words = _start(tmp_path, {"REDIS_URL": "mongo://user:hunter2@127.0.0.1"})
    assert (code, "REDIS_URL" in words, "hunter2" in words) == (1, True, False)


def test_good_settings_start(tmp_path: Path) -> None:
    code, words = _start(tmp_path, {"REDIS_URL": "redis://127.0.0.1:1/0", "PORT": "8001"})
    assert (code, words) == (0, "")


@pytest.mark.parametrize("command", ["web", "worker", "beat"])
def test_separate_processes_ask_for_a_broker(tmp_path: Path, command: str) -> None:
    code, words = _start(tmp_path, {}, command)
    assert (code, "REDIS_URL" in words, "Traceback" in words) == (1, True, False)


def test_unset_and_empty_mean_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOME_NUMBER", raising=False)
    assert env.integer("SOME_NUMBER", 7, minimum=1, maximum=9) == 7
    monkeypatch.setenv("SOME_NUMBER", "  ")
    assert env.integer("SOME_NUMBER", 7, minimum=1, maximum=9) == 7
    monkeypatch.setenv("SOME_NUMBER", " 8 ")
    assert env.integer("SOME_NUMBER", 7, minimum=1, maximum=9) == 8


@pytest.mark.parametrize("raw", ["0", "10", "1.5", "²", "--2", "1e3"])
def test_a_number_outside_its_bounds_is_refused(monkeypatch: pytest.MonkeyPatch, raw: str) -> None:
    monkeypatch.setenv("SOME_NUMBER", raw)
    with pytest.raises(ImproperlyConfigured, match="SOME_NUMBER must be a whole number from 1 to 9"):
        env.integer("SOME_NUMBER", 7, minimum=1, maximum=9)


def test_words_are_separated_by_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_WORDS", "a, b,,c ")
    assert env.words("SOME_WORDS") == ["a", "b", "c"]


def test_keys_are_made_once_and_only_their_owner_reads_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SECRET_KEY", raising=False)
    made = keys.secret("SECRET_KEY", tmp_path / "var")
    assert keys.secret("SECRET_KEY", tmp_path / "var") == made
    assert (tmp_path / "var" / "keys.json").stat().st_mode & 0o777 == 0o600


def _start(folder: Path, changes: dict[str, str], command: str = "check") -> tuple[int, str]:
    """Start a process with these variables; its exit code and what it says on stderr."""
    environment = {
        "PATH": os.environ["PATH"],
        "VAR_DIR": str(folder),
        "DATABASE_URL": "postgresql://127.0.0.1:1/nowhere",
    }
    done = subprocess.run(
        [sys.executable, "manage.py", command],
        cwd=ROOT,
        env=environment | changes,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stderr
