"""The pooler before the database, looked at before a process starts."""

from __future__ import annotations

from django.core.management.base import CommandError
from psycopg import OperationalError

from config import database


def require_usable_pooler() -> None:
    """Raise CommandError if a pooler is before the database that does not give what Parley needs.

    A database that does not answer is no reason: the process waits for it, and looks again then.
    """
    try:
        database.connect().close()
    except database.UnusablePooler as refusal:
        raise CommandError(str(refusal)) from None
    except OperationalError:
        return
