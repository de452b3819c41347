"""Lint the SQL of migrations: may the release before run beside it, and does it keep others waiting?

    DATABASE_URL=postgresql:///unused .venv/bin/python -m tests.support.migration_lint

Prints what squawk finds and ends with 1 if it finds anything. No database is needed. The rules are
those of docs/operating/upgrade.md: a release may add, and take away what the one before no longer used.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import django
from django.db import connection
from django.db.backends.postgresql.schema import DatabaseSchemaEditor
from django.db.migrations import Migration
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation
from psycopg.sql import quote

PUBLISHED: Final = {
    "accounts": "0003_secret_namespace",
    "agents": "0011_state_of_binding",
    "audit": "0002_retention",
    "conversations": "0023_unstored_runs_make_no_fork",
    "prompts": "0008_generation",
}
"""The last migration of each app in 0.2.0. No version before it was published, so no release ever ran
beside these, and on a new database they lock empty tables: they are not linted."""

EXEMPT: Final[Mapping[str, Mapping[str, str]]] = {}
"""What a migration may do nevertheless: `app.name` → rule of squawk → why that is safe."""

_NOT_ASKED: Final = (
    "prefer-bigint-over-int",  # Django's fields decide types, and a change of one is found anyway
    "prefer-bigint-over-smallint",
    "prefer-identity",
    "prefer-robust-stmts",  # Django records what it has applied
    "prefer-text-field",
    "require-lock-timeout",  # `manage.py migrate` sets it
    "require-statement-timeout",  # a statement that has its lock must go on
)
_PACKAGES: Final = ("agents", "config", "conversations", "prompts")
_VERSION: Final = "14.0"
_FINDING: Final = re.compile(r": (?:warning|error): ([\w-]+) ")


def lint(sql: str, name: str, *, in_transaction: bool = True) -> list[str]:
    """Return what squawk finds in this SQL, less what is exempted for the migration of this name."""
    program = Path(sysconfig.get_path("scripts")) / "squawk"
    options = ["--reporter=gcc", f"--pg-version={_VERSION}", f"--exclude={','.join(_NOT_ASKED)}"]
    options += ["--assume-in-transaction"] if in_transaction else []
    done = subprocess.run(
        [program, *options, f"--stdin-filepath={name}"],
        input=sql,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode and not done.stdout:
        raise RuntimeError(f"squawk: {done.stderr}")
    allowed = EXEMPT.get(name, {})
    found = [line for line in done.stdout.splitlines() if _FINDING.search(line)]
    return [line for line in found if _FINDING.findall(line)[0] not in allowed]


def sql_of(operations: Sequence[Operation], *, app: str, after: str, atomic: bool = True) -> str:
    """Return the SQL of Django's operations, which follow the migration `after` of this app."""
    kind = type("Migration", (Migration,), {"operations": list(operations), "atomic": atomic})
    migration: Migration = kind("linted", app)
    return _collected(migration, after=(app, after))


def lint_new() -> list[str]:
    """Return what is found in all migrations of ours that are newer than `PUBLISHED`."""
    found = []
    migrations = _loader().disk_migrations
    for app, name in sorted(known_migrations()):
        if name > PUBLISHED.get(app, ""):
            migration = migrations[app, name]
            sql = _collected(migration)
            found += lint(sql, f"{app}.{name}", in_transaction=migration.atomic)
    return found


def known_migrations() -> set[tuple[str, str]]:
    """Return the app and the name of each migration of this project."""
    return {
        key
        for key, migration in _loader().disk_migrations.items()
        if migration.__module__.partition(".")[0] in _PACKAGES
    }


def _loader() -> MigrationLoader:
    return MigrationLoader(None)


def _collected(migration: Migration, after: tuple[str, str] | None = None) -> str:
    """Return the SQL, collected without a connection."""
    key = after or (migration.app_label, migration.name)
    state = _loader().project_state(key, at_end=after is not None)
    editor = _Collector(connection, collect_sql=True, atomic=False)
    with editor:
        migration.apply(state, editor, collect_sql=True)
    return "\n".join(editor.collected_sql)


class _Collector(DatabaseSchemaEditor):
    """Django's own asks the database how values are quoted, and for the names of constraints."""

    def _constraint_names(self, *_: Any, **__: Any) -> list[str]:
        return []

    def execute(self, sql: Any, params: Any = ()) -> None:
        text = str(sql)
        text = text % tuple(quote(value) for value in params) if params else text
        self.collected_sql.append(text.rstrip().removesuffix(";") + ";")


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    sys.exit("\n".join(lint_new()) or 0)
