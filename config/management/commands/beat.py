"""`manage.py beat`: the clock of the periodic chores; exactly one of these should run."""

from __future__ import annotations

import signal
import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from config.wakeups import Beat, require_broker


class Command(BaseCommand):
    help = "Send the periodic chores to the workers (run one)."
    requires_system_checks = ()

    def handle(self, *_: Any, **__: Any) -> None:
        require_broker("beat")
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        Beat(settings.VAR_DIR).run()
