"""A text that grows by small pieces."""

from __future__ import annotations

_ERRORS = "surrogatepass"  # half a character may come first, its other half next


class GrowingText:
    """One buffer: a list of pieces would take twenty times the text's memory while a run streams."""

    __slots__ = ("_bytes",)

    def __init__(self) -> None:
        self._bytes = bytearray()

    def add(self, text: str) -> None:
        """Append a piece."""
        self._bytes += text.encode("utf-8", _ERRORS)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GrowingText) and self._bytes == other._bytes

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __bool__(self) -> bool:
        return bool(self._bytes)

    def __str__(self) -> str:
        """Return the whole text."""
        return self._bytes.decode("utf-8", _ERRORS)
