"""JSON as the dialects write it and read it."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from config.errors import InvalidRequest

Wire = dict[str, Any]
"""An object of a client's protocol, with the members of that protocol."""
encode_json: Final = msgspec.json.Encoder().encode


def json_text(value: Any) -> str:
    """Return the value as the text of its JSON."""
    return encode_json(value).decode()


def template(value: Any, *holes: bytes) -> bytes:
    """Return the JSON as a template for `%`: each hole, an empty member such as `"text":""`, takes JSON.

    One whose value is 0 takes a number. No text contains a hole, because its quotes are escaped.
    """
    form = encode_json(value).replace(b"%", b"%%")
    for hole in holes:
        name, _, empty = hole.partition(b":")
        form = form.replace(hole, name + (b":%d" if empty == b"0" else b":%b"), 1)
    return form


def optional_text(member: Wire, key: str) -> str:
    """Return a text of an object; "" for any other value."""
    value = member.get(key)
    return value if isinstance(value, str) else ""


def required_text(member: Wire, key: str, where: str, *, code: str, empty: bool = False) -> str:
    """Return a text of an object at this place; raise InvalidRequest for another value, or for "".

    An `empty` text may be allowed.
    """
    value = member.get(key)
    if not isinstance(value, str) or not (value or empty):
        raise invalid_member(f"{where}.{key}", "must be a text", code=code)
    return value


def invalid_member(where: str, what: str, *, code: str) -> InvalidRequest:
    """Return the error for the member at this place of the body."""
    return InvalidRequest(f"{where} {what}.", code=code, param=where)
