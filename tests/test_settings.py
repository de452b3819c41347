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
    "ATTACHMENT_STORAGE": "floppy",
    "ATTACHMENT_BUCKET": "../files",
    "ATTACHMENT_SERVE": "both",
    "ATTACHMENT_SCANNER": "no.such.module.scan",
    "ATTACHMENT_MAX_MEGAPIXELS": "0",
    "ATTACHMENT_ORPHAN_DAYS": "1",
    "CLAMAV_ADDRESS": "somewhere",
    "SIGNED_URL_TTL_S": "1000000",
    "SUPABASE_URL": "project.supabase.co",
    "TIME_ZONE": "Mars/Olympus",
    "LOG_LEVEL": "LOUD",
    "LOG_FORMAT": "xml",
    "SECRET_KEY": "short",
    "JWT_SECRET": "short",
    "SEALING_KEYS": "not-a-fernet-key",
    "JWT_JWKS_URL": "http://issuer.example/jwks.json",
    "JWT_JWK": '{"kty": "oct", "k": "c2VjcmV0"}',
    "GUESTS_ALLOWED": "perhaps",
    "TRUSTED_PROXIES": "10.0.0.0/99",
    "RATE_USER_PER_MINUTE": "-1",
    "STREAMS_PER_USER": "many",
}


def test_every_wrong_value_is_refused_by_name(tmp_path: Path) -> None:
    said = {name: _start(tmp_path, {name: value}) for name, value in WRONG.items()}
    assert {
        name: (code, name in words, "Traceback" in words) for name, (code, words) in said.items()
    } == dict.fromkeys(WRONG, (1, True, False))


def test_an_address_with_a_password_is_not_repeated(tmp_path: Path) -> None:
    code, words = _start(tmp_path, {"REDIS_URL": "mongo://user:hunter2@127.0.0.1"})
    assert (code, "REDIS_URL" in words, "hunter2" in words) == (1, True, False)


def test_public_keys_need_their_issuer_named_and_are_not_repeated(tmp_path: Path) -> None:
    code, words = _start(tmp_path, {"JWT_JWKS_URL": "https://issuer.example/jwks.json"})
    assert (code, "JWT_ISSUERS" in words, "Traceback" in words) == (1, True, False)
    private = '{"kty": "EC", "crv": "P-256", "d": "hunter2"}'
    code, words = _start(tmp_path, {"JWT_JWK": private, "JWT_ISSUERS": "https://issuer.example"})
    assert (code, "JWT_JWK" in words, "hunter2" in words) == (1, True, False)
    for url in (
        "https://issuer.example/jwks",
        "http://127.0.0.1:8080/jwks",
        "http://keycloak:8080/jwks",
    ):
        given = {"JWT_JWKS_URL": url, "JWT_ISSUERS": "https://issuer.example"}
        assert _start(tmp_path, given) == (0, "")


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"ATTACHMENT_STORAGE": "s3", "S3_ACCESS_KEY_ID": "hunter2"}, "S3_SECRET_ACCESS_KEY"),
        ({"ATTACHMENT_STORAGE": "s3", "S3_ENDPOINT_URL": "ftp://hunter2"}, "S3_ENDPOINT_URL"),
        ({"ATTACHMENT_STORAGE": "supabase"}, "SUPABASE_JWT_SECRET"),
        ({"ATTACHMENT_STORAGE": "supabase", "SUPABASE_JWT_SECRET": "hunter2" * 9}, "SUPABASE_URL"),
    ],
)
def test_settings_that_belong_together_are_asked_for(
    tmp_path: Path, changes: dict[str, str], named: str
) -> None:
    code, words = _start(tmp_path, changes)
    assert (code, named in words, "hunter2" in words, "Traceback" in words) == (1, True, False, False)


def test_remote_storage_and_a_scanner_start(tmp_path: Path) -> None:
    remote = {
        "ATTACHMENT_STORAGE": "supabase",
        "ATTACHMENT_SCANNER": "conversations.attachments.clamav.scan",
        "SUPABASE_URL": "https://project.supabase.co",
        "SUPABASE_JWT_SECRET": "x" * 40,
        "S3_ACCESS_KEY_ID": "key",
        "S3_SECRET_ACCESS_KEY": "secret",
    }
    assert _start(tmp_path, remote) == (0, "")


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
