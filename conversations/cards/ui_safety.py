"""The parts of a card's text and links that are safe, where the JSON Schemas are silent (specs §5).

Plain text needs no guard except against characters that no wire can carry: renderers show it as it is.
Links and markdown are acted upon, so only known harmless ones pass.
"""

from __future__ import annotations

import re
from typing import Any, Final

from conversations.cards.ui_nodes import Navigate, OpenUrl, UiAction

# Spaces, controls, direction marks and what browsers repair into something else (`\` into `/`).
_TAIL: Final = (
    r"[^\s\x00-\x20\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ud800-\udfff\\<>\"]*"
)
_URL: Final = re.compile(rf"https://(?=[\w\[])[^/?#@\\%]+(?<!:)(?:[/?#]{_TAIL})?")
_CHARACTERS: Final = re.compile(_TAIL)
_PATH: Final = re.compile(rf"/(?![/\\]){_TAIL}")
_LOCALE: Final = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*")
_LOCALE_LIMIT: Final = 35  # RFC 5646 §4.4.1
_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")

_TAG: Final = r"<(?!https://)[A-Za-z/!?]"
_FOREIGN_LINK: Final = r"\][(:]\s*+(?!<?https://|/(?![/\\&])|#)"
_UNSAFE_MARKDOWN: Final = re.compile(f"{_TAG}|{_FOREIGN_LINK}")


def is_safe_url(url: str) -> bool:
    """Return whether it is an absolute https URL with a host, no user, nothing browsers would repair."""
    return bool(_URL.fullmatch(url) and _CHARACTERS.fullmatch(url))


def is_safe_action(action: UiAction) -> bool:
    """Return whether its link leads where it says: `//host` and `/\\host` are no paths in the app."""
    match action:
        case OpenUrl(url):
            return is_safe_url(url)
        case Navigate(path):
            return bool(_PATH.fullmatch(path))
    return True


def is_safe_markdown(text: str) -> bool:
    """Return whether it has no HTML tag, and no link but to https, to a path or within the text."""
    return not _UNSAFE_MARKDOWN.search(text)


def is_locale(locale: str) -> bool:
    """Return whether it is a language tag as the renderer wants it, of at most 35 characters."""
    return len(locale) <= _LOCALE_LIMIT and bool(_LOCALE.fullmatch(locale))


def make_storable(value: Any) -> Any:
    """Return the JSON value with U+FFFD for NUL and half surrogates, at any depth (but not in keys)."""
    match value:
        case str():
            return _UNSTORABLE.sub("\ufffd", value)
        case dict():
            return {key: make_storable(item) for key, item in value.items()}
        case list() | tuple():
            return [make_storable(item) for item in value]
    return value
