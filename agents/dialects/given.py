"""What clients of item-based wires give in their own ways: images as URLs, threads as sessions."""

from __future__ import annotations

import re
from typing import Final

from agents.requests import Upload
from config.errors import InvalidRequest

MOST_IMAGES: Final = 8
_IMAGE_TYPE: Final = re.compile(r"(?:image/[a-z0-9.+-]+)?", re.IGNORECASE)


def inline(url: str) -> tuple[str, str] | None:
    """The media type and the base64 of a `data:` URL (RFC 2397); None for any other text."""
    head, comma, data = url.partition(",")
    if not comma or head[:5].lower() != "data:" or head[-7:].lower() != ";base64":
        return None
    return head[5:].partition(";")[0], data


def upload(url: str) -> Upload:
    """The image of a URL; InvalidRequest for data that is no base64 image.

    Whether an address is one of ours is checked where the caller is known. We fetch nothing from
    anywhere else: that would let any client look into our network.
    """
    if url[:5].lower() != "data:":
        return Upload("", url)
    found = inline(url)
    if found is None or not _IMAGE_TYPE.fullmatch(found[0]):
        raise InvalidRequest(
            "image_url must be a base64 data: URL of an image", code="invalid_image_url"
        )
    return Upload(found[0], data=found[1])


def check_count(uploads: int) -> None:
    """InvalidRequest for more images in a message than we take."""
    if uploads > MOST_IMAGES:
        raise InvalidRequest(
            f"A message may carry at most {MOST_IMAGES} images.", code="too_many_images"
        )


def thread_of(session: str | None) -> dict[str, str]:
    """The thread that a session means: a thread's id itself, or any other name of the caller's own."""
    if not session:
        return {}
    return {"thread_id": session.lower()} if _UUID.fullmatch(session) else {"session": session}


_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
