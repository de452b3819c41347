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
    """The fact, with every character in it storable."""
    if isinstance(fact, events.MessageDelta | events.ReasoningDelta):
        text = fact.text
        if (text.isascii() and "\x00" not in text) or not _UNSTORABLE.search(text):
            return fact
        return type(fact)(fact.message_id, _UNSTORABLE.sub(_REPLACEMENT, text))
    said = msgspec.to_builtins(fact)
    cleaned = _cleaned(said)
    return fact if cleaned == said else msgspec.convert(cleaned, type(fact))


def _cleaned(value: Any) -> Any:
    match value:
        case str():
            return _UNSTORABLE.sub(_REPLACEMENT, value)
        case dict():
            return {_cleaned(key): _cleaned(item) for key, item in value.items()}
        case list() | tuple():
            return [_cleaned(item) for item in value]
    return value
