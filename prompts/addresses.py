"""Which address an endpoint may have."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import SplitResult, urlsplit

from django.core.exceptions import ValidationError

_UNFIT: Final = re.compile(r"[\s\x00-\x20\x7f\\]")


def http_address(address: str) -> None:
    """Refuse what is no plain http(s) address; names without a dot, such as `ollama`, are fine.

    A password in the address would be stored and shown unsealed, so user names are refused, and
    the message never repeats what was typed.
    """
    parts = _split(address)
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValidationError("Enter an address that starts with http:// or https://.")
    if "@" in parts.netloc:
        raise ValidationError("Leave user name and password out of the address; keys have a field.")
    if parts.query or parts.fragment:
        raise ValidationError("Enter the address without ? and #.")


def _split(address: str) -> SplitResult | None:
    if _UNFIT.search(address):
        return None
    try:
        parts = urlsplit(address)
        _ = parts.port  # raises when it is no number
    except ValueError:
        return None
    return parts
