"""A wrong setting is refused with one sentence that names it."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

import config
from config import env, keys, telemetry
from tests.support.paths import ROOT

Read = Callable[[dict[str, str]], str]
WRONG = {
    "PORT": "eighty",
    "PUBLIC_URL": "parley.example.com",
    "DEBUG": "maybe",
    "REDIS_URL": "http://127.0.0.1:6379",
    "CELERY_BROKER_URL": "memory://localhost",
    "COORDINATION": "pigeons",
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
    "OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4318",
    "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
    "OTEL_METRIC_EXPORT_INTERVAL": "soon",
    "OTEL_SDK_DISABLED": "perhaps",
    "OTEL_TRACES_EXPORTER": "console",
}


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Read:
    """Read the settings anew with these variables alone: what they refuse, "" if nothing."""

    def refusal(changes: dict[str, str]) -> str:
        given = {"VAR_DIR": str(tmp_path), "DATABASE_URL": "postgresql://127.0.0.1:1/nowhere"}
        with monkeypatch.context() as patch:
            patch.setattr(os, "environ", given | changes)
            for package, name in ((config, "storage_settings"), (telemetry, "otel_settings")):
                patch.delitem(sys.modules, f"{package.__name__}.{name}")  # reads some when imported
                patch.delattr(package, name)
            try:
                runpy.run_path(str(ROOT / "config" / "settings.py"))
            except ImproperlyConfigured as refused:
                return str(refused)
            return ""

    return refusal


@pytest.mark.parametrize(("name", "value"), WRONG.items())
def test_every_wrong_value_is_refused_by_name(read: Read, name: str, value: str) -> None:
    assert name in read({name: value})


def test_an_address_with_a_password_is_not_repeated(read: Read) -> None:
    words = read({"REDIS_URL": "mongo://user:hunter2@127.0.0.1"})
    assert ("REDIS_URL" in words, "hunter2" in words) == (True, False)


def test_redis_coordinates_only_where_there_is_one(read: Read) -> None:
    assert "REDIS_URL" in read({"COORDINATION": "redis"})
    assert read({"COORDINATION": "redis", "REDIS_URL": "redis://127.0.0.1"}) == ""
    assert read({"COORDINATION": "postgresql", "REDIS_URL": "redis://127.0.0.1"}) == ""


def test_public_keys_need_their_issuer_named_and_are_not_repeated(read: Read) -> None:
    assert "JWT_ISSUERS" in read({"JWT_JWKS_URL": "https://issuer.example/jwks.json"})
    private = '{"kty": "EC", "crv": "P-256", "d": "hunter2"}'
    words = read({"JWT_JWK": private, "JWT_ISSUERS": "https://issuer.example"})
    assert ("JWT_JWK" in words, "hunter2" in words) == (True, False)


@pytest.mark.parametrize(
    "url",
    ["https://issuer.example/jwks", "http://127.0.0.1:8080/jwks", "http://keycloak:8080/jwks"],
)
def test_public_keys_of_an_issuer_are_taken_from_there(read: Read, url: str) -> None:
    assert read({"JWT_JWKS_URL": url, "JWT_ISSUERS": "https://issuer.example"}) == ""


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
    read: Read, changes: dict[str, str], named: str
) -> None:
    words = read(changes)
    assert (named in words, "hunter2" in words) == (True, False)


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
    made = keys.read_secret("SECRET_KEY", tmp_path / "var")
    assert keys.read_secret("SECRET_KEY", tmp_path / "var") == made
    assert (tmp_path / "var" / "keys.json").stat().st_mode & 0o777 == 0o600
