"""What a test process stands on: a `var/` of its own, and a PostgreSQL that starts when it is needed.

Loaded early (`-p tests.support.database` in pyproject.toml), before the settings are read. All
processes of a session share one server, embedded or that of DATABASE_URL; pytest-django gives each
worker of pytest-xdist its own database in it, and here each gets its own database of Redis.

With POOLER=transaction (or session) they reach the server of DATABASE_URL through a PgBouncer, and past
it only for what needs a session.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from config.process.embedded_postgres import DATABASE, Server
from tests.support import pooler

WORKER = os.environ.get("PYTEST_XDIST_WORKER", "")
_FOLDER = "PARLEY_TESTS_FOLDER"
_EMBEDDED = "PARLEY_TESTS_EMBEDDED"
_server: Server | None = None
_pooler: pooler.PgBouncer | None = None


def start_postgres() -> None:
    """Start the embedded server or join it; a given one runs already."""
    if _server is not None:
        _server.start()


def url_of_tests() -> str:
    """The address of this process's test database, for a program that a test starts."""
    from django.db import connection

    given = connection.get_connection_params()
    names = ("host", "port", "user", "password")
    query = urlencode({name: given[name] for name in names if given.get(name)})
    return f"postgresql:///{given['dbname']}?{query}"


def redis_of_worker(url: str, worker: str) -> str:
    """The address of Redis with a database for this worker: gw0 has the given one, gw1 the one below."""
    given = urlsplit(url)
    number = int(given.path.strip("/") or 0) - int(worker.removeprefix("gw"))
    if number < 0:
        raise pytest.UsageError(
            f"Redis has no database for worker {worker}: each takes the one below the one before. "
            "Give a higher number, like REDIS_URL=redis://127.0.0.1:6379/15, or fewer workers with -n."
        )
    return given._replace(path=f"/{number}").geturl()


def server_url() -> str:
    """The address of a database of the server itself, whatever is in front of it."""
    return os.environ.get("DIRECT_DATABASE_URL") or os.environ["DATABASE_URL"]


def _provide() -> None:
    global _server
    if not WORKER:
        _provide_session()
    folder = Path(os.environ[_FOLDER])
    if os.environ.get(_EMBEDDED):
        _server = Server(folder, durable=False)
        os.environ["DATABASE_URL"] = _server.url(DATABASE)
    if WORKER:
        os.environ["VAR_DIR"] = str(folder / WORKER)
        if url := os.environ.get("REDIS_URL"):
            os.environ["REDIS_URL"] = redis_of_worker(url, WORKER)


def _provide_session() -> None:
    """What the workers inherit."""
    os.environ.setdefault("LOG_LEVEL", "WARNING")
    os.environ.setdefault("DEMO_TOKEN_S", "0.0005")
    os.environ.setdefault("COORDINATION", "redis" if os.environ.get("REDIS_URL") else "memory")
    os.environ[_FOLDER] = os.environ["VAR_DIR"] = tempfile.mkdtemp(prefix="parley-tests-")
    os.environ[_EMBEDDED] = "" if os.environ.get("DATABASE_URL") else "yes"
    if mode := os.environ.get("POOLER"):
        _provide_pooler(mode)


def _provide_pooler(mode: str) -> None:
    global _pooler
    server = os.environ.get("DATABASE_URL")
    if not server or pooler.missing():
        raise pytest.UsageError(pooler.missing() or "POOLER needs a server: set DATABASE_URL.")
    _pooler = pooler.PgBouncer(Path(os.environ[_FOLDER]) / "pooler", server, pool_mode=mode)
    _pooler.folder.parent.chmod(0o711)
    _pooler.start()
    os.environ["DIRECT_DATABASE_URL"] = server
    os.environ["DATABASE_URL"] = _pooler.url(str(conninfo_to_dict(server)["dbname"]))


def let_go_of(database: str) -> None:
    """End the connections to the test database, which is to be dropped: a pooler's, a late process's."""
    of_it = "FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()"
    with psycopg.connect(make_conninfo(server_url(), dbname="postgres"), autocommit=True) as opened:
        name = sql.Identifier(database)
        opened.execute(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS false").format(name))
        while opened.execute(f"SELECT pg_terminate_backend(pid) {of_it}", (database,)).fetchall():
            time.sleep(0.05)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    if _server is not None:
        _server.stop()  # the last process that leaves ends it
    if _pooler is not None:
        _pooler.kill()
    if not WORKER:
        shutil.rmtree(os.environ[_FOLDER], ignore_errors=True)


_provide()
