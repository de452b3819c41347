"""Stored data of a user, kind by kind: erasing has to find all of it, and leaves none.

Rows of other apps are found by their keys to the account, so a new model is searched without a change
here. An app lists in `CONTENT` the tables of a user's content that are no part of the account.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.apps import apps
from django.contrib.auth import get_user_model
from django.db import models
from django.db.models import CASCADE, DO_NOTHING

from config import sql
from config.audit.retention import COUNT_ABOUT


@dataclass(frozen=True)
class Kind:
    """Rows of a user; those of the account stay as long as it does, and kept rows outlive it."""

    name: str
    count: str
    of_account: bool = False
    kept: bool = False


@dataclass(frozen=True)
class Content:
    """A table whose rows go with a user's content, also where the account stays.

    Rows that name a conversation (`thread_column`) go with its last words, and those that also name a
    run (`run_column`) with that run's.
    """

    table: str
    column: str
    name: str
    thread_column: str = ""
    run_column: str = ""


CONTENT: Final[list[Content]] = [Content("conversations_feedback", "user_id", "feedback")]


def add_content(
    model: type[models.Model], column: str, *, thread_column: str = "", run_column: str = ""
) -> None:
    """Register a model: rows that name a user in this column are erased with the user's content."""
    name = str(model._meta.verbose_name_plural)
    CONTENT.append(Content(model._meta.db_table, column, name, thread_column, run_column))


_THREADS: Final = "SELECT id FROM conversations_thread WHERE owner_id = %(user)s"
_COPIES: Final = "SELECT thread_id FROM conversations_threadcopy WHERE owner_id = %(user)s"
_SAID: Final = {  # by the threads that contain it
    "conversations": "SELECT count(*) FROM conversations_thread WHERE id IN ({threads})",
    "runs": "SELECT count(*) FROM conversations_run WHERE thread_id IN ({threads})",
    "messages": "SELECT count(*) FROM conversations_message WHERE thread_id IN ({threads})",
    "event rows": "SELECT count(*) FROM conversations_eventbatch WHERE run_id IN ("
    "SELECT id FROM conversations_run WHERE thread_id IN ({threads}))",
}
_ALSO: Final = (
    Kind("approvals", "SELECT count(*) FROM conversations_interrupt WHERE owner_id = %(user)s"),
    Kind("files", "SELECT count(*) FROM conversations_attachment WHERE owner_id = %(user)s"),
)
_KEPT: Final = (
    Kind(
        "daily sums (numbers and ids)",
        "SELECT count(*) FROM conversations_threadday WHERE owner_id = %(user)s",
        kept=True,
    ),
    Kind(
        "audit entries about the account (who and when)",
        COUNT_ABOUT,
        kept=True,
    ),
)


def count_rows(user_id: UUID) -> dict[Kind, int]:
    """Return the number of rows of each kind."""
    return {kind: sql.fetch(kind.count, {"user": user_id})[0][0] for kind in _kinds()}


def _kinds() -> Iterator[Kind]:
    for name, count in _SAID.items():
        yield Kind(name, count.format(threads=_THREADS))
    for name, count in _SAID.items():
        yield Kind(f"re-runs: {name}", count.format(threads=_COPIES))
    yield from _ALSO
    for content in CONTENT:
        yield Kind(content.name, _count_sql(content.table, content.column))
    yield from _of_account()
    yield from _KEPT


_ITS_OWN: Final = ("conversations.thread", "conversations.run", "conversations.message")


def _of_account() -> Iterator[Kind]:
    """Return the rows that have a key to the account and go with it."""
    named = {content.table for content in CONTENT} | {"conversations_interrupt"}
    account = get_user_model()
    for model in apps.get_models():
        if model._meta.label_lower in _ITS_OWN or model._meta.db_table in named:
            continue
        for field in model._meta.concrete_fields:
            if not isinstance(field, models.ForeignKey) or field.related_model is not account:
                continue
            if field.remote_field.on_delete in (CASCADE, DO_NOTHING):
                name, table = str(model._meta.verbose_name_plural), model._meta.db_table
                yield Kind(name, _count_sql(table, field.attname), of_account=True)
    yield Kind("account", _count_sql(account._meta.db_table, "id"), of_account=True)


def _count_sql(table: str, column: str) -> str:
    return f"SELECT count(*) FROM {table} WHERE {column} = %(user)s"
