"""`manage.py beat`: schedule the periodic tasks; run exactly one.

`config.process.command_line` runs it without this class, and so without Django's apps; the class is what
`manage.py help` shows.
"""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from config.process.celery_beat import run_beat


class Command(BaseCommand):
    help = "Schedule the periodic tasks of the workers (run exactly one)."
    requires_system_checks = ()

    def handle(self, *_: Any, **__: Any) -> None:
        run_beat()
