"""`manage.py beat`: schedule the periodic tasks; run exactly one."""

from __future__ import annotations

import signal
import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from config.process.celery_threads import Beat, require_broker


class Command(BaseCommand):
    help = "Schedule the periodic tasks of the workers (run exactly one)."
    requires_system_checks = ()

    def handle(self, *_: Any, **__: Any) -> None:
        require_broker("beat")
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        Beat(settings.VAR_DIR).run()
