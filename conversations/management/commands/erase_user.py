"""`manage.py erase_user USER`: erase all of a user's content, then the account.

Staff's re-runs of the user's conversations go too. Then every table is searched again, and the numbers
found and removed of each kind are printed.
"""

from __future__ import annotations

import time
from typing import Any, Final
from uuid import UUID

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError, CommandParser

from conversations.identifiers import uuid_of
from conversations.upkeep import holdings
from conversations.upkeep.holdings import Kind
from conversations.upkeep.retention import ErasedCounts, erase_user

_SAY_EVERY_S = 1.0
_NOT_SEARCHED: Final = (
    "Not searched, as nothing there belongs to one user: what runners keep for all of their runs, what "
    "plugins keep in processes of their own, prompts and documents that staff wrote, logs and backups."
)


class Command(BaseCommand):
    help = "Erase a user's conversations with staff's re-runs of them, files, tokens and account."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", help="username or id")
        parser.add_argument("--keep-account", action="store_true", help="erase what it holds only")
        parser.add_argument("--dry-run", action="store_true", help="only report what is found")

    def handle(self, *args: Any, **options: Any) -> None:
        user_id, keep = _user_id(options["user"]), options["keep_account"]
        found = holdings.count_rows(user_id)
        if options["dry_run"]:
            self.stdout.write(_table(found, found))
            return
        since = self._said_at = time.monotonic()
        erased = erase_user(user_id, self._progress, keep_account=keep)
        left = holdings.count_rows(user_id)
        self.stdout.write(_table(found, left))
        self.stdout.write(_NOT_SEARCHED)
        self.stdout.write(f"Done in {time.monotonic() - since:.1f} s: {_words(erased)}.")
        if kinds := [kind.name for kind, count in left.items() if count and _goes(kind, keep)]:
            raise CommandError(f"Something is left ({', '.join(kinds)}): run this again.")

    def _progress(self, erased: ErasedCounts) -> None:
        if time.monotonic() - self._said_at >= _SAY_EVERY_S:
            self._said_at = time.monotonic()
            self.stdout.write(_words(erased))


def _goes(kind: Kind, keep_account: bool) -> bool:
    return not kind.kept and not (kind.of_account and keep_account)


def _user_id(name: str) -> UUID:
    """Return the account of this name or id, or an id of which more is held than is kept by design."""
    found = get_user_model().objects.filter(username=name).first()
    if found is not None:
        return found.pk
    user_id = uuid_of(name)
    if user_id is None or not any(
        count for kind, count in holdings.count_rows(user_id).items() if not kind.kept
    ):
        raise CommandError(f"There is no user {name}.")
    return user_id


def _table(found: dict[Kind, int], left: dict[Kind, int]) -> str:
    """Return one line per kind; data kept by design is marked."""
    width = max(len(kind.name) for kind in found) + len(_KEPT)
    lines = [f"{'kind':<{width}} {'found':>9} {'removed':>9} {'left':>9}"]
    for kind, count in found.items():
        name = kind.name + _KEPT * kind.kept
        still = left.get(kind, 0)
        lines.append(f"{name:<{width}} {count:>9} {max(count - still, 0):>9} {still:>9}")
    return "\n".join(lines)


_KEPT: Final = ", kept"


def _words(erased: ErasedCounts) -> str:
    return (
        f"{erased.messages} messages, {erased.events} event rows, {erased.runs} runs, "
        f"{erased.threads} threads, {erased.files} files erased"
    )
