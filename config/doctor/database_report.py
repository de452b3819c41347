"""PostgreSQL: what answers, whether an accepted run is durable there, connections and migrations."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address
from typing import Any, Final, NamedTuple

import psycopg
from django.conf import settings
from django.db.migrations.loader import MigrationLoader

from config import database
from config.database.pooler import Pooling
from config.doctor.findings import Finding
from config.process import refused_settings
from config.process.installation import MANAGE

_GROUP: Final = "database"
_OLDEST: Final = 140_000
_ALONE: Final = 2  # the connections that renew a worker's leases and listen to notifications
_FACTS: Final = """
SELECT current_setting('server_version'), current_setting('server_version_num')::int,
    current_setting('server_encoding'), current_setting('fsync'),
    current_setting('full_page_writes'), current_setting('synchronous_commit'),
    current_setting('max_connections')::int, current_setting('superuser_reserved_connections')::int
        + coalesce(current_setting('reserved_connections', true), '0')::int,
    pg_is_in_recovery() OR current_setting('default_transaction_read_only') = 'on',
    pg_size_pretty(pg_database_size(current_database()))
"""
_DIRECT: Final = "DIRECT_DATABASE_URL"
_WHICH: Final = """
SELECT oid, pg_postmaster_start_time() FROM pg_database WHERE datname = current_database()
"""
_APPLIED: Final = "SELECT app, name FROM django_migrations"
_REASONS: Final = (  # what libpq says, and what it means to the reader
    ("password authentication failed", "It refuses the user or the password.", "Mend them in {}."),
    ("no password supplied", "It asks for a password.", "Add it to {}: user:password@host."),
    ("does not exist", "It has no such database or user.", "Make it (createdb), or mend {}."),
    ("SASL authentication failed", "It refuses the user or the password.", "Mend them in {}."),
    ("no such database", "It has no such database or user.", "Make it (createdb), or mend {}."),
    ("no more connections", "All its connections are taken.", "Raise max_client_conn there."),
    ("connect to server", "The pooler there does not reach PostgreSQL.", "Mend its file."),
    ("server login", "The pooler there does not reach PostgreSQL.", "Mend its file."),
    ("too many clients", "All its connections are taken.", "Raise max_connections."),
    ("remaining connection slots", "All its connections are taken.", "Raise max_connections."),
    ("starting up", "It is starting.", "Wait, and ask again."),
    ("translate host name", "The host's name is not known.", "Mend the host in {}, or the DNS."),
    ("resolve host", "The host's name is not known.", "Mend the host in {}, or the DNS."),
    ("SSL", "It does not agree on TLS.", "Mend sslmode in {}."),
    ("imeout", "It does not answer in time.", "Look for a firewall, or mend the host in {}."),
    ("refused", "Nothing listens there.", "Start PostgreSQL, or mend host and port in {}."),
    ("No such file", "Nothing listens there.", "Start PostgreSQL, or mend host and port in {}."),
)


class Facts(NamedTuple):
    """What a server says of itself."""

    version: str
    version_number: int
    encoding: str
    fsync: str
    full_page_writes: str
    synchronous_commit: str
    max_connections: int
    reserved: int
    is_read_only: bool
    size: str


def report() -> Iterator[Finding]:
    """Report on the database of DATABASE_URL."""
    if refused_settings.is_refused("DATABASE_URL"):
        yield Finding(
            _GROUP, "server", "fault", "not looked at: DATABASE_URL is refused", "See settings above."
        )
        return
    try:
        with database.connect() as connection:
            row = connection.execute(_FACTS).fetchone()
            facts = Facts(*row) if row else None
            assert facts is not None
            pooling = database.find_pooling()
            yield from judge(facts, _address(connection), is_pooled=pooling.mode != "none")
            yield from _direct(connection)
            yield from judge_pooling(pooling)
            yield from judge_encryption(connection)
            yield from _migrations(connection)
    except database.UnusablePooler as refusal:
        yield Finding(_GROUP, "pooler", "fault", refusal.text, refusal.fix)
    except psycopg.Error as error:
        text, fix = explain(error)
        yield Finding(_GROUP, "server", "fault", text, fix)


def judge(facts: Facts, address: str, *, is_pooled: bool = False) -> Iterator[Finding]:
    """Report what a server's own words mean for Parley."""
    name = f"PostgreSQL {facts.version.split()[0]} at {address}, {facts.size}"
    if facts.version_number < _OLDEST:
        yield Finding(_GROUP, "server", "fault", f"{name}: too old.", "Take PostgreSQL 14 or newer.")
    elif facts.is_read_only:
        fix = "Name the primary in DATABASE_URL."
        yield Finding(_GROUP, "server", "fault", f"{name}: it takes no writes.", fix)
    elif facts.encoding != "UTF8":
        fix = "Make the database anew: createdb --encoding=UTF8 --template=template0."
        yield Finding(_GROUP, "server", "fault", f"{name}: its encoding is {facts.encoding}.", fix)
    else:
        yield Finding(_GROUP, "server", "ok", name)
    yield _durability(facts)
    yield _connections(facts, is_pooled=is_pooled)


def _durability(facts: Facts) -> Finding:
    values = {name: getattr(facts, name) for name in ("fsync", "full_page_writes", "synchronous_commit")}
    off = [name for name, value in values.items() if value == "off"]
    if not off:
        return Finding(_GROUP, "durability", "ok", "fsync on: what is accepted survives a power cut")
    state: Any = "warning" if off == ["synchronous_commit"] else "fault"
    text = f"{', '.join(off)} off: a power cut can lose accepted runs"
    text += "." if state == "warning" else ", and the database."
    return Finding(_GROUP, "durability", state, text, f"Set {', '.join(off)} to on in PostgreSQL.")


