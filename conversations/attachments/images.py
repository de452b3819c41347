"""From an upload to an image that may be stored: known kind, bounded size, decodable, without metadata.

Blocking and heavy: call it by `run_decoding`. The decoded bytes are the stored ones.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Final

from django.conf import settings
from PIL import Image

from config.errors import UnsupportedMedia
from conversations.attachments import gif, jpeg, png, webp
from conversations.attachments.image_segments import Anatomy, Malformed, Source
from conversations.attachments.object_names import MAGIC_BYTES, FileKind, kind_of

_ANATOMIES: Final[dict[str, Callable[[Source], Anatomy]]] = {
    "JPEG": jpeg.read_anatomy,
    "PNG": png.read_anatomy,
    "WEBP": webp.read_anatomy,
    "GIF": gif.read_anatomy,
}
_UNDECODABLE: Final = (  # errors of Pillow's decoders on hostile files
    OSError,
    SyntaxError,
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    AttributeError,
    EOFError,
    MemoryError,
    RuntimeError,
    struct.error,
    zlib.error,
    Image.DecompressionBombError,
    Image.DecompressionBombWarning,
)


def check_head(head: bytes) -> FileKind:
    """Return the kind that the first bytes show. Raise UnsupportedMedia for any other."""
    kind = kind_of(head[:MAGIC_BYTES])
    if kind is None:
        raise UnsupportedMedia
    return kind


def clean(original: Path, target: Path) -> FileKind:
    """Write the kept parts of an image to `target` and decode it once. Return its kind.

    Raise UnsupportedMedia for a file that is no image, is damaged or has too many pixels.
    """
    with original.open("rb") as file:
        kind = check_head(file.read(MAGIC_BYTES))
        source = Source(file, original.stat().st_size)
        try:
            found = _ANATOMIES[kind.name](source)
        except Malformed:
            raise _damaged() from None
        if found.pixels > max_pixels():
            raise _too_many_pixels()
        with target.open("xb") as written:
            source.copy(found.pieces, written)
    _decode(target, kind)
    return kind


def max_pixels() -> int:
    return int(settings.ATTACHMENT_MAX_MEGAPIXELS) * 1_000_000


def _decode(path: Path, kind: FileKind) -> None:
    with path.open("rb") as file:
        try:
            _load(file, kind)
        except _UNDECODABLE:
            raise _damaged() from None


def _load(file: BinaryIO, kind: FileKind) -> None:
    with Image.open(file, formats=[kind.name]) as image:
        if image.width * image.height > max_pixels():
            raise _too_many_pixels()
        image.draft(
            None, (image.width // 8 or 1, image.height // 8 or 1)
        )  # a JPEG needs 1/64 of the memory
        image.load()


def _damaged() -> UnsupportedMedia:
    return UnsupportedMedia("The image is damaged: it cannot be decoded.")


def _too_many_pixels() -> UnsupportedMedia:
    return UnsupportedMedia(
        f"The image has too many pixels: at most {settings.ATTACHMENT_MAX_MEGAPIXELS} million are taken."
    )
