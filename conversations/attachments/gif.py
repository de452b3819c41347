"""A GIF file by its blocks (GIF89a): frames and their timing stay, comments and foreign data go."""

from __future__ import annotations

import struct
from typing import Final

from conversations.attachments.image_segments import Anatomy, Malformed, Piece, Source, Span, join_spans

_TRAILER, _EXTENSION, _IMAGE = 0x3B, 0x21, 0x2C
_GRAPHIC_CONTROL, _APPLICATION = 0xF9, 0xFF
_KEPT_APPLICATIONS: Final = (b"NETSCAPE2.0", b"ANIMEXTS1.0", b"ICCRGBG1012")


def read_anatomy(source: Source) -> Anatomy:
    """Raise Malformed for blocks that do not fit the file, and for a file without a frame."""
    width, height, flags = struct.unpack("<HHB", source.read_at(6, 5))
    place = 13 + _colours(flags)
    kept: list[Piece] = [Span(0, place)]
    frames = 0
    while (kind := source.read_at(place, 1)[0]) != _TRAILER:
        if kind == _IMAGE:
            left, top, wide, high, flags = struct.unpack("<HHHHB", source.read_at(place + 1, 9))
            width, height = max(width, left + wide), max(height, top + high)
            end = _end_of_blocks(source, place + 11 + _colours(flags))
            kept.append(Span(place, end))
            frames += 1
        elif kind == _EXTENSION:
            end = _end_of_blocks(source, place + 2)
            if _is_kept(source, place):
                kept.append(Span(place, end))
        else:
            raise Malformed
        place = end
    if not frames or not width or not height:
        raise Malformed
    return Anatomy(width, height, join_spans([*kept, Span(place, place + 1)]))


def _colours(flags: int) -> int:
    """Return the size of a colour table in bytes."""
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0


def _end_of_blocks(source: Source, place: int) -> int:
    while size := source.read_at(place, 1)[0]:
        place += 1 + size
    return place + 1


def _is_kept(source: Source, place: int) -> bool:
    label, size = source.read_at(place + 1, 2)
    if label == _APPLICATION:
        return size == 11 and source.read_at(place + 3, 11) in _KEPT_APPLICATIONS
    return label == _GRAPHIC_CONTROL
