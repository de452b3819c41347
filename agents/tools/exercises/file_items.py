"""Items of an exercise file, checked before they reach the database; errors name item and field."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

Name = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"\S")]
Text = Annotated[str, Meta(max_length=4_000)]
Texts = Annotated[tuple[Text, ...], Meta(max_length=100)]
Url = Annotated[str, Meta(max_length=2_000, pattern=r"^https?://\S+$")]


class BadExercises(Exception):
    """The file cannot be imported; the message names the item and the field."""


class UnusableItem(Exception):
    """An item cannot be stored in the library; the message names the field."""


class Item(Struct, frozen=True):
    """One exercise of a file, with only the model fields that the file has, by name."""

    id: str
    name: str
    fields: dict[str, Any]


class Media(Struct, frozen=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """The pictures and the video of an exercise."""

    thumbnail_url: Url
    video_url: Url | None = None
    image_urls: tuple[Url, ...] = ()
    step_images: tuple[Url, ...] = ()
    version: str = ""


def read_media(raw: Any) -> dict[str, Any]:
    """Return the checked pictures of one exercise, `{}` for none; raise BadExercises."""
    try:
        refuse_nul(raw)
        return to_plain(msgspec.convert(raw, Media)) if raw else {}
    except (msgspec.ValidationError, UnusableItem) as problem:
        raise BadExercises(format_error(problem)) from None


def to_plain(value: Any) -> dict[str, Any]:
    """Return lists and plain strings, as the columns store them."""
    return msgspec.json.decode(msgspec.json.encode(value), type=dict[str, Any])


def refuse_nul(value: Any, field: str = "") -> None:
    """Raise UnusableItem for the NUL character, which PostgreSQL text cannot contain."""
    match value:
        case str() if "\x00" in value:
            raise UnusableItem(f"{field or 'the item'}: contains the NUL character")
        case list():
            for part in value:
                refuse_nul(part, field)
        case dict():
            for key, part in value.items():
                refuse_nul(part, field or key)


def format_error(problem: Exception) -> str:
    """Return the error with the field first: "equipment[0]: Invalid enum value 'ROPE'"."""
    what, _, where = str(problem).partition(" - at `$")
    field = where.strip("`.")
    return f"{field}: {what}" if field else what
