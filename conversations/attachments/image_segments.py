"""Shared parts of the walkers over image files: the source, the parts to keep, and the orientation.

A stored image is the sent one without data beyond the picture: positions, dates, serial
numbers, thumbnails, comments, and bytes hidden behind the end. Coded pixels are copied as they
are, byte for byte; of Exif only the orientation stays.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import BinaryIO, Final

from PIL import Image

MOST_STEPS: Final = 100_000  # of a walk: more blocks than that are an attack, not a picture
_ORIENTATION: Final = 0x0112
_LONGEST_EXIF: Final = 65_536
_COPY: Final = 256 * 1024


class Malformed(Exception):
    """The file is not of the kind that its first bytes show."""


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes of the source, to be copied as they are."""

    start: int
    end: int

    def __len__(self) -> int:
        return self.end - self.start


Piece = Span | bytes


@dataclass(frozen=True, slots=True)
class Anatomy:
    """The size in pixels that a file claims, and the parts to keep."""

    width: int
    height: int
    pieces: tuple[Piece, ...]

    @property
    def pixels(self) -> int:
        return self.width * self.height


class Source:
    """An image file, read in small pieces."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self.size = size
        self._file = file
        self._steps = 0

    def read_at(self, start: int, count: int) -> bytes:
        """Return exactly these bytes. Raise Malformed where the file ends before."""
        self._steps += 1
        if self._steps > MOST_STEPS or start + count > self.size:
            raise Malformed
        self._file.seek(start)
        return self._file.read(count)

    def read_exif(self, start: int, end: int) -> bytes:
        """Return an Exif block; b"" where it is longer than any camera writes."""
        return self.read_at(start, end - start) if end - start <= _LONGEST_EXIF else b""

    def copy(self, pieces: Iterable[Piece], target: BinaryIO) -> None:
        for piece in pieces:
            if isinstance(piece, bytes):
                target.write(piece)
                continue
            self._file.seek(piece.start)
            left = len(piece)
            while left:
                some = self._file.read(min(left, _COPY))
                target.write(some)
                left -= len(some)


def join_spans(pieces: Iterable[Piece]) -> tuple[Piece, ...]:
    """Return the same with neighbouring spans joined, so that a plain file is a single span."""
    whole: list[Piece] = []
    for piece in pieces:
        last = whole[-1] if whole else None
        if isinstance(piece, Span) and isinstance(last, Span) and last.end == piece.start:
            whole[-1] = Span(last.start, piece.end)
        else:
            whole.append(piece)
    return tuple(whole)


def upright_exif(exif: bytes) -> bytes:
    """Return a TIFF block with this one's orientation alone; b"" where it is the usual one."""
    made = Image.Exif()
    try:
        made.load(exif)
        orientation = made.get(_ORIENTATION)
    except (OSError, SyntaxError, ValueError, TypeError, LookupError, OverflowError, struct.error):
        return b""
    if orientation not in range(2, 9):
        return b""
    kept = Image.Exif()
    kept[_ORIENTATION] = orientation
    return kept.tobytes().removeprefix(b"Exif\0\0")
