"""`manage.py doctor`: what it says of things that work, and of each that does not."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
import pytest
import redis
from cryptography.fernet import Fernet
from django.core.management import call_command
from moto.server import ThreadedMotoServer
from psycopg import Connection
from pytest_django import Settings

from agents.admin import endpoint_check
from benchmarks.ports import free_port
from config import database, storage_settings
from config.audit.models import AuditEntry
from config.database import new_connections
from config.doctor import (
    database_report,
    provider_report,
    safety_report,
    service_report,
    settings_report,
)
from config.doctor.findings import Finding, Report
from config.process import refused_settings
from config.process.refused_settings import Refusal
from prompts.endpoints import secrets
from prompts.models import Endpoint
from prompts.wordings import staff_actions
from tests.support import pooler
from tests.support.fakes.redis_server import redis_url as redis_url

pytestmark = [pytest.mark.once, pytest.mark.django_db]

KEY = "sk-doctor-abcdefghijkl-0123"
HUSH = "hush-hush-1234"


class Provider(BaseHTTPRequestHandler):
    """Lists models to whoever has the key; has no list below /bare."""

    def do_GET(self) -> None:
        is_known = self.headers.get("Authorization") == f"Bearer {KEY}"
        status = 404 if self.path.startswith("/bare") else 200 if is_known else 401
        body = json.dumps({"data": [{"id": "gpt-a"}]} if status == 200 else {"error": KEY}).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def provider() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Provider) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def doctor(*arguments: str) -> tuple[int, str]:
    """The exit status and the screen."""
    out = StringIO()
    try:
        call_command("doctor", *arguments, stdout=out)
    except SystemExit as ended:
        return int(ended.code or 0), out.getvalue()
    return 0, out.getvalue()


def found(report: Report, thing: str) -> Finding:
    (one,) = [one for one in report() if one.thing == thing]
    return one


# --- the screen ---------------------------------------------------------------------------------


def test_what_works_is_said_on_one_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(  # other tests have entered some that answer nobody
        endpoint_check, "check_lists", lambda asked: [(True, "it answers") for _ in asked]
    )
    code, screen = doctor()
    lines = screen.splitlines()
    assert [line for line in lines if not line.startswith(" ")][1:-1] == [
        "settings",
        "database",
        "services",
        "providers",
        "safety",
    ]
    assert len(lines) < 50
    faults = [line for line in lines if line.startswith("  fault")]
    assert code == bool(faults)
    assert all("durability" in line for line in faults), faults  # the tests' own server has no fsync
    assert "all" in screen
    assert "written, read and deleted" in screen


def test_machines_read_the_same(settings: Settings) -> None:
    settings.DEBUG = True
    code, said = doctor("--json")
    told = json.loads(said)
    assert (code, told["ok"], told["faults"] > 0) == (1, False, True)
    debug = {
        "group": "safety",
        "thing": "DEBUG",
        "state": "fault",
        "text": "DEBUG is on: whoever meets an error reads code and settings.",
        "fix": "Unset DEBUG.",
    }
    assert debug in told["findings"]


def test_no_secret_stands_on_the_screen(settings: Settings, provider: str) -> None:
    settings.REDIS_URL = f"redis://me:{HUSH}@127.0.0.1:{free_port()}/0"
    settings.CELERY_BROKER_URL = f"amqp://me:{HUSH}@127.0.0.1:{free_port()}//"
    settings.JWT_JWKS_URL = f"http://me:{HUSH}@127.0.0.1:{free_port()}/keys?token={HUSH}"
    endpoint(provider, KEY)
    endpoint(f"{provider}/x", f"{HUSH}-of-another")
    _, screen = doctor()
    assert "does not answer" in screen
    assert not [
        word for word in (HUSH, KEY, *settings.SEALING_KEYS, settings.SECRET_KEY) if word in screen
    ]


def test_a_look_that_breaks_is_a_fault_and_the_others_are_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(database_report, "_FACTS", "SELECT 1")
    code, screen = doctor()
    assert code == 1
    assert "this look itself broke (TypeError)" in screen
    assert "written, read and deleted" in screen


# --- settings -----------------------------------------------------------------------------------


def test_a_refused_setting_and_one_that_is_misspelt_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = Refusal("PORT", "PORT must be a whole number, not 'x'. Set it like PORT=8000.")
    monkeypatch.setattr(refused_settings, "found", [refusal])
    monkeypatch.setenv("DATABASE_POOL_SIZES", "9")
    monkeypatch.setenv("ASGI_SERVER", "gunicorn")
    assert found(settings_report.report, "PORT") == Finding(
        "settings",
        "PORT",
        "fault",
        "PORT must be a whole number, not 'x'.",
        "Set it like PORT=8000.",
    )
    assert found(settings_report.report, "DATABASE_POOL_SIZES").fix == "Set DATABASE_POOL_SIZE."
    assert found(settings_report.report, "ASGI_SERVER").state == "fault"


def test_keys_that_others_may_read_are_a_fault(settings: Settings, tmp_path: Path) -> None:
    settings.VAR_DIR = tmp_path
    path = tmp_path / "keys.json"
    path.write_text("{}")
    for mode, state in ((0o600, "ok"), (0o640, "fault"), (0o604, "fault")):
        path.chmod(mode)
        assert found(settings_report.report, "keys").state == state
    settings.VAR_DIR = tmp_path / "missing"
    assert next(iter(settings_report._folder())).state == "fault"


# --- database -----------------------------------------------------------------------------------


def test_missing_migrations_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(database_report.report, "migrations").state == "ok"
    monkeypatch.setattr(
        database_report,
        "_APPLIED",
        f"{database_report._APPLIED} WHERE (app, name) <> ('prompts', '0001_initial')",
    )
    missing = found(database_report.report, "migrations")
    assert (missing.state, missing.text) == ("fault", "1 missing: prompts.0001_initial")
    monkeypatch.setattr(database_report, "_APPLIED", "SELECT app, name FROM no_such_table")
    assert found(database_report.report, "migrations").text == "the database is empty"


@pytest.mark.parametrize(
    ("change", "meaning"),
    [
        ({"port": "1"}, "Nothing listens there."),
        ({"host": "/nowhere"}, "Nothing listens there."),
        pytest.param(
            {"dbname": "no_such_database"},
            "It has no such database or user.",
            marks=pooler.needs_session,
        ),
        ({"user": "no_such_user"}, ""),
        ({"host": "no-such-host.invalid"}, "The host's name is not known."),
    ],
)
def test_a_database_that_is_not_reached_is_explained(
    monkeypatch: pytest.MonkeyPatch, change: dict[str, str], meaning: str
) -> None:
    changed = new_connections.connection_arguments() | {"password": HUSH, **change}
    monkeypatch.setattr(new_connections, "connection_arguments", lambda: changed)
    (fault,) = database_report.report()
    assert (fault.thing, fault.state) == ("server", "fault")
    assert meaning in fault.text
    assert "DATABASE_URL" in fault.fix
    assert HUSH not in str(fault)


# --- services -----------------------------------------------------------------------------------


def test_redis_is_asked_for_its_version_and_its_memory(settings: Settings, redis_url: str) -> None:
    settings.REDIS_URL = settings.CELERY_BROKER_URL = redis_url
    assert "version" in found(service_report.report, "Redis").text
    assert found(service_report.report, "broker").text == "the same Redis"
    with redis.Redis.from_url(redis_url) as direct:
        direct.config_set("maxmemory", "200mb")
        direct.config_set("maxmemory-policy", "allkeys-lru")
        try:
            warned = found(service_report.report, "Redis memory")
        finally:
            direct.config_set("maxmemory-policy", "noeviction")
            direct.config_set("maxmemory", "0")
    assert warned.state == "warning"
    assert "noeviction" in warned.fix
    settings.CELERY_BROKER_URL = f"{redis_url.removesuffix('/0')}/1"
    assert found(service_report.report, "broker").text.endswith("connected")


def test_redis_that_refuses_and_one_that_is_away_are_told_apart(
    settings: Settings, redis_url: str
) -> None:
    settings.CELERY_BROKER_URL = redis_url
    settings.REDIS_URL = redis_url.replace("//", f"//nobody:{HUSH}@")
    assert "refuses the user" in found(service_report.report, "Redis").text
    settings.REDIS_URL = f"redis://127.0.0.1:{free_port()}/0"
    assert "does not answer" in found(service_report.report, "Redis").text
    settings.REDIS_URL = redis_url.replace("redis:", "rediss:")
    assert found(service_report.report, "Redis").state == "fault"
    settings.REDIS_URL = "redis://127.0.0.1:port/0"
    assert "REDIS_URL" in found(service_report.report, "Redis").fix


def test_a_broker_that_is_away_is_a_fault(settings: Settings) -> None:
    for scheme in ("amqp", "redis"):
        settings.CELERY_BROKER_URL = f"{scheme}://127.0.0.1:{free_port()}/"
        fault = found(service_report.report, "broker")
        assert (fault.state, "CELERY_BROKER_URL" in fault.fix) == ("fault", True)


def test_what_connects_the_processes_is_named_and_tried(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.REDIS_URL = settings.CELERY_BROKER_URL = ""
    settings.COORDINATION = "memory"
    assert "`up` alone" in found(service_report.report, "notifications").text
    settings.COORDINATION = "redis"
    assert found(service_report.report, "notifications").text == "through Redis"
    settings.COORDINATION = "postgresql"
    assert "heard after" in found(service_report.report, "notifications").text
    assert found(service_report.report, "Redis").state == "ok"
    assert "none" in found(service_report.report, "broker").text
    monkeypatch.setattr(service_report, "_WAIT_S", 0.1)
    monkeypatch.setattr(database, "connect", _deaf(database.connect))
    fault = found(service_report.report, "notifications")
    assert (fault.state, "pooler" in fault.fix) == ("fault", True)


def _deaf(connect: Callable[..., Connection[Any]]) -> Callable[..., Connection[Any]]:
    """A pooler by transaction, which gives LISTEN to a connection that then serves others."""

    def connect_deaf(**options: bool) -> Connection[Any]:
        made = connect(**options)
        execute = made.execute
        made.execute = lambda query, *rest: execute(  # type: ignore[method-assign, assignment]
            "SELECT" if "LISTEN" in str(query) else query, *rest
        )
        return made

    return connect_deaf


def test_a_folder_that_takes_no_files_is_a_fault(settings: Settings, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    options = storage_settings.local_options(blocked / "below")
    settings.STORAGES = settings.STORAGES | {storage_settings.ALIAS: options}
    fault = found(service_report.report, "files")
    assert (fault.state, "VAR_DIR" in fault.fix) == ("fault", True)


def test_a_bucket_is_written_and_nothing_is_left_in_it(settings: Settings) -> None:
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        address, keys = f"http://{host}:{port}", {"access_key": "k", "secret_key": HUSH}
        settings.ATTACHMENT_STORAGE = "s3"

        def use(bucket: str, address: str) -> Finding:
            options = storage_settings.s3_options(
                bucket=bucket, endpoint_url=address, region="us-east-1", **keys
            )
            options["OPTIONS"]["client_config"].retries = {"max_attempts": 0}
            settings.STORAGES = settings.STORAGES | {storage_settings.ALIAS: options}
            return found(service_report.report, "files")

        client = boto3.client(
            "s3",
            endpoint_url=address,
            aws_access_key_id="k",
            aws_secret_access_key="s",
            region_name="us-east-1",
        )
        with closing(client):
            client.create_bucket(Bucket="files")
            fine = use("files", address)
            assert (fine.state, fine.text) == (
                "ok",
                f"s3 bucket files at {address}: written, read and deleted",
            )
            assert "Contents" not in client.list_objects_v2(Bucket="files")
        assert "no such bucket" in use("other", address).text
    finally:
        server.stop()
    gone = use("files", f"http://127.0.0.1:{free_port()}")
    assert (gone.state, "S3_ENDPOINT_URL" in gone.fix, HUSH in str(gone)) == ("fault", True, False)


async def passes(path: Path, mime_type: str) -> None:
    """A scanner that finds nothing."""


def test_a_scanner_that_gives_no_verdict_is_a_fault(settings: Settings) -> None:
    assert found(service_report.report, "scanner").state == "ok"
    settings.ATTACHMENT_SCANNER = "conversations.attachments.clamav.scan"
    settings.CLAMAV_ADDRESS = f"127.0.0.1:{free_port()}"
    away = found(service_report.report, "scanner")
    assert (away.state, settings.CLAMAV_ADDRESS in away.fix) == ("fault", True)
    settings.ATTACHMENT_SCANNER = "conversations.attachments.clamav.no_such_function"
    assert "cannot be imported" in found(service_report.report, "scanner").text


def test_the_keys_of_an_identity_provider_are_fetched(issuer: Any, settings: Settings) -> None:
    assert found(service_report.report, "sign-in keys").text.endswith("2 keys")
    settings.JWT_JWKS_URL = f"http://127.0.0.1:{free_port()}/keys"
    assert found(service_report.report, "sign-in keys").state == "fault"


# --- providers ----------------------------------------------------------------------------------


def test_keys_that_the_sealing_keys_do_not_open_are_named(settings: Settings) -> None:
    """As after a restore without the keys file: Parley has made a new one."""
    secrets.store(secrets.Purpose.MODEL_ENDPOINT.of(987_654), KEY)
    assert found(provider_report.report, "stored keys").state == "ok"
    settings.SEALING_KEYS = [Fernet.generate_key().decode()]
    lost = found(provider_report.report, "stored keys")
    assert lost.state == "fault"
    assert "are opened by none of SEALING_KEYS" in lost.text
    assert "keys.json" in lost.fix
    number, unreadable = secrets.list_unreadable()
    assert "endpoint:987654" in unreadable
    assert len(unreadable) == number


def endpoint(base_url: str, key: str = KEY, **fields: Any) -> Endpoint:
    made = Endpoint.objects.create(name=uuid4().hex, provider="acme", base_url=base_url, **fields)
    if key:
        staff_actions.rotate_secret(made, key)
    return made


def of(made: Endpoint) -> Finding:
    (one,) = [one for one in provider_report.report() if made.name in one.text]
    return one


def test_each_endpoint_is_asked_for_its_list_and_the_opening_of_its_key_is_recorded(
    provider: str,
) -> None:
    Endpoint.objects.all().update(is_active=False)
    fine, foreign, bare = (
        endpoint(provider),
        endpoint(provider, "sk-wrong"),
        endpoint(f"{provider}/bare"),
    )
    keyless, off = endpoint(provider, ""), endpoint(provider, is_active=False)
    away = endpoint(f"http://127.0.0.1:{free_port()}")
    assert of(fine).text.endswith("Connected: 1 model.")
    assert (of(foreign).state, of(bare).state, of(keyless).state, of(away).state) == (
        "fault",
        "ok",
        "fault",
        "fault",
    )
    assert "refuses the key" in of(foreign).text
    assert "the key was not tried" in of(bare).text
    assert not any(off.name in one.text for one in provider_report.report())
    assert AuditEntry.objects.filter(action="key opened", object_id=str(fine.pk)).exists()


def test_without_a_provider_only_the_demo_answers() -> None:
    Endpoint.objects.exclude(dialect="demo").update(is_active=False)
    assert found(provider_report.report, "endpoints").state == "warning"


# --- safety -------------------------------------------------------------------------------------


def _set(**changes: Any) -> Callable[[Settings], None]:
    def change(settings: Settings) -> None:
        for name, value in changes.items():
            setattr(settings, name, value)

    return change


@pytest.mark.parametrize(
    ("change", "thing", "state"),
    [
        (_set(DEBUG=True), "DEBUG", "fault"),
        (_set(ALLOWED_HOSTS=["*"]), "ALLOWED_HOSTS", "warning"),
        (_set(PUBLIC_URL="https://a.example", BEHIND_TLS=True), "ALLOWED_HOSTS", "fault"),
        (_set(PUBLIC_URL="http://a.example", ALLOWED_HOSTS=["a.example"]), "PUBLIC_URL", "warning"),
        (
            _set(PUBLIC_URL="https://a.example", BEHIND_TLS=False, ALLOWED_HOSTS=["a.example"]),
            "BEHIND_TLS",
            "warning",
        ),
        (_set(JWT_JWK="{}"), "JWT_AUDIENCES", "warning"),
        (_set(SECRET_KEY="x" * 40), "SECRET_KEY", "warning"),
    ],
)
def test_what_is_unsafe_is_named_with_its_fix(
    settings: Settings, change: Callable[[Settings], None], thing: str, state: str
) -> None:
    settings.DEBUG = False
    assert found(safety_report.report, "check --deploy").state == "ok"
    change(settings)
    (one,) = safety_report.report()
    assert (one.thing, one.state, bool(one.fix)) == (thing, state, True)


@pytest.mark.parametrize("setting", ["TRUSTED_PROXIES", "METRICS_NETWORKS", "FETCH_NETWORKS"])
def test_a_network_of_every_address_is_unsafe(settings: Settings, setting: str) -> None:
    from ipaddress import ip_network

    setattr(settings, setting, [ip_network("0.0.0.0/0")])
    assert found(safety_report.report, setting).state == "warning"
