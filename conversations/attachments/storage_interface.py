"""The interface that attachments need of a storage. All of it blocks; see `io_threads`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Stat:
    """The data of a file's response: bytes, a strong entity tag with its quotes, and its time."""

    size: int
    etag: str
    modified: datetime


class Reader(Protocol):
    """An open file or S3 body."""

    def read(self, count: int, /) -> bytes: ...

    def close(self) -> None: ...


class Storage(Protocol):
    """The interface that attachments need of a storage."""

    def save(self, path: str, file: Path, mime_type: str) -> None:
        """Store the file under this path, whole or not at all; a local `file` is moved away."""

    def stat(self, path: str) -> Stat | None:
        """Return None where there is no such file."""

    def open(self, path: str, start: int) -> Reader | None:
        """Return the bytes from `start`; None where there is no such file."""

    def delete(self, paths: Sequence[str]) -> None:
        """Delete files; missing ones count as deleted."""

    def delete_below(self, prefix: str) -> int:
        """Delete all files whose path begins with `prefix`, which ends in a slash. Return the number."""

    def direct_url(self, path: str, mime_type: str) -> str | None:
        """Return a short-lived address of the storage's own, None where it has none."""
