"""Types of the members of the API's JSON, with what the OpenAPI document says of them."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from config.http.documentation.schema_builders import ref

Day = Annotated[str, Meta(extra_json_schema={"format": "date"})]
Time = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
Hex = Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]
Uuid = Annotated[str, Meta(extra_json_schema={"format": "uuid"})]
Count = Annotated[int, Meta(ge=0)]


class Shown(Struct, frozen=True, forbid_unknown_fields=True):
    """The base of what the API shows: an object with its members and no others, in their order."""


def one_of(*values: str) -> Any:
    """Return the note that a text is one of these."""
    return Meta(extra_json_schema={"enum": list(values)})


def component(name: str) -> Any:
    """Return the note that any value has this schema of the OpenAPI document."""
    return Meta(extra_json_schema=ref(name))


def noted(description: str) -> Any:
    """Return the description of a member."""
    return Meta(description=description)
