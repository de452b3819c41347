"""A pooler between Parley and PostgreSQL, such as PgBouncer: whether there is one, and how it pools.

A pooler tells its clients a process number of its own; that of the server is another one. In transaction
mode two clients share a server's process, or one client changes it: that is seen by asking both. So no
setting says it, and none can be wrong.

In transaction mode each transaction may run in another session of the server. Parley keeps nothing in
one: its locks and settings end with their transaction. Only the limits of time cannot, and must be the
sessions' own. Without them a frozen process would hold its locks for ever: such a pooler is refused.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal
from uuid import uuid4

import structlog
from psycopg import Connection, OperationalError, capabilities
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGconn
from psycopg.sql import Identifier

logger = structlog.get_logger(__name__)

Mode = Literal["none", "session", "transaction"]
LIMITS: Final = {
    "lock_timeout": "5s",
    "statement_timeout": "60s",
    "idle_in_transaction_session_timeout": "10s",
}
"""How long a statement of Parley may take, and wait for a lock, and how long a transaction may pause."""
_ROUNDS: Final = 30
_REMEMBERED_S: Final = 60.0
_FILE: Final = "deploy/pgbouncer/pgbouncer.ini"


@dataclass(frozen=True, slots=True)
class Pooling:
    """The mode of the pooler, and whether a statement that is prepared by name can be executed later."""

    mode: Mode
    keeps_statements: bool


DIRECT: Final = Pooling("none", keeps_statements=True)
_SESSION: Final = Pooling("session", keeps_statements=True)
_found: dict[tuple[Any, ...], tuple[float, Pooling]] = {}
_finding = threading.Lock()


class UnusablePooler(OperationalError):
    """A pooler does not give what Parley needs; `text` has the reason, and `fix` what to change."""

    def __init__(self, text: str, fix: str) -> None:
        super().__init__(f"{text} {fix}")
        self.text = text
        self.fix = fix


def no_session() -> UnusablePooler:
    """Return the error of what needs a session of its own and has none."""
    return UnusablePooler(
        "A pooler in transaction mode is between Parley and PostgreSQL, and this needs a session.",
        "Set DIRECT_DATABASE_URL to the address of PostgreSQL itself.",
    )


def find(arguments: Mapping[str, Any]) -> Pooling:
    """Return what is behind libpq's arguments, as it was at most a minute ago. Blocks.

    Raise UnusablePooler, or another OperationalError if the server does not answer.
    """
    address = tuple(arguments.get(name) for name in ("host", "port", "dbname", "user"))
    with _finding:
        at, pooling = _found.get(address, (0.0, None))
        if pooling is None or at < time.monotonic() - _REMEMBERED_S:
            known, pooling = pooling, _examine(arguments)
            _found[address] = (time.monotonic(), pooling)
            if pooling not in (known, DIRECT):
                logger.info("pooler", mode=pooling.mode, keeps_statements=pooling.keeps_statements)
        return pooling


def _examine(arguments: Mapping[str, Any]) -> Pooling:
    with _open(arguments) as first:
        if _server_process(first) == first.info.backend_pid:
            return DIRECT
        _require_transactions(first)
        with _open(arguments) as second:
            if not _share(first, second):
                return _SESSION
        _require_limits(first)
        return Pooling("transaction", _keeps_statements(first))


def _open(arguments: Mapping[str, Any]) -> Connection[Any]:
    return Connection.connect(**{**arguments, "autocommit": True, "prepare_threshold": None})


def _server_process(connection: Connection[Any]) -> int:
    row = connection.execute("SELECT pg_backend_pid()").fetchone()
    return int(row[0]) if row else 0


def _share(first: Connection[Any], second: Connection[Any]) -> bool:
    """Return whether the two clients do not each keep a process of the server.

    Most poolers give the process that was used last, which both get; others give each in turn, so that
    a client gets two. Only if strangers come between all the time neither is seen.
    """
    for _ in range(_ROUNDS):
        before, now = _server_process(first), _server_process(first)
        if before != now or now == _server_process(second):
            return True
    return False


def _require_transactions(connection: Connection[Any]) -> None:
    try:
        with connection.transaction():
            _server_process(connection)
    except OperationalError as error:
        if "statement pooling" not in str(error):
            raise
        raise UnusablePooler(
            "The pooler between Parley and PostgreSQL pools by statement; Parley needs transactions.",
            "Set pool_mode = transaction there.",
        ) from None


_UNLIMITED: Final = "SELECT name FROM pg_settings WHERE name = ANY(%s) AND setting = '0'"


def _require_limits(connection: Connection[Any]) -> None:
    missing = {name for (name,) in connection.execute(_UNLIMITED, (list(LIMITS),)).fetchall()}
    if missing:
        role = Identifier(connection.info.user).as_string(connection)
        changes = " ".join(
            f"ALTER ROLE {role} SET {name} = '{limit}';"
            for name, limit in LIMITS.items()
            if name in missing
        )
        raise UnusablePooler(
            "A pooler in transaction mode is between Parley and PostgreSQL, and its connections have no "
            f"{', '.join(name for name in LIMITS if name in missing)}.",
            f"Set a connect_query there, as {_FILE} has, or let PostgreSQL do it: {changes} "
            "Then let the pooler RECONNECT.",
        )


def _keeps_statements(connection: Connection[Any]) -> bool:
    """Return whether the pooler knows prepared statements: then it gives them names of its own.

    PgBouncer 1.21 does so, but loses track when a client forgets all its statements, as psycopg does
    after a rollback; later versions do not. psycopg forgets a single one by a message of libpq 17.
    """
    if not capabilities.has_send_close_prepared():
        return False
    name = f"parley_{uuid4().hex}"
    with connection.transaction(force_rollback=True):
        is_renamed = _name_at_server(connection.pgconn, name) not in (name, None)
        connection.execute("DEALLOCATE ALL" if is_renamed else f"DEALLOCATE {name}")
        return is_renamed and _name_at_server(connection.pgconn, name) is not None


def _name_at_server(connection: PGconn, name: str) -> str | None:
    """Prepare a statement by this name and execute it. Return the name that the server has."""
    statement = f"SELECT name, '{name}' FROM pg_prepared_statements WHERE statement = current_query()"
    connection.prepare(name.encode(), statement.encode())
    result = connection.exec_prepared(name.encode(), [])
    found = result.get_value(0, 0) if result.status == ExecStatus.TUPLES_OK and result.ntuples else None
    return found.decode() if found is not None else None
