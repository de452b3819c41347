"""The state of a thread: any JSON, changed by `state.updated` events at a JSON Pointer (RFC 6901)."""

from __future__ import annotations

from typing import Any, Final, Literal

Op = Literal["add", "replace"]
_DEEPEST: Final = 64


def set_value(state: Any, key: str, value: Any) -> Any:
    """Return the state with `value` at `key`; "" replaces the whole."""
    return set_value_with_op(state, key, value)[0]


def set_value_with_op(state: Any, key: str, value: Any) -> tuple[Any, Op | None]:
    """Return the state with `value` at `key`, and the patch operation (RFC 6902) that does the same.

    Objects on the way are made, what is no object gives way; "-" or the length of a list appends. No
    operation where a patch cannot do that, and for "", which replaces the whole. A pointer deeper than
    64 changes nothing. The given state is left as it is.
    """
    if not key:
        return value, None
    tokens = split_pointer(to_pointer(key))
    return _set(state, tokens, value) if len(tokens) <= _DEEPEST else (state, None)


def to_pointer(key: str) -> str:
    """Return a key as a JSON Pointer; any other text names a member at the top."""
    return key if key.startswith("/") else "/" + key.replace("~", "~0").replace("/", "~1")


def split_pointer(pointer: str) -> list[str]:
    """Return the names on a pointer's way."""
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def _set(holder: Any, tokens: list[str], value: Any) -> tuple[Any, Op | None]:
    if not tokens:
        return value, "replace"
    if isinstance(holder, list):
        return _set_item(list(holder), tokens, value)
    if not isinstance(holder, dict):
        return _set({}, tokens, value)[0], None
    token, *rest = tokens
    op: Op | None = "replace" if token in holder else "add"
    if rest:
        value, op = _set(holder.get(token), rest, value)
    return {**holder, token: value}, op


def _set_item(items: list[Any], tokens: list[str], value: Any) -> tuple[Any, Op | None]:
    token, *rest = tokens
    index = _index(token, len(items))
    if index is None:
        return _set({}, tokens, value)[0], None
    op: Op | None = "replace" if index < len(items) else "add"
    if rest:
        value, op = _set(items[index] if index < len(items) else None, rest, value)
    items[index : index + 1] = [value]
    return items, op


def _index(token: str, length: int) -> int | None:
    """Return the place that a token names in a list, its end included; None if it names none."""
    if token == "-":
        return length
    if not (token.isascii() and token.isdigit() and len(token) <= 9) or (
        len(token) > 1 and token[0] == "0"
    ):
        return None
    return index if (index := int(token)) <= length else None
