"""A JPEG file by its markers (ITU T.81 annex B): pixels and colours stay, other segments go."""

from __future__ import annotations

import re
import struct
from typing import Final

from conversations.attachments.image_segments import (
    Anatomy,
    Malformed,
    Piece,
    Source,
    Span,
    join_spans,
    upright_exif,
)

_START: Final = 2
_SOS, _EOI, _APP0, _APP1, _APP2, _APP14, _COMMENT = 0xDA, 0xD9, 0xE0, 0xE1, 0xE2, 0xEE, 0xFE
_FRAMES: Final = set(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_EXIF: Final = b"Exif\0\0"
_KEPT_APPS: Final = {_APP0: b"JFIF\0", _APP2: b"ICC_PROFILE\0", _APP14: b"Adobe"}
_MARKER: Final = re.compile(rb"\xff[^\x00\xff\xd0-\xd7]")
_WINDOW: Final = 65_536
_MOST_SCANS: Final = 100  # a progressive file of thousands of scans costs minutes to decode


def read_anatomy(source: Source) -> Anatomy:
    """Raise Malformed for a file that does not reach its end marker."""
    kept: list[Piece] = []
    size, exif, scans, place = (0, 0), b"", 0, _START
    while True:
        marker, place = _marker(source, place)
        if marker == _EOI:
            break
        end = place + 2 + _length(source, place + 2)
        if marker in _FRAMES:
            size = _size(source, place, size)
        if marker == _APP1 and not exif and source.read_at(place + 4, min(6, end - place - 4)) == _EXIF:
            exif = source.read_exif(place + 4 + len(_EXIF), end)
        if marker == _SOS:
            scans += 1
            end = _end_of_scan(source, end)
        if scans > _MOST_SCANS:
            raise Malformed
        if _is_kept(source, marker, Span(place + 4, end)):
            kept.append(Span(place, end))
        place = end
    if not scans or 0 in size:
        raise Malformed
    pieces = [Span(0, _START), *_orientation(exif), *kept, Span(place, place + 2)]
    return Anatomy(*size, join_spans(pieces))


def _marker(source: Source, place: int) -> tuple[int, int]:
    """Return the marker here and its place; any number of fill bytes may stand before it."""
    while (two := source.read_at(place, 2)) == b"\xff\xff":
        place += 1
    if two[0] != 0xFF or two[1] < 0xC0 or 0xD0 <= two[1] <= 0xD8:
        raise Malformed
    return two[1], place


def _length(source: Source, place: int) -> int:
    (length,) = struct.unpack(">H", source.read_at(place, 2))
    if length < 2:
        raise Malformed
    return int(length)


def _size(source: Source, place: int, known: tuple[int, int]) -> tuple[int, int]:
    height, width = struct.unpack(">HH", source.read_at(place + 5, 4))
    if known != (0, 0):
        raise Malformed  # a second frame: a hierarchical file, which no program writes
    return width, height


def _end_of_scan(source: Source, place: int) -> int:
    """Return the place of the next marker that is no restart and no stuffed byte."""
    while place < source.size:
        window = source.read_at(place, min(_WINDOW, source.size - place))
        found = _MARKER.search(window)
        if found:
            return place + found.start()
        place += max(1, len(window) - 1)
    raise Malformed


def _is_kept(source: Source, marker: int, data: Span) -> bool:
    if marker in _KEPT_APPS:
        wanted = _KEPT_APPS[marker]
        return len(data) >= len(wanted) and source.read_at(data.start, len(wanted)) == wanted
    return marker < _APP0 or 0xF0 <= marker < _COMMENT


def _orientation(exif: bytes) -> list[Piece]:
    upright = upright_exif(exif)
    if not upright:
        return []
    return [struct.pack(">BBH", 0xFF, _APP1, 2 + len(_EXIF) + len(upright)) + _EXIF + upright]
