"""Make what runners say storable: text that neither JSON nor PostgreSQL can hold becomes U+FFFD.

Half a surrogate pair has no UTF-8, NUL has no place in PostgreSQL's text. Runners, tools and plugins
are somebody's code; cleaning at the one door keeps streamed and stored the same (promise P3).
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from conversations import events
from conversations.events import Fact

_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")
_REPLACEMENT: Final = "\ufffd"


def clean(fact: Fact) -> Fact:
    """The fact, with every character in it storable.

    TypeError or msgspec.ValidationError for what is no fact, or has fields of other types: in the log
    it would be unreadable for ever.
    """
    if isinstance(fact, events.MessageDelta | events.ReasoningDelta):
        message_id, text = fact.message_id, fact.text
        if _is_storable(text) and _is_storable(message_id):
            return fact
        return type(fact)(clean_text(message_id), clean_text(text))
    if not isinstance(fact, events.Fact):
        raise TypeError("A runner says facts and nothing else.")
    cleaned = msgspec.convert(clean_value(msgspec.to_builtins(fact)), type(fact))
    return fact if cleaned == fact else cleaned


def _is_storable(text: str) -> bool:
    return (text.isascii() and "\x00" not in text) or not _UNSTORABLE.search(text)


def clean_text(text: str) -> str:
    """The text, with every character in it storable."""
    return _UNSTORABLE.sub(_REPLACEMENT, text)


def clean_value(value: Any) -> Any:
    """A JSON value, with every character in it storable."""
    match value:
        case str():
            return clean_text(value)
        case dict():
            return {clean_value(key): clean_value(item) for key, item in value.items()}
        case list() | tuple():
            return [clean_value(item) for item in value]
    return value
