"""The bodies by which staff publish the library: a whole seed, or changes to the newest version."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from config.errors import InvalidRequest

T = TypeVar("T")
_Version = Annotated[int, Meta(ge=0, le=2**31 - 1)]
_Moment = Annotated[int, Meta(ge=0, le=4_102_444_800_000)]  # milliseconds, to the year 2100
_Note = Annotated[str, Meta(max_length=500, pattern=r"^[^\x00]*\Z")]
_Id = Annotated[str, Meta(max_length=64, pattern=r"^[^\x00]*\Z")]


class SeedBody(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A library in the published seed's form; `payload` replaces everything that is not custom."""

    payload: tuple[Any, ...]
    entity: Literal["EXERCISE"] = "EXERCISE"
    base_version: _Version | None = None
    note: _Note = ""
    total_count: int | None = None
    generated_at: _Moment | None = None
    schema_version: str = ""
    entity_version: int | None = None
    description: str = ""
    schema: str = msgspec.field(default="", name="$schema")


class TableBody(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Publish what staff have written in admin."""

    base_version: _Version | None = None
    note: _Note = ""


class PatchBody(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Changes on top of the version `baseVersion`; of `updated` only the given fields change."""

    base_version: _Version
    added: tuple[dict[str, Any], ...] = ()
    updated: tuple[dict[str, Any], ...] = ()
    deleted: tuple[_Id, ...] = ()
    note: _Note = ""
    generated_at: _Moment | None = None


def read_publish(raw: Any) -> SeedBody | TableBody:
    """Return the body as one of the two; raise InvalidRequest if it is neither."""
    if isinstance(raw, dict) and "payload" in raw:
        return read_body(raw, SeedBody)
    return read_body(raw, TableBody)


def read_body(raw: Any, kind: type[T]) -> T:
    """Return the body as a value of this type; raise InvalidRequest if it is none."""
    try:
        msgspec.json.encode(raw)
    except UnicodeEncodeError:  # JSON allows it, but no text that is stored or hashed can contain it
        raise InvalidRequest(
            "The body holds half of a surrogate pair.", code="invalid_characters"
        ) from None
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as problem:
        raise InvalidRequest(f"The body is not valid: {problem}.") from None
