"""A WebP file by its chunks (RFC 9649): drawn chunks stay, Exif and XMP go."""

from __future__ import annotations

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

_START: Final = 12
_KEPT: Final = {b"VP8 ", b"VP8L", b"ALPH", b"ANIM", b"ANMF", b"ICCP"}
_HAS_EXIF: Final = 0x08
_HAS_XMP: Final = 0x04


def read_anatomy(source: Source) -> Anatomy:
    """Raise Malformed for chunks that do not fit the file, and for a file without an image."""
    (claimed,) = struct.unpack("<I", source.read_at(4, 4))
    stop, place = claimed + 8, _START
    if stop > source.size:
        raise Malformed
    kept: list[Piece] = []
    sizes: list[tuple[int, int]] = []
    extended, exif = b"", b""
    while place < stop:
        kind, count = struct.unpack("<4sI", source.read_at(place, 8))
        end = place + 8 + count + count % 2
        if end > stop:
            raise Malformed
        if kind in _SIZES and count >= 10:
            sizes.append(_SIZES[kind](source.read_at(place + 8, 10)))
        if kind == b"VP8X" and count == 10:
            extended = source.read_at(place, 18)
        if kind == b"EXIF":
            exif = source.read_exif(place + 8, place + 8 + count)
        if kind in _KEPT:
            kept.append(Span(place, end))
        place = end
    if not sizes or not kept:
        raise Malformed
    width, height = (max(of) for of in zip(*sizes, strict=True))
    return Anatomy(width, height, _file(extended, kept, upright_exif(exif) if extended else b""))


def _file(extended: bytes, kept: list[Piece], exif: bytes) -> tuple[Piece, ...]:
    pieces = list(kept)
    if extended:
        flags = extended[8] & ~(_HAS_EXIF | _HAS_XMP) | (_HAS_EXIF if exif else 0)
        pieces.insert(0, extended[:8] + bytes([flags]) + extended[9:])
    if exif:
        pieces.append(struct.pack("<4sI", b"EXIF", len(exif)) + exif + b"\0" * (len(exif) % 2))
    header = struct.pack("<4sI4s", b"RIFF", 4 + sum(map(len, pieces)), b"WEBP")
    return join_spans([header, *pieces])


def _canvas(head: bytes) -> tuple[int, int]:
    return int.from_bytes(head[4:7], "little") + 1, int.from_bytes(head[7:10], "little") + 1


def _lossy(head: bytes) -> tuple[int, int]:
    width, height = struct.unpack("<HH", head[6:10])
    return width & 0x3FFF, height & 0x3FFF


def _lossless(head: bytes) -> tuple[int, int]:
    bits = int.from_bytes(head[1:5], "little")
    return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1


_SIZES: Final = {b"VP8X": _canvas, b"VP8 ": _lossy, b"VP8L": _lossless}
