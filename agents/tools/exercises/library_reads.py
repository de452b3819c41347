"""Reads of the published library by apps: the newest version, a whole one, or the changes between two.

A version never changes, so its bytes are cached in the process and sent as they are stored, gzipped.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Any, Final

from django.conf import settings
from msgspec import Struct

from agents.tools.exercises.library_versions import changes_between, decoded
from config import sql
from config.errors import InvalidRequest, NotFound

_META: Final = """
    SELECT number, total, floor(extract(epoch FROM published_at) * 1000)::bigint, checksum
      FROM agents_libraryversion WHERE %(number)s::int IS NULL OR number = %(number)s
     ORDER BY number DESC LIMIT 1
"""
_CONTENT: Final = "SELECT content FROM agents_libraryversion WHERE number = %s"
_KEPT: Final = 4
_LARGEST: Final = 2**31 - 1
_contents: OrderedDict[tuple[int, str], bytes] = OrderedDict()


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

    def as_meta(self) -> dict[str, Any]:
        """Return the ExerciseLibraryMeta of specs/text-run.md §3."""
        return {
            "version": self.number,
            "totalCount": self.total,
            "lastUpdated": self.published_at_ms,
            "checksum": self.checksum,
            "downloadUrl": f"{settings.PUBLIC_URL}/api/v1/exercise/library/full?version={self.number}",
        }


async def version(number: int | None = None) -> Version:
    """Return that version, or the newest; raise NotFound `version_not_found`."""
    row = await sql.one(_META, {"number": number})
    if row is None:
        raise NotFound("This version of the library was never published.", code="version_not_found")
    return Version(*row)


async def content(found: Version) -> bytes:
    """Return the gzipped JSON list of the version's ExerciseDtos."""
    key = (found.number, found.checksum)
    kept = _contents.get(key)
    if kept is None:
        row = await sql.one(_CONTENT, (found.number,))
        kept = _contents[key] = bytes(row[0]) if row else b""
    _contents.move_to_end(key)
    while len(_contents) > _KEPT:
        _contents.popitem(last=False)
    return kept


async def updates(start: int, end: int | None) -> dict[str, Any]:
    """Return the ExerciseLibraryUpdates from version `start` (0: nothing) to `end` (None: newest)."""
    last = await version(end)
    if start > last.number:
        raise InvalidRequest("from must not be above to.", code="invalid_versions", field="from")
    after = await content(last)
    before = await content(await version(start)) if start else None
    # Two thousand exercises take 20 ms, which would block the loop that serves streams.
    changes = await asyncio.to_thread(
        lambda: changes_between(decoded(before) if before else [], decoded(after))
    )
    return {
        "fromVersion": start,
        "toVersion": last.number,
        "added": changes.added,
        "updated": changes.updated,
        "deleted": changes.deleted,
        "timestamp": last.published_at_ms,
    }


def version_number(name: str, given: str | None) -> int | None:
    """Return a version of a query string; raise InvalidRequest `invalid_versions` for other text."""
    if given is None or given == "":
        return None
    if not (given.isascii() and given.isdigit() and len(given) <= 10 and int(given) <= _LARGEST):
        raise InvalidRequest(
            f"{name} must be a version of the library.", code="invalid_versions", field=name
        )
    return int(given)
