"""JSON as the dialects write it and read it."""

from __future__ import annotations

from typing import Any, Final

import msgspec

Wire = dict[str, Any]
"""An object of a client's protocol, with the members of that protocol."""
encode_json: Final = msgspec.json.Encoder().encode


def json_text(value: Any) -> str:
    """Return the value as the text of its JSON."""
    return encode_json(value).decode()


def as_text(value: object) -> str:
    """Return a member that should be a text; "" for any other value."""
    return value if isinstance(value, str) else ""
