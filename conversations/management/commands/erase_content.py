"""`manage.py erase_content`: erase what was said before a day, of one user or of all; numbers stay.

CONTENT_DAYS does the same every night. `erase_user` erases a person as a whole.
"""

from __future__ import annotations

import time
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError, CommandParser

from config import sql
from config.database import run_sync
from conversations import attachments
from conversations.identifiers import uuid_of
from conversations.upkeep import aged_content
from conversations.upkeep.aged_content import AgedCounts, Pass

_SAY_EVERY_S: Final = 1.0
_BEFORE: Final = "SELECT clock_timestamp() - make_interval(days => %s)"
_LONGEST: Final = 36_500
_FOUND: Final = (
    "{0.runs} runs with {0.messages} messages and up to {0.files} files in {0.conversations} "
    "conversations, and {0.copies} re-runs of them by staff, would be erased."
)
_ERASED: Final = (
    "{0.runs} runs with {0.messages} messages erased; {0.conversations} conversations are empty now, "
    "and {0.copies} re-runs of them by staff are gone"
)


class Command(BaseCommand):
    help = "Erase what was said before a day, of one user or of all. The numbers of runs stay."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--older-than", type=int, metavar="DAYS", help="runs that ended before")
        parser.add_argument("--user", help="username or id; without DAYS all that has ended")
        parser.add_argument("--dry-run", action="store_true", help="only report what is found")

    def handle(self, *args: Any, **options: Any) -> None:
        days, user = options["older_than"], _user(options["user"])
        if days is None and user is None:
            raise CommandError("Say what to erase: --older-than DAYS, --user NAME, or both.")
        if days is not None and not 0 <= days <= _LONGEST:
            raise CommandError(f"--older-than must be days from 0 to {_LONGEST}, not {days}.")
        ((before,),) = sql.fetch(_BEFORE, [days or 0])
        chosen = Pass(before, user.pk if user else None)
        if options["dry_run"]:
            self.stdout.write(_FOUND.format(run_sync(aged_content.count(chosen))))
        else:
            self._erase(chosen, user)

    def _erase(self, chosen: Pass, user: Any) -> None:
        since = said_at = time.monotonic()
        try:
            while not chosen.is_done:
                chosen = run_sync(aged_content.erase_step(chosen))
                if time.monotonic() - said_at >= _SAY_EVERY_S:
                    said_at = time.monotonic()
                    self.stdout.write(_ERASED.format(chosen.erased))
        finally:  # an interrupted command has erased too; repeating it goes on
            if chosen.erased != AgedCounts():
                aged_content.record(chosen, user=user)
        files = run_sync(_delete_files())
        self.stdout.write(
            f"{_ERASED.format(chosen.erased)}. {files} files that no message names deleted. "
            f"Done in {time.monotonic() - since:.1f} s."
        )


async def _delete_files() -> int:
    total, more = 0, True
    while more:
        deleted, more = await attachments.delete_orphans()
        total += deleted
    return total


def _user(name: str | None) -> Any:
    if name is None:
        return None
    users = get_user_model().objects
    user_id = uuid_of(name)
    found = users.filter(username=name).first()
    if found is None and user_id is not None:
        found = users.filter(pk=user_id).first()
    if found is None:
        raise CommandError(f"There is no user {name}.")
    return found
