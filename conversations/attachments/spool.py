"""An upload while it is being judged: a private file on the disk of VAR_DIR, gone afterwards.

It lies beside the local storage so that keeping it is a rename, which is whole or not at all.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final, Self
from uuid import uuid4

from django.conf import settings

from config.http.streamed_body import FILE_LIMIT, too_large
from conversations.attachments import images
from conversations.attachments.io_threads import run_file_io
from conversations.attachments.object_names import MAGIC_BYTES

_AT_ONCE: Final = 256 * 1024
_STALE_S: Final = 3_600


class Spool:
    """Takes bytes as they arrive, and refuses them as soon as they are no image or too many."""

    def __init__(self) -> None:
        self.size = 0
        self.path = spool_folder() / f"{uuid4().hex}.sent"
        self.cleaned = self.path.with_suffix(".clean")
        self._pending = bytearray()
        self._checked = False

    async def __aenter__(self) -> Self:
        await run_file_io(_create_file, self.path)
        return self

    async def __aexit__(self, *error: object) -> None:
        # by itself, not on a thread: a cancelled upload could not wait for one
        self.path.unlink(missing_ok=True)
        self.cleaned.unlink(missing_ok=True)

    async def write(self, data: bytes) -> None:
        """Take more. Raise PayloadTooLarge, UnsupportedMedia, StorageFull."""
        self.size += len(data)
        if self.size > FILE_LIMIT:
            raise too_large()
        self._pending += data
        if not self._checked and self.size >= MAGIC_BYTES:
            images.check_head(bytes(self._pending[:MAGIC_BYTES]))
            self._checked = True
        if len(self._pending) >= _AT_ONCE:
            await self.flush()

    async def flush(self) -> None:
        """Write everything taken to the file."""
        pending, self._pending = self._pending, bytearray()
        await run_file_io(_append, self.path, pending)


def spool_folder() -> Path:
    return Path(settings.VAR_DIR) / "attachments" / ".incoming"


def write_file(data: bytes) -> Path:
    """Return a private file there that holds these bytes; the caller deletes it."""
    file = spool_folder() / f"{uuid4().hex}.made"
    _create_file(file)
    file.write_bytes(data)
    return file


def delete_stale() -> None:
    """Delete the files that a killed process has left behind."""
    old = time.time() - _STALE_S
    for path in spool_folder().glob("*.*"):
        if path.stat().st_mtime < old:
            path.unlink(missing_ok=True)


def _create_file(path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _append(path: Path, data: bytearray) -> None:
    with path.open("ab") as file:
        file.write(data)
