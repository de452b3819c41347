"""Reads of the published library by apps: the newest version, a whole one, or the changes between two.

A version never changes, so its bytes are cached in the process and sent as they are stored, gzipped.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Annotated, Any, Final

from django.conf import settings
from msgspec import Struct

from agents.tools.exercises.library_versions import changes_between, decode_exercises
from config import sql
from config.errors import InvalidRequest, NotFound
from config.http.documentation.json_types import Count, Shown, component

_META: Final = """
    SELECT number, total, floor(extract(epoch FROM published_at) * 1000)::bigint, checksum
      FROM agents_libraryversion WHERE %(number)s::int IS NULL OR number = %(number)s
     ORDER BY number DESC LIMIT 1
"""
_CONTENT: Final = "SELECT content FROM agents_libraryversion WHERE number = %s"
ExerciseJson = Annotated[Any, component("Exercise")]
_CACHED: Final = 4
_LARGEST: Final = 2**31 - 1
_contents: OrderedDict[tuple[int, str], bytes] = OrderedDict()


class LibraryMeta(Shown, frozen=True, rename="camel"):
    """A published version of the library (ExerciseLibraryMeta)."""

    version: Count
    total_count: Count
    last_updated: Count
    checksum: str
    download_url: str


class LibraryUpdates(Shown, frozen=True, rename="camel"):
    """The changes between two published versions (ExerciseLibraryUpdates)."""

    from_version: Count
    to_version: Count
    added: tuple[ExerciseJson, ...]
    updated: tuple[ExerciseJson, ...]
    deleted: tuple[str, ...]
    timestamp: Count


class Version(Struct, frozen=True):
    """A published version without its exercises."""

    number: int
    total: int
    published_at_ms: int
    checksum: str

    @property
    def etag(self) -> str:
        """Return the ETag; it is weak, because the same version is sent gzipped and plain."""
        return f'W/"{self.number}-{self.checksum[7:39]}"'

    def as_meta(self) -> LibraryMeta:
        url = f"{settings.PUBLIC_URL}/api/v1/exercise/library/full?version={self.number}"
        return LibraryMeta(self.number, self.total, self.published_at_ms, self.checksum, url)


async def find_version(number: int | None = None) -> Version:
    """Return that version, or the newest; raise NotFound `version_not_found`."""
    row = await sql.one(_META, {"number": number})
    if row is None:
        raise NotFound("This version of the library was never published.", code="version_not_found")
    return Version(*row)


async def read_content(version: Version) -> bytes:
    """Return the gzipped JSON list of the version's ExerciseDtos."""
    key = (version.number, version.checksum)
    content = _contents.get(key)
    if content is None:
        row = await sql.one(_CONTENT, (version.number,))
        content = _contents[key] = bytes(row[0]) if row else b""
    _contents.move_to_end(key)
    while len(_contents) > _CACHED:
        _contents.popitem(last=False)
    return content


async def find_updates(start: int, end: int | None) -> LibraryUpdates:
    """Return the changes from version `start` (0: nothing) to `end` (None: newest)."""
    last = await find_version(end)
    if start > last.number:
        raise InvalidRequest("from must not be above to.", code="invalid_versions", field="from")
    after = await read_content(last)
    before = await read_content(await find_version(start)) if start else None
    # Two thousand exercises take 20 ms, which would block the loop that serves streams.
    changes = await asyncio.to_thread(
        lambda: changes_between(decode_exercises(before) if before else [], decode_exercises(after))
    )
    found = (changes.added, changes.updated, changes.deleted)
    return LibraryUpdates(start, last.number, *found, last.published_at_ms)


def parse_version(name: str, text: str | None) -> int | None:
    """Return a version of a query string; raise InvalidRequest `invalid_versions` for other text."""
    if text is None or text == "":
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 10 and int(text) <= _LARGEST):
        raise InvalidRequest(
            f"{name} must be a version of the library.", code="invalid_versions", field=name
        )
    return int(text)
