"""Inputs in the clients' own forms: images and files by URL or inline, threads as sessions."""

from __future__ import annotations

import base64
import re
from typing import Any, Final, NamedTuple
from urllib.parse import unquote_to_bytes
from uuid import UUID

from agents.media_types import TAKEN, clean_name
from agents.requests import InputMessage, Role, Upload
from config.errors import InvalidRequest
from conversations.blocks import Layout, layout_of

MOST_FILES: Final = 8
_LONGEST_URL: Final = 8_192
_IMAGE_TYPE: Final = re.compile(r"(?:image/[a-z0-9.+-]+)?", re.IGNORECASE)
_CHARSET: Final = re.compile(r';\s*charset="?([A-Za-z0-9_.:-]{1,40})', re.IGNORECASE)
_NEVER: Final = ("audio/", "video/", "application/pdf")
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_ANY_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}")
_WEB: Final = ("https://", "http://")


class DataUrl(NamedTuple):
    """The contents of a `data:` URL (RFC 2397): its media type, its base64, its charset."""

    mime_type: str
    data: str
    charset: str = ""


class Parts:
    """The contents of one message: its texts and its files, in the order in which they were sent."""

    def __init__(self) -> None:
        self._blocks: list[str | Upload] = []

    def add(self, block: str | Upload) -> None:
        """Add the next text or file. Raise InvalidRequest for more files than a message may carry."""
        self._blocks.append(block)
        if not isinstance(block, str):
            check_count(self.uploads)

    @property
    def text(self) -> str:
        """The texts, each on a line of its own."""
        return "\n".join(block for block in self._blocks if isinstance(block, str))

    @property
    def uploads(self) -> tuple[Upload, ...]:
        return tuple(block for block in self._blocks if not isinstance(block, str))

    @property
    def layout(self) -> Layout:
        return layout_of(block if isinstance(block, str) else None for block in self._blocks)

    def message(self, role: Role, client_id: str | None = None, **more: Any) -> InputMessage:
        """Return the message with these contents; `more` are its other fields."""
        uploads, layout = self.uploads, self.layout
        return InputMessage(role, self.text, client_id, uploads=uploads, layout=layout, **more)


def parse_data_url(url: str) -> DataUrl | None:
    """Return the contents of a `data:` URL; None for any other text."""
    head, comma, data = url.partition(",")
    if not comma or head[:5].lower() != "data:":
        return None
    mime_type, charset = head[5:].partition(";")[0].strip().lower(), _CHARSET.search(head)
    if head[-7:].lower() != ";base64":
        data = base64.b64encode(unquote_to_bytes(data)).decode()
    return DataUrl(mime_type, data, charset[1] if charset else "")


def image_upload(url: str, place: str, *, mime_type: str = "") -> Upload:
    """Return the image of a URL. Raise InvalidRequest for data that is no base64 image, or a bad URL.

    Which addresses are fetched is decided where the caller is known.
    """
    if url[:5].lower() != "data:":
        return Upload(mime_type, check_url(url, place), place=place)
    found = parse_data_url(url)
    is_base64 = url.partition(",")[0][-7:].lower() == ";base64"
    if found is None or not is_base64 or not _IMAGE_TYPE.fullmatch(found.mime_type):
        raise InvalidRequest(
            "image_url must be a base64 data: URL of an image, or an address of http or https",
            code="invalid_image_url",
            param=place,
        )
    return Upload(found.mime_type, data=found.data, place=place)


def file_upload(
    place: str,
    *,
    url: str = "",
    data: str = "",
    file_id: str = "",
    name: str = "",
    mime_type: str = "",
) -> Upload:
    """Return a file of any accepted kind: by its URL, or inline, or stored here already.

    Raise InvalidRequest `file_required` unless exactly one of them is set, and `unsupported_file` for a
    kind that is never accepted.
    """
    if len([source for source in (url, data, file_id) if source]) != 1:
        raise InvalidRequest(
            f"{place} needs the file: its data, its URL or its id, one of them.",
            code="file_required",
            param=place,
        )
    name = clean_name(name)
    found = parse_data_url(url) or parse_data_url(data)
    if found is not None:
        url, data, mime_type = "", found.data, found.mime_type or mime_type
    check_kind(mime_type, place)
    url, charset = check_url(url, place) if url else "", found.charset if found else ""
    return Upload(mime_type, url, data, file_id, name, charset, takes="any", place=place)


def check_kind(mime_type: str, place: str) -> None:
    """Raise InvalidRequest for a kind that is never accepted, so that it need not be fetched first."""
    if mime_type.lower().startswith(_NEVER):
        kind = mime_type.lower().partition("/")
        raise unsupported_kind(place, "a PDF" if kind[2].startswith("pdf") else kind[0])


def unsupported_kind(place: str, what: str) -> InvalidRequest:
    """Return the error for a kind of file that is accepted nowhere; it names the accepted kinds."""
    return InvalidRequest(
        f"{place} is {what}, which is not taken here: {TAKEN}.", code="unsupported_file", param=place
    )


def check_url(url: str, place: str) -> str:
    """Return the address. Raise InvalidRequest `url_refused` if it is not http or https, or too long."""
    if not url.lower().startswith(_WEB) or len(url) > _LONGEST_URL:
        raise InvalidRequest(
            f"{place} must be an address of https (or http), of at most {_LONGEST_URL:,} characters.",
            code="url_refused",
            param=place,
        )
    return url


def check_count(uploads: tuple[Upload, ...]) -> None:
    """Raise InvalidRequest for more images and files in a message than we accept."""
    if len(uploads) <= MOST_FILES:
        return
    if all(upload.takes == "image" for upload in uploads):
        raise InvalidRequest(f"A message may carry at most {MOST_FILES} images.", code="too_many_images")
    raise InvalidRequest(f"A message may carry at most {MOST_FILES} files.", code="too_many_files")


def session_thread(session: str | None) -> dict[str, Any]:
    """Return the thread of a session: a thread's id itself, or any other name of the caller's own."""
    if not session:
        return {}
    return {"thread_id": session.lower()} if _UUID.fullmatch(session) else {"session": session}


def named_thread(thread_id: str) -> dict[str, Any]:
    """Return the thread of AG-UI's `threadId`: a thread's id, or any other name of the client's own."""
    return {"thread_id": str(UUID(thread_id))} if is_thread_id(thread_id) else {"session": thread_id}


def is_thread_id(value: object) -> bool:
    """Return whether the value is a UUID, with or without hyphens."""
    return isinstance(value, str) and _ANY_UUID.fullmatch(value) is not None
