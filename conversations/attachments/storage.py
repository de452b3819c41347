"""Where files lie, behind one protocol: a local folder or S3, as STORAGES["attachments"] says.

Everything here blocks: call it through `threads.on_files`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from django.core.files.storage import FileSystemStorage, storages

from config.file_storage import ALIAS


@dataclass(frozen=True, slots=True)
class Stat:
    """What a file's response needs: bytes, a strong entity tag with its quotes, and its time."""

    size: int
    etag: str
    modified: datetime


class Reader(Protocol):
    """An open file or S3 body."""

    def read(self, count: int, /) -> bytes: ...

    def close(self) -> None: ...


class Storage(Protocol):
    """What attachments ask of storage."""

    def save(self, path: str, file: Path, mime_type: str) -> None:
        """Keep the file under this path, whole or not at all; a local `file` is moved away."""

    def stat(self, path: str) -> Stat | None:
        """None where there is no such file."""

    def open(self, path: str, start: int) -> Reader | None:
        """The bytes from `start`; None where there is no such file."""

    def delete(self, paths: Iterable[str]) -> None:
        """Delete files; those that are not there are gone already."""

    def delete_below(self, prefix: str) -> int:
        """Delete everything whose path begins with `prefix`, which ends in a slash; how many."""

    def address(self, path: str, mime_type: str) -> str | None:
        """A short-lived address of the storage's own, None where it has none."""


def storage() -> Storage:
    """The storage that is configured."""
    backend = storages[ALIAS]
    if isinstance(backend, FileSystemStorage):
        from conversations.attachments.local import LocalStorage

        return LocalStorage(backend)
    from conversations.attachments.s3 import S3Storage

    return S3Storage(backend)