def _connections(facts: Facts, *, is_pooled: bool) -> Finding:
    if is_pooled:
        text = f"max_connections {facts.max_connections}, which the pooler shares out"
        return Finding(_GROUP, "connections", "ok", text)
    each = 2 * settings.DATABASE_POOL_SIZE + database.ANALYTICS_POOL_SIZE + _ALONE
    room = (facts.max_connections - facts.reserved) // each
    needed = 1 if settings.COORDINATION == "memory" else 2
    text = (
        f"max_connections {facts.max_connections}: room for {room} web and worker processes of at most "
        f"{each} connections"
    )
    if room >= needed:
        return Finding(_GROUP, "connections", "ok", text)
    fix = (
        f"Set max_connections to {needed * each + facts.reserved} or more, or lower DATABASE_POOL_SIZE."
    )
    return Finding(_GROUP, "connections", "warning", text, fix)


def judge_pooling(pooling: Pooling) -> Iterator[Finding]:
    """Report how a pooler pools, and what is missing for it; nothing where there is none."""
    if pooling.mode == "none":
        return
    text = f"one in {pooling.mode} mode is between Parley and PostgreSQL"
    if pooling.keeps_statements:
        yield Finding(_GROUP, "pooler", "ok", f"{text}; prepared statements are kept")
    else:
        text += ", without prepared statements: PostgreSQL plans each statement anew."
        fix = "Take PgBouncer 1.22 or newer, and set max_prepared_statements = 200 there."
        yield Finding(_GROUP, "pooler", "warning", text, fix)
    if pooling.mode == "transaction" and not settings.DIRECT_DATABASE_URL:
        text = "unset: migrate is refused, and large indexes of the log are not rebuilt."
        fix = "Set DIRECT_DATABASE_URL to the address of PostgreSQL itself."
        yield Finding(_GROUP, _DIRECT, "warning", text, fix)


def _direct(pooled: psycopg.Connection[Any]) -> Iterator[Finding]:
    if not settings.DIRECT_DATABASE_URL:
        return
    try:
        mode = database.find_pooling(direct=True).mode
        with database.connect(direct=True) as direct:
            is_same = direct.execute(_WHICH).fetchone() == pooled.execute(_WHICH).fetchone()
    except psycopg.Error as error:
        text, fix = explain(error, setting=_DIRECT)
        yield Finding(_GROUP, _DIRECT, "fault", text, fix)
        return
    if not is_same:
        fix = "Let both addresses name one database."
        yield Finding(_GROUP, _DIRECT, "fault", "it is another database than DATABASE_URL's.", fix)
    elif mode == "transaction":
        fix = "Set DIRECT_DATABASE_URL to the address of PostgreSQL itself."
        yield Finding(_GROUP, _DIRECT, "fault", "a pooler in transaction mode is there too.", fix)
    else:
        yield Finding(_GROUP, _DIRECT, "ok", _where(_DIRECT))


def judge_encryption(connection: psycopg.Connection[Any]) -> Iterator[Finding]:
    """Warn of a connection without TLS over the open network."""
    if connection.pgconn.ssl_in_use or not _is_far(connection.info.hostaddr):
        return
    text = "passwords and conversations pass the open network in the clear"
    yield Finding(_GROUP, "encryption", "warning", text, "Add ?sslmode=verify-full to DATABASE_URL.")


def _is_far(address: str) -> bool:
    try:
        return ip_address(address).is_global
    except ValueError:  # a socket of this machine
        return False


def _migrations(connection: psycopg.Connection[Any]) -> Iterator[Finding]:
    fix = f"{MANAGE} migrate"
    try:
        applied = {(app, name) for app, name in connection.execute(_APPLIED).fetchall()}
    except psycopg.errors.UndefinedTable:
        yield Finding(_GROUP, "migrations", "fault", "the database is empty", fix)
        return
    ours = set(MigrationLoader(None).disk_migrations or ())
    if missing := sorted(".".join(one) for one in ours - applied):
        text = f"{len(missing)} missing: {', '.join(missing[:3])}{', …' if missing[3:] else ''}"
        yield Finding(_GROUP, "migrations", "fault", text, fix)
    else:
        yield Finding(_GROUP, "migrations", "ok", f"all {len(ours)} applied")


def explain(error: psycopg.Error, *, setting: str = "DATABASE_URL") -> tuple[str, str]:
    """Return what keeps the database away, and the fix: in our words, as libpq's may hold a secret."""
    said = str(error)
    for part, meaning, fix in _REASONS:
        if part in said:
            return f"{_where(setting)}: {meaning}", fix.format(setting)
    return f"{_where(setting)}: it cannot be asked ({type(error).__name__}).", f"Check {setting}."


def _where(setting: str) -> str:
    given = settings.DIRECT_DATABASE if setting == _DIRECT else settings.DATABASES["default"]
    return f"{given['HOST'] or 'the local socket'}:{given['PORT'] or 5432}/{given['NAME']}"


def _address(connection: psycopg.Connection[Any]) -> str:
    info = connection.info
    embedded = " (embedded)" if info.host == str(settings.VAR_DIR / "postgres") else ""
    return f"{info.host}:{info.port}/{info.dbname}{embedded}"
