"""Bounds on the database roles of analysts that PostgreSQL's settings do not give.

An analyst's role is one that reads the views `analytics_*` and not the tables behind them. It may lift
its own `statement_timeout`, so upkeep ends sessions that take too long. PUBLIC may by default make
temporary tables and large objects and take the advisory locks that runs wait for: here PUBLIC loses
these privileges, and the roles that write runs keep them by name.
"""

from __future__ import annotations

from typing import Final

from django.db import ProgrammingError, connection, transaction
from psycopg.sql import SQL, Composed, Identifier

from config import sql

CONNECTIONS: Final = 5
LONGEST_S: Final = 300
KINDS: Final = (
    "temporary tables",
    "objects in schema public",
    "large objects",
    "advisory locks",
    "connections to other databases",
)
_WRITERS_NEED: Final = {"temporary tables", "large objects", "advisory locks"}
_DENIED: Final = "42501"  # insufficient_privilege (PostgreSQL, appendix A)
_RIGHTS: Final = r"""
SELECT 'temporary tables', format('TEMPORARY ON DATABASE %%I', current_database())
WHERE has_database_privilege(%(role)s::name, current_database(), 'TEMPORARY')
UNION ALL
SELECT 'objects in schema public', 'CREATE ON SCHEMA public'
WHERE has_schema_privilege(%(role)s::name, 'public', 'CREATE')
UNION ALL
SELECT CASE WHEN proname LIKE 'lo%%' THEN 'large objects' ELSE 'advisory locks' END,
    format('EXECUTE ON FUNCTION %%s', oid::regprocedure)
FROM pg_proc
WHERE pronamespace = 'pg_catalog'::regnamespace
    AND proname ~ '^(lo_|loread$|lowrite$|pg_(try_)?advisory_)'
    AND has_function_privilege(%(role)s::name, oid, 'EXECUTE')
UNION ALL
SELECT 'connections to other databases', format('CONNECT ON DATABASE %%I', datname)
FROM pg_database
WHERE datallowconn AND datname <> current_database()
    AND has_database_privilege(%(role)s::name, oid, 'CONNECT')
    AND (%(role)s <> 'public' OR current_setting('listen_addresses') = '')
"""  # other databases have their own owners; a server without an address is the embedded one
_WRITERS: Final = """
SELECT rolname FROM pg_roles
WHERE rolname !~ '^pg_' AND NOT rolsuper AND has_table_privilege(oid, 'conversations_run', 'INSERT')
"""
_END: Final = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity AS session
WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()
    AND (pg_has_role(usesysid, 'USAGE') OR pg_has_role('pg_signal_backend', 'USAGE'))
    AND has_table_privilege(usesysid, to_regclass('analytics_runs'), 'SELECT')
    AND NOT has_table_privilege(usesysid, to_regclass('conversations_run'), 'SELECT')
    AND (
        xact_start < clock_timestamp() - make_interval(secs => %(longest_s)s)
        OR EXISTS (SELECT FROM pg_locks WHERE pid = session.pid AND locktype = 'advisory')
    )
"""


async def end_long_sessions(*, longest_s: float = LONGEST_S) -> int:
    """End the analysts' sessions that hold an advisory lock or a transaction older than `longest_s`.

    Return their number. Sessions that DATABASE_URL's role may not end go on.
    """
    return await sql.change(_END, {"longest_s": longest_s})


def narrow_public() -> None:
    """Reserve for the roles that write runs the privileges that analysts must lack, where we may."""
    publics, writers = [privilege for _, privilege in privileges_of("public")], _writers()
    ((own_role,),) = sql.fetch("SELECT current_user")
    ours = [privilege for kind, privilege in privileges_of(own_role) if kind in _WRITERS_NEED]
    for privilege in {*publics, *ours}:
        for writer in writers:
            _try(SQL(f"GRANT {privilege} TO {{}}").format(writer))
    for privilege in publics:
        _try(SQL(f"REVOKE {privilege} FROM PUBLIC").format())


def grant_ending(role: str) -> None:
    """Let the roles that write runs see and end the sessions of an analyst's role."""
    for writer in _writers():
        _try(SQL("GRANT {} TO {}").format(Identifier(role), writer))


def may_end(role: str) -> bool:
    """Return whether our own role may end the sessions of an analyst's role."""
    may = "SELECT pg_has_role(%s::name, 'USAGE') OR pg_has_role('pg_signal_backend', 'USAGE')"
    return sql.fetch(may, [role]) == [(True,)]


def privileges_of(role: str) -> list[tuple[str, str]]:
    """Return the privileges that an analyst should lack: each one's effect, and its SQL after GRANT."""
    return sql.fetch(_RIGHTS, {"role": role})


def _writers() -> list[Identifier]:
    return [Identifier(name) for (name,) in sql.fetch(_WRITERS)]


def _try(statement: Composed) -> None:
    """Execute a statement that only an owner may; without the right, `privileges_of` shows the rest."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(statement)
    except ProgrammingError as error:
        if not is_denied(error):
            raise


def is_denied(error: ProgrammingError) -> bool:
    """Return whether PostgreSQL refused for lack of a privilege."""
    return getattr(error.__cause__, "sqlstate", "") == _DENIED
