"""Images for the tests of attachments, made on the spot: good ones, and what an attacker would send."""

from __future__ import annotations

import struct
import zlib
from io import BytesIO
from typing import Any, Final

from PIL import Image

CAMERA: Final = b"Canon EOS"
ORIENTATION: Final = 0x0112


def exif() -> Image.Exif:
    """What a phone writes: a position, a camera, and that the picture lies on its side."""
    made = Image.Exif()
    made[ORIENTATION] = 6
    made[0x010F] = CAMERA.decode()
    made.get_ifd(0x8825).update({1: "N", 2: (48.0, 8.0, 14.5), 3: "E", 4: (11.0, 34.0, 31.9)})
    return made


def picture(kind: str = "JPEG", size: tuple[int, int] = (320, 200), **options: Any) -> bytes:
    made = BytesIO()
    noise = Image.effect_noise(size, 64)
    (noise if kind == "GIF" else noise.convert("RGB")).save(made, kind, **options)
    return made.getvalue()


def large_jpeg(size: int) -> bytes:
    """A valid JPEG of exactly so many bytes: a small picture and segments that colour profiles use."""
    plain = picture()
    filling = bytearray()
    left = size - len(plain)
    while left:
        some = min(left, 65_000)
        if 0 < left - some < 18:
            some -= 18
        filling += struct.pack(">BBH", 0xFF, 0xE2, some - 2) + b"ICC_PROFILE\0".ljust(some - 4, b"\0")
        left -= some
    return plain[:2] + bytes(filling) + plain[2:]


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width: int, height: int, pixels: bytes = b"") -> bytes:
    """A PNG that claims a size, whatever is in it."""
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunks = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(pixels)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunks


def webp_canvas(width: int, height: int) -> bytes:
    """A WebP whose canvas is larger than its picture."""
    plain = picture("WEBP", exif=exif())
    place = plain.index(b"VP8X") + 12
    size = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return plain[:place] + size + plain[place + 6 :]


def many_scans(count: int) -> bytes:
    """A progressive JPEG that repeats its last scan."""
    plain = picture(progressive=True)
    last = plain.rindex(b"\xff\xda")
    return plain[:-2] + plain[last:-2] * count + plain[-2:]


SVG: Final = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'


def small_png() -> bytes:
    """A PNG of 5 × 3 pixels."""
    out = BytesIO()
    Image.new("RGB", (5, 3), "red").save(out, "PNG")
    return out.getvalue()
