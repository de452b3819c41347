"""`manage.py doctor`: what is configured, what it reaches, what is unsafe, and the fix for each.

`config.process.command_line` has collected the refused settings before this runs, so a wrong setting
stands on the screen too, and everything else is looked at with its default.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandParser

from config.doctor import (
    database_report,
    provider_report,
    safety_report,
    screen,
    service_report,
    settings_report,
)
from config.doctor.findings import Finding, Report

_REPORTS: Final[dict[str, Report]] = {
    "settings": settings_report.report,
    "database": database_report.report,
    "services": service_report.report,
    "providers": provider_report.report,
    "safety": safety_report.report,
}


class Command(BaseCommand):
    help = (
        "Say what is configured, what it reaches, what is unsafe, and the fix. Exit with 1 for a fault."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="for machines")

    def handle(self, *args: Any, **options: Any) -> None:
        logging.disable(logging.CRITICAL)  # the findings say it
        try:
            findings = [one for group, report in _REPORTS.items() for one in _guarded(group, report)]
        finally:
            logging.disable(logging.NOTSET)
        self.stdout.write(screen.render_json(findings) if options["json"] else screen.render(findings))
        if any(one.state == "fault" for one in findings):
            sys.exit(1)


def _guarded(group: str, report: Report) -> Iterator[Finding]:
    """Yield a report's findings; a report that breaks is a finding too, for the others must be seen."""
    try:
        yield from report()
    except Exception as error:
        text = f"this look itself broke ({type(error).__name__})"
        yield Finding(group, "doctor", "fault", text, "Please report it: it is a defect of Parley.")
