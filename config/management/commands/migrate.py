"""`manage.py migrate`: Django's, but it never waits long for a lock, so nobody queues behind it.

A change of a table waits for those who read it, and whoever comes later waits for the change: behind one
long reader everything would stand. So a migration gives up after `PATIENCE_MS` and is tried again from
its beginning, until `--lock-retry` seconds are over. Those before it stay applied.

One runs at a time: of two that apply the same migration at once, one would find its tables made.

It goes over DIRECT_DATABASE_URL if that is set. A migration may take longer than a statement of Parley,
also where PostgreSQL limits those for its role, and builds indexes outside of transactions, so it is
refused through a pooler in transaction mode.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Any, Final

from django.core.management.base import CommandError, CommandParser
from django.core.management.commands import migrate
from django.db import Error, OperationalError, connections
from django.db.migrations import Migration
from psycopg.errors import LockNotAvailable

from config import database

PATIENCE_MS: Final = 100
_RETRY_S: Final = 600
_PAUSE_S: Final = (0.2, 1.0)
_LOCK: Final = "hashtext('manage.py migrate')"
_TRY_LOCK: Final = f"SELECT pg_try_advisory_lock({_LOCK})"
_UNLOCK: Final = f"SELECT pg_advisory_unlock({_LOCK})"
_SET_LIMITS: Final = """
SELECT set_config('lock_timeout', %s, false), set_config('statement_timeout', '0', false)
"""
_RESET_LIMITS: Final = "RESET lock_timeout; RESET statement_timeout"
_HOLDERS: Final = """
SELECT pid, application_name, round(extract(epoch FROM clock_timestamp() - xact_start))
FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL
ORDER BY xact_start LIMIT 3
"""


class Command(migrate.Command):
    """Apply migrations with a bounded wait for locks, and repeat those that did not get theirs."""

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--lock-retry",
            type=int,
            default=_RETRY_S,
            metavar="SECONDS",
            help="how long a migration without its locks is tried again (default: %(default)s)",
        )

    def handle(self, *args: Any, lock_retry: int = _RETRY_S, **options: Any) -> None:
        self._alias = options["database"]
        try:
            with database.django_session():
                self._apply(*args, lock_retry=lock_retry, **options)
        except database.UnusablePooler as refusal:
            raise CommandError(str(refusal)) from None

    def migration_progress_callback(
        self, action: str, migration: Migration | None = None, fake: bool = False
    ) -> None:
        """Bound the wait for locks in what is one transaction.

        What is none, an index that is built beside its readers and writers, waits without keeping
        anybody out; it would leave half an index if it gave up.
        """
        if migration is not None and action in ("apply_start", "unapply_start"):
            self._set_patience(PATIENCE_MS if migration.atomic else 0)
        super().migration_progress_callback(action, migration, fake)

    def _apply(self, *args: Any, lock_retry: int, **options: Any) -> None:
        until = time.monotonic() + lock_retry
        reads_only = options["plan"] or options["check_unapplied"]
        with nullcontext() if reads_only else self._alone(until, lock_retry):
            while not self._applied(*args, **options):
                if time.monotonic() > until:
                    raise CommandError(self._complaint(lock_retry))
                time.sleep(random.uniform(*_PAUSE_S))

    @contextmanager
    def _alone(self, until: float, lock_retry: int) -> Iterator[None]:
        """Keep other migrates of the database out, and undo what this one sets in its session.

        It asks again and again: a statement that waits would hold up an index that the other one builds.
        """
        is_told = False
        while not self._query(_TRY_LOCK):
            if time.monotonic() > until:
                raise CommandError(
                    f"Another migrate has been at work on this database for {lock_retry} seconds: let "
                    "it end, and run this again."
                )
            if not is_told:
                self.stdout.write("  another migrate is at work: waiting for its end")
            is_told = True
            time.sleep(random.uniform(*_PAUSE_S))
        try:
            yield
        finally:
            with suppress(Error):  # what ended the command is the error to show
                self._query(_UNLOCK)
                with connections[self._alias].cursor() as cursor:
                    cursor.execute(_RESET_LIMITS)

    def _applied(self, *args: Any, **options: Any) -> bool:
        try:
            super().handle(*args, **options)
        except OperationalError as error:
            if not isinstance(error.__cause__, LockNotAvailable):
                raise
            self.stdout.write(f"  locked by others for {PATIENCE_MS} ms: trying again")
            return False
        return True

    def _query(self, statement: str) -> Any:
        with connections[self._alias].cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetchone()[0]

    def _set_patience(self, milliseconds: int) -> None:
        with connections[self._alias].cursor() as cursor:
            cursor.execute(_SET_LIMITS, [f"{milliseconds}ms"])

    def _complaint(self, lock_retry: int) -> str:
        with connections[self._alias].cursor() as cursor:
            cursor.execute(_HOLDERS)
            oldest = ", ".join(f"{pid} ({name or 'no name'}, {age} s)" for pid, name, age in cursor)
        return (
            f"A migration did not get its locks within {lock_retry} seconds; those before it are "
            f"applied. The oldest transactions are of the backends {oldest or 'that have ended'}: wait "
            "for them, or end them with pg_terminate_backend, and run this again."
        )
