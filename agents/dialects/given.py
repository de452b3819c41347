"""What clients of item-based wires give in their own ways: images as URLs, threads as sessions."""

from __future__ import annotations

import re
from typing import Final

from agents.requests import Upload
from config.errors import InvalidRequest

MOST_IMAGES: Final = 8
_DATA: Final = re.compile(
    r"data:(image/[a-z0-9.+-]+)?(?:;[^,;]+)*;base64,(.*)", re.DOTALL | re.IGNORECASE
)


def upload(url: str) -> Upload:
    """The image of a URL; InvalidRequest for data that is no base64 image.

    Whether an address is one of ours is checked where the caller is known. We fetch nothing from
    anywhere else: that would let any client look into our network.
    """
    if url[:5].lower() != "data:":
        return Upload("", url)
    found = _DATA.fullmatch(url)
    if found is None:
        raise InvalidRequest(
            "image_url must be a base64 data: URL of an image", code="invalid_image_url"
        )
    return Upload(found[1] or "", data=found[2])


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
