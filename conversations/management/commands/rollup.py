"""`manage.py rollup`: add up hours and days again, with progress.

The serving processes do it by themselves for every change; this is for a restored database, or
after a change of the measures. Adding up twice gives the same rows.
"""

from __future__ import annotations

import time
from datetime import date, datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from config import database
from conversations.metrics import rollups


class Command(BaseCommand):
    help = "Add up the hours and days of a range again: --from 2026-01-01 --to 2026-03-31."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--from", dest="first", help="YYYY-MM-DD; the first day with a run")
        parser.add_argument("--to", dest="last", help="YYYY-MM-DD; today")

    def handle(self, *args: Any, **options: Any) -> None:
        first, last = _day(options["first"], "--from"), _day(options["last"], "--to")
        since = time.monotonic()
        days = database.run_sync(self._roll(first, last))
        self.stdout.write(f"{days} days added up in {time.monotonic() - since:.1f} s.")

    async def _roll(self, first: date | None, last: date | None) -> int:
        begin = first or await rollups.fetch_first_day()
        end = last or datetime.now(rollups.zone()).date()
        if begin is None:
            return 0
        if begin > end:
            raise CommandError(f"--from {begin} is after --to {end}: swap them.")
        if first is None:
            await rollups.mark_as_rolled_up()
        return await rollups.roll_up_range(begin, end, lambda day: self.stdout.write(f"{day} added up"))


def _day(text: str | None, name: str) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise CommandError(f"{name} must be a day like 2026-11-21, not {text!r}.") from None
