"""Texts that clients send: decoded once, bounded, and kept in UTF-8 for a model to read.

A file that is no text is refused by its bytes; its name is not considered.
"""

from __future__ import annotations

import codecs
import re
from contextlib import suppress
from typing import Final
from uuid import UUID

from django.conf import settings

from config.errors import InvalidRequest, PayloadTooLarge
from conversations.attachments import files
from conversations.attachments.io_threads import run_decoding
from conversations.attachments.object_names import DOCUMENT, StoredObject

_BINARIES: Final = (
    (b"%PDF-", "a PDF"),
    (b"PK\x03\x04", "a ZIP archive or an office document"),
    (b"\xd0\xcf\x11\xe0", "an office document"),
    (b"\x1f\x8b", "a compressed file"),
    (b"ID3", "audio"),
    (b"OggS", "audio"),
    (b"fLaC", "audio"),
    (b"\x1a\x45\xdf\xa3", "a video"),
    (b"\x7fELF", "a program"),
)
_RIFF: Final = {b"WAVE": "audio", b"AVI ": "a video"}
_CONTROLS: Final = re.compile(r"[\x00-\x07\x0e-\x1a\x1c-\x1f\x7f]")
_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CHARSETS: Final = frozenset(
    {
        *("ascii", "utf-8", "utf-16", "utf-16-le", "utf-16-be", "gbk", "gb2312", "gb18030", "big5"),
        *("shift_jis", "euc_jp", "euc_kr", "koi8-r", "iso8859-1", "iso8859-2", "iso8859-5"),
        *("iso8859-7", "iso8859-8", "iso8859-9", "iso8859-15"),
        *(f"cp125{number}" for number in range(9)),
    }
)


def check_head(head: bytes) -> None:
    """Refuse a file whose first bytes are no text. Raise InvalidRequest `unsupported_file`."""
    found = next((what for magic, what in _BINARIES if head.startswith(magic)), "")
    if head[4:8] == b"ftyp":
        found = "a video"
    elif head[:4] == b"RIFF":
        found = _RIFF.get(head[8:12], "")
    if found:
        raise not_a_text(found)


def check_size(size: int) -> None:
    """Raise PayloadTooLarge `document_too_large` past DOCUMENT_LIMIT_KB."""
    if size > settings.DOCUMENT_LIMIT_KB * 1024:
        raise PayloadTooLarge(
            f"A text may have {settings.DOCUMENT_LIMIT_KB:,} KiB at most.", code="document_too_large"
        )


def not_a_text(what: str) -> InvalidRequest:
    return InvalidRequest(
        f"The file is {what}, which is not taken here: images (JPEG, PNG, WebP, GIF) and texts "
        "(plain, Markdown, CSV, JSON, XML, HTML, source code) are.",
        code="unsupported_file",
    )


def decode_text(raw: bytes, charset: str = "") -> str:
    """Return the text, decoded by its byte order mark, by the declared charset, or as UTF-8.

    Raise InvalidRequest `unsupported_file` for bytes that are no text in that charset.
    """
    for mark, encoding in _MARKS:
        if raw.startswith(mark):
            return _text(raw[len(mark) :], encoding)
    return _text(raw, _codec(charset or "utf-8"))


def _codec(charset: str) -> str:
    with suppress(LookupError, ValueError):
        if (found := codecs.lookup(charset).name) in _CHARSETS:
            return found
    raise not_a_text("a text in a charset that is not known")


def _text(raw: bytes, encoding: str) -> str:
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError:
        raise not_a_text("no text in UTF-8 or in the charset that it declares") from None
    if _CONTROLS.search(text):
        raise not_a_text("no text")
    return text


async def store_text(
    raw: bytes, *, charset: str, owner_id: UUID, thread: str, run: str
) -> tuple[StoredObject, int]:
    """Store a text. Return its place and size in UTF-8. Raise as an upload, and as `decode_text`."""
    data = (await run_decoding(decode_text, raw, charset)).encode()
    stored = await files.store_bytes(data, DOCUMENT, owner_id=owner_id, thread=thread, run=run)
    return stored, len(data)
