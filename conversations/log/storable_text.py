"""Make runners' text storable: characters that JSON or PostgreSQL cannot hold become U+FFFD.

Half a surrogate pair has no UTF-8, and PostgreSQL's text has no place for NUL. Runners, tools and
plugins are foreign code; cleaning here alone keeps streamed and stored text the same (promise P3).
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any, Final

import msgspec

from conversations import events
from conversations.events import Fact

_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")
_REPLACEMENT: Final = "\ufffd"
_NUL: Final = rb"\u0000"


def clean(fact: Fact) -> Fact:
    """Return the fact with every character in it storable.

    Raise TypeError or msgspec.ValidationError for a value that is no fact, or has fields of other
    types: in the log it would be unreadable for ever.
    """
    if isinstance(fact, events.DELTAS):
        if is_storable(fact.message_id + fact.text):
            return fact
        return type(fact)(clean_text(fact.message_id), clean_text(fact.text))
    if not isinstance(fact, events.Fact):
        raise TypeError("A runner says facts and nothing else.")
    cleaned = _read_back(fact)
    return fact if cleaned == fact else cleaned


def _read_back(fact: Fact) -> Fact:
    """Return the fact as it is read from its JSON; its texts are looked at only if one needs it."""
    with suppress(UnicodeEncodeError):  # half a surrogate pair
        written = msgspec.json.encode(fact)
        if _NUL not in written:
            return msgspec.json.decode(written, type=type(fact))
    return msgspec.convert(clean_value(msgspec.to_builtins(fact)), type(fact))


def is_storable(text: str) -> bool:
    """Return whether every character in the text is storable."""
    return (text.isascii() and "\x00" not in text) or not _UNSTORABLE.search(text)


def clean_text(text: str) -> str:
    """Return the text with every character in it storable."""
    return _UNSTORABLE.sub(_REPLACEMENT, text)


def clean_value(value: Any) -> Any:
    """Return a JSON value with every character in it storable."""
    match value:
        case str():
            return clean_text(value)
        case dict():
            return {clean_value(key): clean_value(item) for key, item in value.items()}
        case list() | tuple():
            return [clean_value(item) for item in value]
    return value
