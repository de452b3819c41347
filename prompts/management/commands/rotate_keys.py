"""`manage.py rotate_keys`: seal every stored key again with the newest of SEALING_KEYS.

Run it after adding a new key in front; repeating it is safe. It prints names and counts, never a key.
"""

from __future__ import annotations

from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from config.audit import key_openings
from config.database import run_sync
from prompts.endpoints import secrets
from prompts.models import Secret

_BATCH: Final = 200


class Command(BaseCommand):
    """Seal keys again in batches of one transaction each; an interrupted run can be repeated."""

    help = "Seal every stored key again with the newest of SEALING_KEYS."

    def handle(self, *args: Any, **options: Any) -> None:
        total, seen, sealed, last = Secret.objects.count(), 0, 0, 0
        unreadable: list[str] = []
        while batch := _batch_after(last):
            sealed += _reseal(batch, unreadable)
            seen, last = seen + len(batch), batch[-1]
            self.stdout.write(f"{seen} of {total} keys checked, {sealed} sealed again")
        run_sync(key_openings.write())
        self.stdout.write(
            f"Done: {sealed} sealed again, {seen - sealed - len(unreadable)} already up to date."
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
    """Seal these again under row locks (staff may change one); return the number of changes."""
    changed = []
    for secret in Secret.objects.select_for_update().filter(pk__in=batch).order_by("pk"):
        try:
            if secrets.reseal(secret):
                changed.append(secret)
        except secrets.SecretUnreadable:
            unreadable.append(secret.name)
    Secret.objects.bulk_update(changed, ["sealed"])
    return len(changed)
