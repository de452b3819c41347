"""Names of attachments: `agent-inputs/{user}/{thread}/{run}/{uuid}.{ext}` in our bucket.

The server chooses every part of the name, so a name that does not fit the pattern is not ours.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from uuid import UUID, uuid4

from django.conf import settings

from config.errors import InvalidRequest
from conversations.identifiers import uuid_of

NOT_GIVEN: Final = "_"
_PREFIX: Final = "agent-inputs"
_PLACE: Final = re.compile(r"[A-Za-z0-9_-]{1,128}")
_SEGMENT: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}")
_SEGMENTS: Final = 5


@dataclass(frozen=True, slots=True)
class StoredObject:
    """A file in storage."""

    bucket: str
    path: str

    @property
    def name(self) -> str:
        """Return the last part of the path."""
        return self.path.rpartition("/")[2]

    @property
    def file_id(self) -> UUID:
        """Return the id by which the file is recorded."""
        return UUID(self.name.partition(".")[0])


@dataclass(frozen=True, slots=True)
class FileKind:
    """A kind of file, and its first bytes, by which images are known."""

    name: str
    extension: str
    mime_type: str
    magic: re.Pattern[bytes]


KINDS: Final = (
    FileKind("JPEG", "jpg", "image/jpeg", re.compile(rb"\xff\xd8\xff")),
    FileKind("PNG", "png", "image/png", re.compile(rb"\x89PNG\r\n\x1a\n")),
    FileKind("WEBP", "webp", "image/webp", re.compile(rb"RIFF.{4}WEBP", re.DOTALL)),
    FileKind("GIF", "gif", "image/gif", re.compile(rb"GIF8[79]a")),
)
ARTIFACT: Final = FileKind("JSON", "json", "application/json", re.compile(rb"(?!)"))
DOCUMENT: Final = FileKind("TEXT", "txt", "text/plain", re.compile(rb"(?!)"))
MAGIC_BYTES: Final = 12
_IMAGES: Final = {kind.extension: kind.mime_type for kind in KINDS} | {"jpeg": "image/jpeg"}
_SENT: Final = _IMAGES | {DOCUMENT.extension: DOCUMENT.mime_type}
_MIME_TYPES: Final = _SENT | {ARTIFACT.extension: ARTIFACT.mime_type}


def kind_of(head: bytes) -> FileKind | None:
    """Return the kind of image that begins like this."""
    return next((kind for kind in KINDS if kind.magic.match(head)), None)


def mime_type_of(stored: StoredObject) -> str:
    """Return the type by the extension, which we chose from the bytes; "" for a foreign extension."""
    return _MIME_TYPES.get(stored.path.rpartition(".")[2], "")


def is_image(stored: StoredObject) -> bool:
    """Return whether it is an image that a client has sent."""
    return stored.path.rpartition(".")[2] in _IMAGES


def is_upload(stored: StoredObject) -> bool:
    """Return whether it is a client's image or text, and not a file of our own."""
    return stored.path.rpartition(".")[2] in _SENT


def is_artifact(stored: StoredObject) -> bool:
    """Return whether it is a tool's result."""
    return mime_type_of(stored) == ARTIFACT.mime_type


def normalize_path_part(text: str | None, *, field: str) -> str:
    """Return a thread or run as a part of the path; a UUID in its usual form, however it is written.

    Raise InvalidRequest for text that could be more than one part.
    """
    if not text:
        return NOT_GIVEN
    if not _PLACE.fullmatch(text):
        raise InvalidRequest(f"{field} must be 1 to 128 letters, digits, hyphens and underscores.")
    return str(uuid_of(text) or text)


def new_object(owner_id: UUID, *, thread: str, run: str, kind: FileKind) -> StoredObject:
    """Return an unused name; `thread` and `run` are normalized path parts."""
    path = f"{owner_prefix(owner_id)}{thread}/{run}/{uuid4()}.{kind.extension}"
    return StoredObject(settings.ATTACHMENT_BUCKET, path)


def owner_prefix(owner_id: UUID) -> str:
    """Return the prefix of all files of a user."""
    return f"{_PREFIX}/{owner_id}/"


def is_wellformed(stored: StoredObject) -> bool:
    """Return whether it is in our bucket, five parts, of our kinds: no `..`, `//`, `%`, NUL."""
    parts = stored.path.split("/")
    return (
        stored.bucket == settings.ATTACHMENT_BUCKET
        and len(parts) == _SEGMENTS
        and parts[0] == _PREFIX
        and all(map(_SEGMENT.fullmatch, parts))
        and bool(mime_type_of(stored))
    )
