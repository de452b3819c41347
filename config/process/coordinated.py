"""What a process that is one of several needs."""

from __future__ import annotations

from django.conf import settings
from django.core.management.base import CommandError

from config.process import installation


def require_coordination(command: str) -> None:
    """Raise CommandError if the processes could not tell each other anything."""
    if settings.COORDINATION == "memory":
        raise CommandError(
            f"`{command}` is one process of several, and COORDINATION=memory connects none. Leave "
            f"COORDINATION unset, or start everything in one process with `{installation.UP}`."
        )
