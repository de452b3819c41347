"""The scan hook: ATTACHMENT_SCANNER names a callable that may refuse a file (specs §6).

It is called as `scan(path, mime_type)`, on a thread unless it is a coroutine function, and gives
None when the file may be stored, or a word for the log when it may not. What it raises refuses too:
a file that nobody has looked at is not stored.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any

import structlog
from django.conf import settings
from django.utils.module_loading import import_string

from config.errors import InvalidRequest, ParleyError, Unavailable
from conversations.attachments.io_threads import run_file_io

logger = structlog.get_logger(__name__)


async def scan(path: Path, mime_type: str) -> None:
    """Raise InvalidRequest (`attachment_refused`), or Unavailable when the scanner does not answer."""
    if not settings.ATTACHMENT_SCANNER:
        return
    finding = await _ask(import_string(settings.ATTACHMENT_SCANNER), path, mime_type)
    if finding is not None:
        logger.warning("attachment refused", finding=str(finding)[:200])
        raise InvalidRequest("The file was refused by the scanner.", code="attachment_refused")


async def _ask(scanner: Callable[[Path, str], Any], path: Path, mime_type: str) -> object:
    try:
        if iscoroutinefunction(scanner):
            return await scanner(path, mime_type)
        return await run_file_io(scanner, path, mime_type)
    except ParleyError as error:
        logger.warning("the scanner failed", error=error.error_code)
        raise _scanner_unavailable() from error
    except Exception as error:  # somebody else's code: whatever it raises, the file is not stored
        logger.exception("the scanner failed")
        raise _scanner_unavailable() from error


def _scanner_unavailable() -> Unavailable:
    return Unavailable("The scanner is away: try again.", code="scanner_unavailable", retry_after=10)
