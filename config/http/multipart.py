"""`multipart/form-data` read while it arrives (RFC 7578), by the `multipart` library's push parser."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import dataclass
from typing import Final

from multipart import MultipartError, PushMultipartParser, parse_options_header

from config.errors import InvalidRequest

MOST_PARTS: Final = 8


@dataclass(frozen=True)
class Part:
    """The head of a part; its bytes follow."""

    name: str


async def parts(pieces: AsyncIterable[bytes], content_type: str) -> AsyncIterator[Part | bytes]:
    """Each part's head and then its bytes, as they come.

    Raises InvalidRequest: `multipart_required` for another type, `invalid_multipart` for a broken one.
    """
    kind, options = parse_options_header(content_type)
    if kind != "multipart/form-data" or not options.get("boundary"):
        raise InvalidRequest(
            "Send multipart/form-data with a part named file.", code="multipart_required"
        )
    try:
        parser = PushMultipartParser(options["boundary"], max_segment_count=MOST_PARTS)
        async for piece in pieces:
            for event in list(parser.parse(piece)):  # a fault in a piece precedes what is in it
                if event is not None:
                    yield bytes(event) if isinstance(event, bytes | bytearray) else Part(event.name)
        parser.close()
    except (MultipartError, UnicodeError):
        raise InvalidRequest("The multipart body cannot be read.", code="invalid_multipart") from None
