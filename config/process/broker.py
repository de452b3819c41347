"""The broker that connects several processes."""

from __future__ import annotations

from django.conf import settings
from django.core.management.base import CommandError

from config.process import installation


def require_broker(command: str) -> None:
    """Raise CommandError if there is no broker that connects several processes."""
    if settings.EMBEDDED:
        raise CommandError(
            f"`{command}` is one process of several, which meet over a broker: set REDIS_URL (or "
            f"CELERY_BROKER_URL), or start everything in one process with `{installation.UP}`."
        )
