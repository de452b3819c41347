"""One line of the doctor: what was looked at, how it is, and what mends it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

State = Literal["ok", "warning", "fault"]


@dataclass(frozen=True, slots=True)
class Finding:
    """A thing of a group, with a sentence about its state; a `fix` for what is not ok. No secrets."""

    group: str
    thing: str
    state: State
    text: str
    fix: str = ""


Report = Callable[[], Iterator[Finding]]


def without_secrets(url: str) -> str:
    """Return scheme, host, port and path of an address; not the user, the password or the query."""
    try:
        parts = urlsplit(url)
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return f"{url.partition('://')[0]}://…"
    return f"{parts.scheme}://{host}{port}{parts.path}"
