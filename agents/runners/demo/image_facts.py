"""The offline model's sentence about an image: its format and its size."""

from __future__ import annotations

from io import BytesIO

from PIL import Image


def describe(data: bytes | None, *, chinese: bool) -> str:
    """Return a sentence with format, pixels and bytes of an image, read from its header only."""
    if data is None:
        return "这张图片已经不在了。" if chinese else "This image is no longer there."
    try:
        with Image.open(BytesIO(data)) as image:
            kind, (width, height) = image.format or "?", image.size
    except (OSError, ValueError, Image.DecompressionBombError):
        return "这张图片无法读取。" if chinese else "This image cannot be read."
    if chinese:
        return f"这是一张 {kind} 图片，{width} × {height} 像素，{len(data):,} 字节。"
    return f"This is a {kind} image of {width} × {height} pixels, {len(data):,} bytes."
