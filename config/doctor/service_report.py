"""What connects processes, file storage, scanner, identity provider: each is asked something small."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import psycopg
from django.conf import settings
from kombu import Connection
from psycopg import sql
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, NoPermissionError, RedisError
from redis.retry import Retry

from config import database
from config.auth import jwks_cache
from config.coordination.postgres_listener import POOLER
from config.doctor.findings import Finding, Report, without_secrets
from config.errors import ParleyError
from config.process import refused_settings
from conversations.attachments import files, scanning
from conversations.attachments.storage_interface import Storage

_GROUP: Final = "services"
_COORDINATED_BY: Final = ("DATABASE_URL", "REDIS_URL", "COORDINATION")
_WAIT_S: Final = 2.0
_SCAN_S: Final = 10.0
_STORAGE_SETTINGS: Final = (
    "ATTACHMENT_STORAGE",
    "ATTACHMENT_BUCKET",
    "S3_BUCKET",
    "S3_ENDPOINT_URL",
    "S3_ACCESS_KEY_ID",
    "S3_SECRET_ACCESS_KEY",
    "SUPABASE_URL",
)
_PROBE: Final = b"Parley's doctor wrote this to see whether it can.\n"


def report() -> Iterator[Finding]:
    """Report on whatever is configured besides the database."""
    yield from _unless_refused("Redis", ["REDIS_URL"], _redis)
    yield from _unless_refused("notifications", _COORDINATED_BY, _notifications)
    yield from _unless_refused("broker", ["REDIS_URL", "CELERY_BROKER_URL"], _broker)
    yield from _unless_refused("files", _STORAGE_SETTINGS, _files)
    yield _scanner()
    yield from _identity_provider()


def _unless_refused(thing: str, needed: Sequence[str], report: Report) -> Iterator[Finding]:
    """Report, unless a setting that it needs was left out: then another service would be looked at."""
    if refused := [name for name in needed if refused_settings.is_refused(name)]:
        text = f"not looked at: {', '.join(refused)} left out"
        yield Finding(_GROUP, thing, "warning", text, "See settings above.")
    else:
        yield from report()


def _redis() -> Iterator[Finding]:
    if not settings.REDIS_URL:
        yield Finding(_GROUP, "Redis", "ok", "none, and none is needed")
        return
    where = without_secrets(settings.REDIS_URL)
    try:
        facts, took_ms = _ask_redis(settings.REDIS_URL)
    except (RedisError, OSError, ValueError) as error:
        text, fix = _explain_redis(error, "REDIS_URL")
        yield Finding(_GROUP, "Redis", "fault", f"{where}: {text}", fix)
        return
    text = f"{where}, version {facts.get('redis_version', 'unknown')}, answers in {took_ms:.1f} ms"
    yield Finding(_GROUP, "Redis", "ok", text)
    yield from _eviction(facts)


def _ask_redis(url: str) -> tuple[dict[str, Any], float]:
    """Return what Redis says of itself ({} if it may not), and the milliseconds of its answer."""
    waits = {"socket_timeout": _WAIT_S, "socket_connect_timeout": _WAIT_S}
    with closing(Redis.from_url(url, retry=Retry(NoBackoff(), 0), **waits)) as client:
        client.ping()
        since = time.monotonic()
        client.ping()
        took_ms = (time.monotonic() - since) * 1000
        try:
            facts: dict[str, Any] = client.info()
        except NoPermissionError:
            facts = {}
    return facts, took_ms


def _notifications() -> Iterator[Finding]:
    """Say what tells processes of new events and wakes workers; try it if that is PostgreSQL."""
    match settings.COORDINATION:
        case "redis":
            yield Finding(_GROUP, "notifications", "ok", "through Redis")
        case "memory":
            text = "in memory: `up` alone can run, not web, worker and beat"
            yield Finding(_GROUP, "notifications", "ok", text)
        case _:
            yield _heard_by_listening()


def _heard_by_listening() -> Finding:
    """Let one connection hear what another sends: a pooler by transaction keeps them apart."""
    channel, name = f"parley_doctor_{uuid4().hex}", "PostgreSQL (LISTEN and NOTIFY)"
    try:
        with database.connect(direct=True) as hearing, database.connect() as telling:
            hearing.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
            since = time.monotonic()
            telling.execute("SELECT pg_notify(%s, '')", (channel,))
            heard = list(hearing.notifies(timeout=_WAIT_S, stop_after=1))
            took_ms = (time.monotonic() - since) * 1000
    except psycopg.Error as error:
        text = f"{name}: it cannot be tried ({type(error).__name__})."
        return Finding(_GROUP, "notifications", "fault", text, "See database above.")
    if not heard:
        return Finding(_GROUP, "notifications", "fault", f"{name}: nothing arrives.", POOLER)
    return Finding(_GROUP, "notifications", "ok", f"{name}, heard after {took_ms:.1f} ms")


def _eviction(facts: dict[str, Any]) -> Iterator[Finding]:
    policy = facts.get("maxmemory_policy", "noeviction")
    if facts.get("maxmemory") and policy != "noeviction":
        text = f"maxmemory-policy is {policy}: a full Redis forgets wake-ups, and runs start late"
        fix = "Set maxmemory-policy to noeviction, or give Redis more memory."
        yield Finding(_GROUP, "Redis memory", "warning", text, fix)


def _explain_redis(error: Exception, setting: str) -> tuple[str, str]:
    said = str(error)
    if isinstance(error, AuthenticationError):
        return "it refuses the user or the password.", f"Mend them in {setting}."
    if "CERTIFICATE" in said or "SSL" in said:
        fix = f"Mend its certificate, or the scheme in {setting} (rediss:// or redis://)."
        return "it does not agree on TLS.", fix
    if isinstance(error, ValueError):
        return "the address cannot be read.", f"Write {setting} like redis://host:6379/0."
    return "it does not answer.", f"Start Redis, or mend host and port in {setting}."


def _broker() -> Iterator[Finding]:
    url = settings.CELERY_BROKER_URL
    if not url:
        yield Finding(_GROUP, "broker", "ok", "none: notifications wake the workers")
    elif url == settings.REDIS_URL:
        yield Finding(_GROUP, "broker", "ok", "the same Redis")
    else:
        yield _reached_broker(url)


def _reached_broker(url: str) -> Finding:
    where = without_secrets(url)
    try:
        if url.startswith("amqp"):
            _connect_amqp(url)
        else:
            _ask_redis(url)
    except (RedisError, OSError, ValueError) as error:
        text, fix = _explain_redis(error, "CELERY_BROKER_URL")
    except Exception as error:  # kombu's and amqp's have no common class
        text = f"it does not let us in ({type(error).__name__})."
        fix = "Start RabbitMQ, or mend CELERY_BROKER_URL (user, password, host, virtual host)."
    else:
        return Finding(_GROUP, "broker", "ok", f"{where}: connected")
    return Finding(_GROUP, "broker", "fault", f"{where}: {text}", fix)


def _connect_amqp(url: str) -> None:
    with Connection(url, connect_timeout=_WAIT_S) as connection:
        connection.ensure_connection(max_retries=1, timeout=int(_WAIT_S), interval_start=0)


def _files() -> Iterator[Finding]:
    """Write, read and delete a file."""
    where = _storage_name()
    path = f"doctor/{uuid4().hex}.txt"
    try:
        storage = files.get_storage()
        try:
            with _probe_file() as probe:
                storage.save(path, probe, "text/plain")
            is_same = _read(storage, path) == _PROBE
        finally:
            storage.delete([path])
        if not is_same or storage.stat(path) is not None:
            raise OSError
    except (ParleyError, OSError) as error:
        text, fix = _explain_storage(error)
        yield Finding(_GROUP, "files", "fault", f"{where}: {text}", fix)
        return
    yield Finding(_GROUP, "files", "ok", f"{where}: written, read and deleted")


def _read(storage: Storage, path: str) -> bytes:
    reader = storage.open(path, 0)
    if reader is None:
        return b""
    with closing(reader) as opened:
        return opened.read(len(_PROBE))


@contextmanager
def _probe_file() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        probe = Path(folder) / "probe.txt"
        probe.write_bytes(_PROBE)
        yield probe


def _storage_name() -> str:
    options = settings.STORAGES["attachments"]["OPTIONS"]
    if settings.ATTACHMENT_STORAGE == "local":
        return f"folder {options['location']} (for one host)"
    at = without_secrets(options["endpoint_url"]) if options["endpoint_url"] else "AWS"
    return f"{settings.ATTACHMENT_STORAGE} bucket {options['bucket_name']} at {at}"


_DENIED: Final = (
    "it denies access.",
    "Give the key GetObject, PutObject, DeleteObject and ListBucket there.",
)
_S3_CODES: Final = {
    "NoSuchBucket": ("there is no such bucket.", "Make it, or mend S3_BUCKET."),
    "InvalidAccessKeyId": ("it does not know the key.", "Mend S3_ACCESS_KEY_ID."),
    "SignatureDoesNotMatch": ("it refuses the key.", "Mend S3_SECRET_ACCESS_KEY and S3_REGION."),
    "AccessDenied": _DENIED,
    "403": _DENIED,
}


def _explain_storage(error: BaseException) -> tuple[str, str]:
    if settings.ATTACHMENT_STORAGE == "local":
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "it keeps no files"
        return f"{reason}.", "Let Parley's user write below VAR_DIR."
    causes = [*_causes(error)]
    codes = [one.response["Error"]["Code"] for one in causes if hasattr(one, "response")]
    for code in codes:
        if code in _S3_CODES:
            return _S3_CODES[code]
    fix = "Start it, or mend S3_ENDPOINT_URL, S3_REGION and the keys."
    return f"it cannot be used ({codes[0] if codes else type(causes[-1]).__name__}).", fix


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _scanner() -> Finding:
    name = settings.ATTACHMENT_SCANNER
    if not name:
        return Finding(_GROUP, "scanner", "ok", "none: files are not scanned")
    try:
        asyncio.run(_scan_probe())
    except (ParleyError, TimeoutError):
        ours = name == "conversations.attachments.clamav.scan"
        text = f"{name} gives no verdict, so every file is refused."
        at = f"Start clamd at CLAMAV_ADDRESS={settings.CLAMAV_ADDRESS}" if ours else "Look at its log"
        return Finding(_GROUP, "scanner", "fault", text, f"{at}, or unset ATTACHMENT_SCANNER.")
    except ImportError:
        text = f"{name} cannot be imported."
        return Finding(_GROUP, "scanner", "fault", text, "Mend ATTACHMENT_SCANNER, or unset it.")
    return Finding(_GROUP, "scanner", "ok", f"{name} has passed a harmless file")


async def _scan_probe() -> None:
    with _probe_file() as probe:
        async with asyncio.timeout(_SCAN_S):
            await scanning.scan(probe, "text/plain")


def _identity_provider() -> Iterator[Finding]:
    if not settings.JWT_JWKS_URL:
        return
    where = without_secrets(settings.JWT_JWKS_URL)
    try:
        keys = asyncio.run(jwks_cache.fetch_keys(settings.JWT_JWKS_URL)).keys
    except Exception as error:  # whatever it answers, the fix is the same
        text = f"{where}: no keys ({type(error).__name__}): nobody can sign in with its tokens."
        yield Finding(
            _GROUP, "sign-in keys", "fault", text, "Mend JWT_JWKS_URL, or start what it names."
        )
        return
    yield Finding(_GROUP, "sign-in keys", "ok", f"{where}: {len(keys)} keys")
