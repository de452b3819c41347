"""`manage.py rotate_keys`: seal every stored key again with the newest of SEALING_KEYS.

Run it after putting a new key in front; run it as often as you like. It prints names and counts,
never a key.
"""

from __future__ import annotations

from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from config.audit import openings
from config.database import run_sync
from prompts import secrets
from prompts.models import Secret

_BATCH: Final = 200


class Command(BaseCommand):
    """Re-seal in batches; each is one transaction, so an interrupted run is simply run again."""

    help = "Seal every stored key again with the newest of SEALING_KEYS."

    def handle(self, *args: Any, **options: Any) -> None:
        total, seen, sealed, last = Secret.objects.count(), 0, 0, 0
        unreadable: list[str] = []
        while batch := _batch_after(last):
            sealed += _reseal(batch, unreadable)
            seen, last = seen + len(batch), batch[-1]
            self.stdout.write(f"{seen} of {total} keys looked at, {sealed} sealed again")
        run_sync(openings.write())
        self.stdout.write(
            f"Done: {sealed} sealed again, {seen - sealed - len(unreadable)} already newest."
        )
        if unreadable:
            raise CommandError(
                f"{len(unreadable)} cannot be opened by any of SEALING_KEYS: {', '.join(unreadable)}. "
                "Add the key that sealed them and run this again, or enter them again in admin."
            )


def _batch_after(last: int) -> list[int]:
    return list(Secret.objects.filter(pk__gt=last).order_by("pk").values_list("pk", flat=True)[:_BATCH])


@transaction.atomic
def _reseal(batch: list[int], unreadable: list[str]) -> int:
    """Seal these again under their row locks (staff may be changing one); return how many changed."""
    changed = []
    for secret in Secret.objects.select_for_update().filter(pk__in=batch).order_by("pk"):
        try:
            if secrets.seal_again(secret):
                changed.append(secret)
        except secrets.SecretUnreadable:
            unreadable.append(secret.name)
    Secret.objects.bulk_update(changed, ["sealed"])
    return len(changed)
