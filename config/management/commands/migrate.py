"""`manage.py migrate`: Django's, over DIRECT_DATABASE_URL if that is set.

A migration may take longer than a statement of Parley, and builds indexes outside of transactions. So it
is refused through a pooler in transaction mode.
"""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError
from django.core.management.commands import migrate

from config import database


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        try:
            with database.django_session():
                super().handle(*args, **options)
        except database.UnusablePooler as refusal:
            raise CommandError(str(refusal)) from None
