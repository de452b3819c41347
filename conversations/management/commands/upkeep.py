"""`manage.py upkeep`: do all that waits (partitions, folding, retention), with progress.

The serving processes do the same by themselves, a little at a time; this is for a pile of work.
"""

from __future__ import annotations

import asyncio
from typing import Any

from django.core.management.base import BaseCommand

from config import database
from conversations.upkeep.rounds import UpkeepResult, run_upkeep_round


class Command(BaseCommand):
    help = "Make partitions, fold ended runs and drop expired events until nothing is left to do."

    def handle(self, *args: Any, **options: Any) -> None:
        database.run_sync(self._until_done())
        self.stdout.write("Done.")

    async def _until_done(self) -> None:
        while True:
            done = await run_upkeep_round(budget_s=5)
            self.stdout.write(_said(done))
            if done is None:
                await asyncio.sleep(0.5)
            elif not done.more:
                return


def _said(done: UpkeepResult | None) -> str:
    if done is None:
        return "another process is at it"
    return (
        f"{done.made} partitions made, {done.dropped} dropped; {done.folded} runs folded; "
        f"{done.deleted} expired rows and {done.files} files that no message names deleted"
    )
