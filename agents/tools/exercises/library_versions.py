"""Publish the exercise library, of which apps keep a copy (specs/text-run.md §3).

Staff edit the table and the search follows at once; apps see only published versions, which are numbered
states that never change. A state that is already published makes no new version.
"""

from __future__ import annotations

import gzip
import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec
import structlog
from django.db import transaction
from django.utils import timezone

from agents.models import Exercise as Row
from agents.models import LibraryVersion
from agents.tools.exercises.file_items import BadExercises, Item
from agents.tools.exercises.import_files import LIBRARY_FIELDS, read_library_items
from agents.tools.exercises.index import Exercise, to_dto
from agents.tools.exercises.library_bodies import PatchBody, SeedBody
from agents.tools.exercises.store import import_items, lock_library
from config.auth.models import User
from config.errors import Conflict, InvalidRequest

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
log = structlog.get_logger(__name__)


@transaction.atomic
def publish(
    *, by: User | None, note: str = "", base: int | None = None, at: datetime | None = None
) -> LibraryVersion:
    """Publish the state of the table; return the newest version instead if it has the same content.

    With `base`, raise Conflict `version_conflict` unless that is the newest version.
    """
    lock_library()
    newest = _find_newest(base)
    exercises = [
        to_dto(_exercise_of(row)) for row in Row.objects.filter(is_custom=False).order_by("name")
    ]
    content = msgspec.json.encode(exercises)
    checksum = f"sha256:{hashlib.sha256(content).hexdigest()}"
    if newest is not None and newest.checksum == checksum:
        return newest
    before = decode_exercises(bytes(newest.content)) if newest else []
    changes = changes_between(before, exercises)
    made = LibraryVersion.objects.create(
        number=newest.number + 1 if newest else 1,
        published_at=at or timezone.now(),
        published_by=by,
        note=note,
        total=len(exercises),
        checksum=checksum,
        content=gzip.compress(content, mtime=0),
        added=[exercise["id"] for exercise in changes.added],
        updated=[exercise["id"] for exercise in changes.updated],
        deleted=list(changes.deleted),
    )
    author = by.get_username() if by else "parley"
    log.info("library published", number=made.number, total=made.total, by=author)
    return made


@transaction.atomic
def publish_seed(body: SeedBody, *, by: User) -> LibraryVersion:
    """Replace the library by the seed's content (custom exercises stay), and publish it."""
    lock_library()
    _find_newest(body.base_version)
    items = _read_items(body.payload)
    if body.total_count is not None and body.total_count != len(items):
        raise InvalidRequest("totalCount is not the number of exercises.", field="totalCount")
    import_items(items)
    names = [item.name for item in items]
    Row.objects.filter(is_custom=False).exclude(name__in=names).delete()
    return publish(by=by, note=body.note, base=body.base_version, at=_moment(body.generated_at))


@transaction.atomic
def publish_patch(body: PatchBody, *, by: User) -> LibraryVersion:
    """Apply all changes or none to the library, and publish it.

    Raise Conflict `version_conflict` unless `baseVersion` is the newest version.
    """
    lock_library()
    _find_newest(body.base_version)
    _delete(body.deleted)
    _update(body.updated)
    _add(body.added)
    return publish(by=by, note=body.note, base=body.base_version, at=_moment(body.generated_at))


class Changes(msgspec.Struct, frozen=True):
    """The changes between two states: exercises as ExerciseDtos, and the ids of deleted ones."""

    added: tuple[dict[str, Any], ...]
    updated: tuple[dict[str, Any], ...]
    deleted: tuple[str, ...]


def changes_between(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> Changes:
    """Return the changes from `before` to `after`."""
    known = {exercise["id"]: exercise for exercise in before}
    kept = {exercise["id"] for exercise in after}
    return Changes(
        added=tuple(exercise for exercise in after if exercise["id"] not in known),
        updated=tuple(exercise for exercise in after if known.get(exercise["id"], exercise) != exercise),
        deleted=tuple(id_ for id_ in known if id_ not in kept),
    )


def decode_exercises(content: bytes) -> list[dict[str, Any]]:
    """Return the exercises of a version's `content`."""
    return msgspec.json.decode(gzip.decompress(content), type=list[dict[str, Any]])


def epoch_milliseconds(moment: datetime) -> int:
    """Return the milliseconds since the epoch, rounded down, like PostgreSQL's `floor`."""
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def _find_newest(base: int | None) -> LibraryVersion | None:
    newest = LibraryVersion.objects.first()
    current = newest.number if newest else 0
    if base is not None and base != current:
        raise Conflict(
            "The library was published since: fetch it again and repeat your change.",
            code="version_conflict",
            baseVersion=base,
            currentVersion=current,
        )
    return newest


def _delete(ids: tuple[str, ...]) -> None:
    found = Row.objects.filter(pk__in=ids, is_custom=False)
    _refuse_unknown("deleted", set(ids) - set(found.values_list("pk", flat=True)))
    found.delete()


def _update(changes: tuple[dict[str, Any], ...]) -> None:
    ids = [change.get("id") for change in changes]
    if not all(isinstance(id_, str) for id_ in ids):
        raise InvalidRequest("Each of updated needs the id of an exercise.", field="updated")
    rows = Row.objects.select_for_update().in_bulk(ids)
    _refuse_unknown("updated", {str(id_) for id_ in ids} - set(rows))
    for change in changes:
        _change(rows[change["id"]], change)


def _change(row: Row, change: dict[str, Any]) -> None:
    """Overwrite the changed fields; a description from outside replaces both languages."""
    (item,) = _read_items([to_dto(_exercise_of(row)) | change])
    changed = {LIBRARY_FIELDS[name] for name in change if name in LIBRARY_FIELDS}
    fields = {field: value for field, value in item.fields.items() if field in changed}
    if "description" in fields and "description_en" not in fields:
        fields["description_en"] = ""
    if item.name != row.name and Row.objects.filter(name=item.name).exists():
        raise InvalidRequest(f"There is an exercise {item.name!r} already.", field="updated")
    for field, value in (fields | {"name": item.name}).items():
        setattr(row, field, value)
    row.save()


def _add(raw: tuple[dict[str, Any], ...]) -> None:
    items = _read_items(raw)
    taken = Row.objects.filter(name__in=[item.name for item in items]).values_list("name", flat=True)
    if taken:
        raise InvalidRequest(f"There is an exercise {taken[0]!r} already.", field="added")
    import_items(items)


def _read_items(raw: tuple[Any, ...] | list[Any]) -> tuple[Item, ...]:
    try:
        return read_library_items(list(raw))
    except BadExercises as problem:
        raise InvalidRequest(str(problem), code="invalid_exercises") from None


def _refuse_unknown(field: str, ids: set[str]) -> None:
    if ids:
        named = ", ".join(sorted(ids)[:5])
        raise InvalidRequest(f"There is no exercise {named}.", code="exercise_unknown", field=field)


def _exercise_of(row: Row) -> Exercise:
    """Return the row as an exercise of the searchable library."""
    fields = {name: getattr(row, name) for name in Exercise.__struct_fields__}
    times = {name: epoch_milliseconds(fields[name]) for name in ("created_at", "updated_at")}
    return msgspec.convert(fields | times, Exercise)


def _moment(at_ms: int | None) -> datetime | None:
    return None if at_ms is None else datetime.fromtimestamp(at_ms / 1000, UTC)
