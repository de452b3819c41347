"""Text on its way to the store, as packages redact it: the entry point group `parley.redaction`.

Each entry is a function `redact(text: str) -> str`; several are applied in the order of their names.
They see a text again when a client sends it back, so `redact(redact(text))` must be `redact(text)`.

A hook that cannot be loaded, raises, or returns no text stops what it should have redacted: unredacted
text is never stored in its place.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.metadata import entry_points
from typing import Any, Final

import structlog

from config.errors import Unavailable
from conversations.log.storable_text import clean_text

log = structlog.get_logger(__name__)

GROUP: Final = "parley.redaction"
Redact = Callable[[str], str]


class RedactionFailed(Unavailable):
    """The redaction hook of this installation has failed, so the text was not stored."""

    code = "redaction_failed"


def find_redact() -> Redact | None:
    """Return the function that applies every installed hook; None if there is none."""
    hooks = _hooks()
    return _applied if hooks else None


def clear_cache() -> None:
    """Clear the cache, so that the installed packages are read again."""
    _hooks.cache_clear()


def redact_value(redact: Redact, value: Any) -> Any:
    """Return a JSON value with every text in it redacted; the keys of objects stay."""
    match value:
        case str():
            return redact(value)
        case dict():
            return {key: redact_value(redact, item) for key, item in value.items()}
        case list() | tuple():
            return [redact_value(redact, item) for item in value]
    return value


def _applied(text: str) -> str:
    for name, hook in _hooks():
        try:
            text = _checked(hook(text))
        except Exception as error:  # its message may hold the text
            log.error("redaction failed", hook=name, error=type(error).__name__)
            raise RedactionFailed(retry_after=10) from None
    return text


def _checked(returned: object) -> str:
    """Return what a hook returned, made storable; whatever is no text raises TypeError."""
    if not isinstance(returned, str):
        raise TypeError
    return clean_text(returned)


@cache
def _hooks() -> tuple[tuple[str, Redact], ...]:
    found = sorted(entry_points(group=GROUP), key=lambda entry: entry.name)
    return tuple((entry.name, _loaded(entry)) for entry in found)


def _loaded(entry: Any) -> Redact:
    try:
        loaded: Redact = entry.load()
    except Exception as error:  # the code of another package
        log.exception("redaction hook not loaded", entry=entry.name, error=type(error).__name__)
        return _refuse
    return loaded


def _refuse(text: str) -> str:
    raise RedactionFailed(retry_after=10)
