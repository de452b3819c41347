"""The linter of migrations finds what would hold others up or break the release before."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models
from django.db.migrations.operations.base import Operation

from tests.support import migration_lint

LAST = migration_lint.PUBLISHED["conversations"]
INDEX = models.Index(fields=["model"], name="linted")
CHECK = models.CheckConstraint(condition=models.Q(attempt__gte=0), name="linted")


def findings(*operations: Operation, atomic: bool = True) -> set[str]:
    """The rules that a migration with these operations breaks."""
    sql = migration_lint.sql_of(operations, app="conversations", after=LAST, atomic=atomic)
    found = migration_lint.lint(sql, "conversations.linted", in_transaction=atomic)
    return {line.split("warning: ")[1].split()[0] for line in found}


@pytest.mark.parametrize(
    ("operations", "rule"),
    [
        ([migrations.AddIndex("run", INDEX)], "require-concurrent-index-creation"),
        ([migrations.AddField("run", "linted", models.IntegerField(default=0))], "ban-drop-default"),
        ([migrations.AddField("run", "linted", models.FloatField())], "adding-required-field"),
        ([migrations.RemoveField("run", "model")], "ban-drop-column"),
        ([migrations.RenameField("run", "model", "linted")], "renaming-column"),
        ([migrations.DeleteModel("feedback")], "ban-drop-table"),
        ([migrations.AlterField("run", "attempt", models.BigIntegerField())], "changing-column-type"),
        ([migrations.AddConstraint("run", CHECK)], "constraint-missing-not-valid"),
    ],
)
def test_a_bad_migration_is_found(operations: Sequence[Operation], rule: str) -> None:
    assert rule in findings(*operations)


def test_an_index_that_is_built_beside_readers_and_writers_passes() -> None:
    assert findings(AddIndexConcurrently("run", INDEX), atomic=False) == set()


def test_what_only_adds_passes() -> None:
    field = models.IntegerField(default=0, db_default=0)
    table = migrations.CreateModel("Linted", [("id", models.BigAutoField(primary_key=True))])
    assert findings(migrations.AddField("run", "linted", field), table) == set()


def test_all_migrations_since_the_last_release_pass() -> None:
    assert migration_lint.lint_new() == []


def test_the_published_migrations_exist() -> None:
    """A renamed one would make all migrations of its app new."""
    known = migration_lint.known_migrations()
    assert migration_lint.PUBLISHED.items() <= known
    assert migration_lint.PUBLISHED.keys() <= {app for app, _ in known}
    assert migration_lint.EXEMPT.keys() <= {f"{app}.{name}" for app, name in known}
