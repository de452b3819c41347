"""Checks of parameters that several Host actions have; each raises HostRefusal `invalid_argument`."""

from __future__ import annotations

from agents.host_protocol.errors import invalid
from conversations.log.storable_text import clean_text


def checked_limit(value: int, maximum: int, *, name: str = "limit") -> int:
    """Return the value, or `maximum` if it is larger; refuse a value below 1."""
    if value < 1:
        raise invalid(f"{name} must be > 0")
    return min(value, maximum)


def checked_query(text: str, max_length: int, *, name: str) -> str:
    """Return a search's text without blanks around it; refuse an empty or too long one."""
    query = text.strip()
    if not 0 < len(query) <= max_length or "\x00" in query:
        raise invalid(f"{name} must have 1 to {max_length} characters")
    return query


def checked_key(key: str, max_length: int) -> str:
    """Return the key; refuse an empty one, and one that `checked_prefix` refuses."""
    if not key:
        raise invalid("key is empty")
    return checked_prefix(key, max_length, name="key")


def checked_prefix(prefix: str, max_length: int, *, name: str = "prefix") -> str:
    """Return the prefix; refuse one that is too long, or no text that the database can store."""
    if len(prefix) > max_length:
        raise invalid(
            f"{name} has {len(prefix)} characters; at most {max_length} are kept", limit=max_length
        )
    if "\x00" in prefix or clean_text(prefix) != prefix:
        raise invalid(f"{name} holds a NUL character or half of a surrogate pair")
    return prefix
