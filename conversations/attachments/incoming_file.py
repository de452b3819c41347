"""A file during its upload, of any accepted kind: an image or a text, as its first bytes show.

An image is written to disk as it arrives, as an upload is; a text is small and stays in memory.
"""

from __future__ import annotations

import base64
import binascii
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import NamedTuple
from uuid import UUID

from config.errors import InvalidRequest
from conversations.attachments import documents, files
from conversations.attachments.object_names import (
    MAGIC_BYTES,
    NOT_GIVEN,
    StoredObject,
    kind_of,
    normalize_path_part,
)
from conversations.attachments.spool import Spool


class StoredFile(NamedTuple):
    """A stored file; of a text also its bytes."""

    stored: StoredObject
    size: int = 0


class IncomingFile(AbstractAsyncContextManager["IncomingFile"]):
    """Takes bytes as they arrive; with `texts` those of a text too."""

    def __init__(self, *, texts: bool) -> None:
        self._texts = texts
        self._begun = bytearray()
        self._judged = False
        self._image: Spool | None = None
        self._open = AsyncExitStack()

    async def __aexit__(self, *error: object) -> None:
        await self._open.aclose()

    async def write(self, data: bytes) -> None:
        """Take more. Raise PayloadTooLarge, UnsupportedMedia, StorageFull, `unsupported_file`."""
        if self._image is not None:
            await self._image.write(data)
            return
        self._begun += data
        if self._judged:
            documents.check_size(len(self._begun))
        elif len(self._begun) >= MAGIC_BYTES:
            await self._judge()

    async def _judge(self) -> None:
        """Determine the kind by the first bytes."""
        head = bytes(self._begun[:MAGIC_BYTES])
        self._judged = True
        if self._texts and kind_of(head) is None:
            documents.check_head(head)
            documents.check_size(len(self._begun))
            return
        self._image = await self._open.enter_async_context(Spool())
        await self._image.write(bytes(self._begun))
        self._begun.clear()

    async def store(self, *, owner_id: UUID, thread: str, run: str, charset: str = "") -> StoredFile:
        """Store the received file, with the checks and errors of an upload.

        A thread or run that cannot be part of a path is left out of it.
        """
        if not self._judged:
            await self._judge()
        thread, run = _path_part(thread), _path_part(run)
        if self._image is not None:
            return StoredFile(
                await files.store_upload(self._image, owner_id=owner_id, thread=thread, run=run)
            )
        raw = bytes(self._begun)
        return StoredFile(
            *await documents.store_text(raw, charset=charset, owner_id=owner_id, thread=thread, run=run)
        )


def decode_base64(data: str) -> bytes:
    """Return the decoded bytes. Raise InvalidRequest (`invalid_binary_data`) if they are no base64."""
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidRequest("binary content data must be base64", code="invalid_binary_data") from None


def _path_part(text: str) -> str:
    try:
        return normalize_path_part(text, field="")
    except InvalidRequest:
        return NOT_GIVEN
