"""Files in a local folder, through Django's FileSystemStorage: for one host, or a shared disk."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from django.core.files import File
from django.core.files.storage import FileSystemStorage

from conversations.attachments.storage_interface import Reader, Stat


class LocalStorage:
    """`Storage` on a folder."""

    def __init__(self, backend: FileSystemStorage) -> None:
        self._backend = backend

    def save(self, path: str, file: Path, mime_type: str) -> None:
        with file.open("rb") as opened:
            os.fsync(opened.fileno())  # an acknowledged file is on disk
            moved = File(opened, str(file))
            # Django moves a file whose path is known, instead of copying it
            moved.temporary_file_path = lambda: str(file)  # type: ignore[attr-defined]
            try:
                self._backend.save(path, moved)
            except FileNotFoundError:  # its folder was just deleted for being empty
                self._backend.save(path, moved)

    def stat(self, path: str) -> Stat | None:
        try:
            found = os.stat(self._backend.path(path))
        except (FileNotFoundError, NotADirectoryError):
            return None
        return Stat(
            found.st_size,
            f'"{found.st_mtime_ns:x}-{found.st_size:x}"',
            datetime.fromtimestamp(int(found.st_mtime), UTC),
        )

    def open(self, path: str, start: int) -> Reader | None:
        try:
            file = open(self._backend.path(path), "rb")  # noqa: SIM115 - the caller closes it
        except (FileNotFoundError, NotADirectoryError):
            return None
        file.seek(start)
        return file

    def delete(self, paths: Sequence[str]) -> None:
        for path in paths:
            with suppress(FileNotFoundError, NotADirectoryError):
                os.unlink(self._backend.path(path))
            self._drop_empty(Path(self._backend.path(path)).parent)

    def delete_below(self, prefix: str) -> int:
        folder = Path(self._backend.path(prefix))
        count = sum(len(names) for _, _, names in os.walk(folder))
        with suppress(FileNotFoundError):
            shutil.rmtree(folder)
        self._drop_empty(folder.parent)
        return count

    def direct_url(self, path: str, mime_type: str) -> str | None:
        return None

    def _drop_empty(self, folder: Path) -> None:
        """Delete empty folders, up to the storage's own."""
        root = Path(self._backend.location)
        with suppress(OSError):
            while folder != root and folder.is_relative_to(root):
                folder.rmdir()
                folder = folder.parent
