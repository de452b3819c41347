"""`manage.py create_analyst_role`: a database role that reads the views `analytics_*` alone."""

from __future__ import annotations

import re
import secrets
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import ProgrammingError, connection, transaction
from psycopg import sql

from config.sql import fetch
from conversations.metrics.analytics_views import CONTENTS, views
from conversations.upkeep import analyst_roles

_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,62}")
_ROLE: Final = "SELECT rolname FROM pg_roles WHERE rolname = %s"


class Command(BaseCommand):
    help = "Make (or set anew) a PostgreSQL role that may read the analytics views and nothing else."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", nargs="?", default="parley_analyst")
        parser.add_argument("--password", help="by default one is made and shown once")
        parser.add_argument("--contents", action="store_true", help="may also read what people said")
        parser.add_argument("--drop", action="store_true", help="take the role away")

    def handle(self, *args: Any, **options: Any) -> None:
        name: str = options["name"]
        if not _NAME.fullmatch(name):
            raise CommandError(f"{name!r} is no name for a role: use a-z, 0-9 and _, a letter first.")
        try:
            with transaction.atomic():
                if options["drop"]:
                    self._drop(name)
                else:
                    self._make(name, options["password"], contents=options["contents"])
        except ProgrammingError as error:
            if not analyst_roles.is_denied(error):
                raise
            raise CommandError(
                "DATABASE_URL's role may not make roles. Let a superuser of the database run "
                "ALTER ROLE … CREATEROLE for it, or run this command with a superuser's DATABASE_URL."
            ) from None

    def _make(self, name: str, chosen_password: str | None, *, contents: bool) -> None:
        password = chosen_password or secrets.token_urlsafe(24)
        with connection.cursor() as cursor:
            verb = "ALTER" if fetch(_ROLE, [name]) else "CREATE"
            role, database = sql.Identifier(name), sql.Identifier(connection.settings_dict["NAME"])
            limits = "NOSUPERUSER NOCREATEDB NOCREATEROLE LOGIN"
            limits += f" CONNECTION LIMIT {analyst_roles.CONNECTIONS}"
            for statement in (
                sql.SQL(f"{verb} ROLE {{}} {limits} PASSWORD {{}}").format(role, sql.Literal(password)),
                sql.SQL("ALTER ROLE {} SET default_transaction_read_only = on").format(role),
                sql.SQL("ALTER ROLE {} SET statement_timeout = {}").format(
                    role, sql.Literal(f"{analyst_roles.LONGEST_S}s")
                ),
                sql.SQL("GRANT CONNECT ON DATABASE {} TO {}").format(database, role),
                sql.SQL("GRANT USAGE ON SCHEMA public TO {}").format(role),
                sql.SQL("REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {}").format(role),
                *(
                    sql.SQL("GRANT SELECT ON {} TO {}").format(sql.Identifier(view), role)
                    for view in views()
                    if contents or view != CONTENTS
                ),
            ):
                cursor.execute(statement)
        analyst_roles.narrow_public()
        analyst_roles.grant_ending(name)
        shown = "as given" if chosen_password else f"{password}  (shown once)"
        self.stdout.write(f"Role {name}, password {shown}.")
        self.stdout.write("It reads the views analytics_*; see docs/analytics/README.md.")
        self._report(name)

    def _report(self, name: str) -> None:
        """Show which limits hold, and for the others the privilege that is left."""
        self.stdout.write(f"  connections at once: {analyst_roles.CONNECTIONS}")
        ended = f"ended after {analyst_roles.LONGEST_S} seconds"
        unended = "NOT ENDED, for want of the privilege: let a superuser run this command"
        self.stdout.write(f"  long statements: {ended if analyst_roles.may_end(name) else unended}")
        privileges = analyst_roles.privileges_of(name)
        for kind in analyst_roles.KINDS:
            left = [privilege for what, privilege in privileges if what == kind]
            more = f" and {len(left) - 1} more" if left[1:] else ""
            self.stdout.write(f"  {kind}: " + (f"ALLOWED ({left[0]}{more})" if left else "refused"))
        if privileges:
            self.stdout.write(
                "What is allowed, PUBLIC holds: only its owner or a superuser may revoke it."
            )

    def _drop(self, name: str) -> None:
        if not fetch(_ROLE, [name]):
            raise CommandError(f"There is no role {name}.")
        with connection.cursor() as cursor:
            cursor.execute(sql.SQL("DROP OWNED BY {}").format(sql.Identifier(name)))
            cursor.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))
        self.stdout.write(f"Role {name} is gone.")
