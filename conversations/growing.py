"""A text that grows by small pieces."""

from __future__ import annotations

_ERRORS = "surrogatepass"  # half a character may come first, the other half next


class GrowingText:
    """One buffer; a list of pieces takes twenty times its text, for as long as a run speaks."""

    __slots__ = ("_bytes",)

    def __init__(self) -> None:
        self._bytes = bytearray()

    def add(self, text: str) -> None:
        """Put a piece at the end."""
        self._bytes += text.encode("utf-8", _ERRORS)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GrowingText) and self._bytes == other._bytes

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __bool__(self) -> bool:
        return bool(self._bytes)

    def __str__(self) -> str:
        """All of it."""
        return self._bytes.decode("utf-8", _ERRORS)
