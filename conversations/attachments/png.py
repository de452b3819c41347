"""A PNG file by its chunks (W3C PNG, third edition): chunks that colour and animate pixels stay."""

from __future__ import annotations

import struct
import zlib
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

_START: Final = 8
_KEPT: Final = frozenset(
    b"IHDR PLTE IDAT IEND tRNS cHRM gAMA iCCP sBIT sRGB cICP mDCV cLLI bKGD hIST pHYs sPLT "
    b"acTL fcTL fdAT".split()
)


def read_anatomy(source: Source) -> Anatomy:
    """Raise Malformed for a file that does not begin with its header or reach its end chunk."""
    kept: list[Piece] = []
    exif, place, kind = b"", _START, b""
    width, height = _size(source)
    while kind != b"IEND":
        length, kind = struct.unpack(">I4s", source.read_at(place, 8))
        end = place + 12 + length
        if end > source.size:
            raise Malformed
        if kind == b"eXIf":
            exif = source.read_exif(place + 8, end - 4)
        if kind in _KEPT:
            kept.append(Span(place, end))
        place = end
    return Anatomy(width, height, join_spans([Span(0, _START), kept[0], *_orientation(exif), *kept[1:]]))


def _size(source: Source) -> tuple[int, int]:
    length, kind, width, height = struct.unpack(">I4sII", source.read_at(_START, 16))
    if (length, kind) != (13, b"IHDR") or not width or not height:
        raise Malformed
    return width, height


def _orientation(exif: bytes) -> list[Piece]:
    upright = upright_exif(exif)
    if not upright:
        return []
    chunk = b"eXIf" + upright
    return [struct.pack(">I", len(upright)) + chunk + struct.pack(">I", zlib.crc32(chunk))]
