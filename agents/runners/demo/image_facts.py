"""The offline model's sentence about an image: its format and its size."""

from __future__ import annotations

from io import BytesIO

from msgspec import Struct
from PIL import Image


class Description(Struct, frozen=True):
    """One sentence about an image, in both languages."""

    in_chinese: str
    in_english: str


def describe(data: bytes | None) -> Description:
    """Return format, pixels and bytes of an image, read from its header only."""
    if data is None:
        return Description("这张图片已经不在了。", "This image is no longer there.")
    try:
        with Image.open(BytesIO(data)) as image:
            kind, (width, height) = image.format or "?", image.size
    except (OSError, ValueError, Image.DecompressionBombError):
        return Description("这张图片无法读取。", "This image cannot be read.")
    size = f"{len(data):,}"
    return Description(
        f"这是一张 {kind} 图片，{width} × {height} 像素，{size} 字节。",
        f"This is a {kind} image of {width} × {height} pixels, {size} bytes.",
    )
