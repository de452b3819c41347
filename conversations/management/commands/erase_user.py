"""`manage.py erase_user USER`: erase all that a user has said and done, then the account."""

from __future__ import annotations

import time
from typing import Any
from uuid import UUID

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError, CommandParser

from conversations.retention import Erased, erase_user

_SAY_EVERY_S = 1.0


class Command(BaseCommand):
    help = "Erase a user's events, messages, runs and threads, then tokens and account."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", help="username or id")
        parser.add_argument("--keep-account", action="store_true", help="erase what it holds only")

    def handle(self, *args: Any, **options: Any) -> None:
        since = self._said_at = time.monotonic()
        erased = erase_user(
            _user_id(options["user"]), self._progress, keep_account=options["keep_account"]
        )
        self.stdout.write(f"Done in {time.monotonic() - since:.1f} s: {_words(erased)}.")

    def _progress(self, erased: Erased) -> None:
        if time.monotonic() - self._said_at >= _SAY_EVERY_S:
            self._said_at = time.monotonic()
            self.stdout.write(_words(erased))


def _user_id(name: str) -> UUID:
    users = get_user_model().objects
    found = users.filter(username=name).first()
    if found is None:
        try:
            found = users.filter(pk=UUID(name)).first()
        except ValueError:
            found = None
    if found is None:
        raise CommandError(f"There is no user {name}.")
    return found.pk


def _words(erased: Erased) -> str:
    return (
        f"{erased.messages} messages, {erased.events} event rows, {erased.runs} runs, "
        f"{erased.threads} threads, {erased.files} files erased"
    )
