"""The files of a request's messages: sent inline, by URL or by id, each stored as an attachment.

They are stored before the run is accepted, so that a worker needs no other source for them.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Final, NamedTuple
from uuid import UUID

from django.conf import settings
from msgspec.structs import replace

from agents.intake import file_fetch
from agents.intake.file_fetch import Description
from agents.media_types import clean_name, of_text
from agents.requests import Attachment, InputMessage, Upload
from config.errors import InvalidRequest, UnsupportedMedia
from conversations import attachments
from conversations.attachments import IncomingFile, StoredFile, StoredObject
from conversations.threads import artifacts

_AT_ONCE: Final = 4
_NAMELESS: Final = "file.txt"
_ID: Final = re.compile(r"(?:file-)?([0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")
_fetchers: Final = attachments.ConcurrencyLimit(
    "too_many_fetches",
    "Too many of your requests name files to fetch at once.",
    limit=64,
    limit_per_user=4,
)


class Sender(NamedTuple):
    """The owner of files, and the thread and run under which they are stored."""

    owner_id: UUID
    thread: str
    run: str


async def store_uploads(messages: tuple[InputMessage, ...], sender: Sender) -> tuple[InputMessage, ...]:
    """Return the messages with attachments in the place of their uploads.

    Raise InvalidRequest, with the upload's place as `param`, for one that is unreachable or not
    accepted.
    """
    uploads = [upload for message in messages for upload in message.uploads]
    if not uploads:
        return messages
    fetches = [upload for upload in uploads if _is_fetched(upload)]
    _check_fetches(fetches)
    with _fetchers.hold(sender.owner_id) if fetches else nullcontext():
        kept = iter(await _every(uploads, sender))
    return tuple(
        replace(
            message,
            uploads=(),
            attachments=(*message.attachments, *(next(kept) for _ in message.uploads)),
        )
        for message in messages
    )


def _is_fetched(upload: Upload) -> bool:
    return bool(upload.url) and not (upload.signed or attachments.is_signed_url(upload.url))


def _check_fetches(fetches: Sequence[Upload]) -> None:
    most = settings.FETCH_FILES
    if len(fetches) <= most:
        return
    place = fetches[most].place
    if not most:
        raise InvalidRequest(
            "Files are not fetched here: send them inline, or upload them.",
            code="url_refused",
            param=place,
        )
    raise InvalidRequest(
        f"A request may name at most {most} files to fetch.", code="too_many_files", param=place
    )


async def _every(uploads: Sequence[Upload], sender: Sender) -> list[Attachment]:
    """Store all of them, a few at a time, until the first fault; all fetches have one time limit."""
    places, until = asyncio.Semaphore(_AT_ONCE), asyncio.get_running_loop().time() + settings.FETCH_S

    async def one(upload: Upload) -> Attachment:
        async with places:
            try:
                return await _stored(upload, sender, until)
            except InvalidRequest as problem:
                if upload.place:
                    problem.facts.setdefault("param", upload.place)
                raise

    tasks = [asyncio.create_task(one(upload)) for upload in uploads]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _stored(upload: Upload, sender: Sender, until: float) -> Attachment:
    if upload.url and not _is_fetched(upload):
        return await _ours(upload, sender)
    if upload.file_id:
        return await _named(upload, sender)
    async with IncomingFile(texts=upload.takes == "any") as inbox:
        description = Description()
        if upload.url:
            async with file_fetch.open_remote(upload.url, until=until) as (description, pieces):
                async for some in pieces:
                    await inbox.write(some)
        else:
            await inbox.write(attachments.decode_base64(upload.data))
        return await _kept(inbox, upload, sender, description)


async def _kept(
    inbox: IncomingFile, upload: Upload, sender: Sender, description: Description
) -> Attachment:
    charset = upload.charset or description.charset
    kept = await inbox.store(
        owner_id=sender.owner_id, thread=sender.thread, run=sender.run, charset=charset
    )
    return _attachment(kept, upload, description)


def _attachment(kept: StoredFile, upload: Upload, description: Description) -> Attachment:
    """Return the attachment of a stored file; that of an image has no more than its storage knows."""
    stored, mime_type = kept.stored, attachments.mime_type_of(kept.stored)
    if mime_type.startswith("image/"):
        return Attachment(stored.bucket, stored.path, mime_type)
    name = upload.name or clean_name(description.name) or _NAMELESS
    mime_type = of_text(upload.mime_type, description.mime_type)
    return Attachment(stored.bucket, stored.path, mime_type, name, kept.size)


async def _ours(upload: Upload, sender: Sender) -> Attachment:
    """Return the caller's own file that a signed URL of ours names."""
    texts = upload.takes == "any"
    found = attachments.parse_signed_url(upload.url, owner_id=sender.owner_id, texts=texts)
    return await _there(found, upload)


async def _there(found: StoredObject, upload: Upload) -> Attachment:
    opened = await attachments.open_file(found)
    if opened is None:
        raise InvalidRequest(
            "binary content url names a file that is not there (NoSuchKey)", code="no_such_key"
        )
    return _attachment(StoredFile(found, opened.stat.size), upload, Description(found.name))


async def _named(upload: Upload, sender: Sender) -> Attachment:
    """Return the caller's file of this id: an upload, or an artifact of a runner."""
    named = _ID.fullmatch(upload.file_id)
    file_id = UUID(named[1]) if named else None
    found = file_id and await attachments.find_upload(file_id, owner_id=sender.owner_id)
    if found:
        stored = await _there(found, upload)
        if upload.takes == "image" and not stored.is_image:
            raise UnsupportedMedia
        return stored
    made = file_id and await artifacts.find_artifact(file_id, sender.owner_id)
    if not made or not made.url.startswith("data:"):
        raise InvalidRequest("There is no such file of yours.", code="file_not_found")
    async with IncomingFile(texts=upload.takes == "any") as inbox:
        await inbox.write(attachments.decode_base64(made.url.partition(",")[2]))
        return await _kept(inbox, upload, sender, Description(mime_type=made.mime_type))
