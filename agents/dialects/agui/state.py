"""The thread's shared state as a client keeps it, and the patches that keep it so (RFC 6901, 6902)."""

from __future__ import annotations

from typing import Any, Final, Literal

from conversations.events import StateUpdated

Op = Literal["add", "replace"]
_FORBIDDEN: Final = frozenset({"__proto__", "constructor", "prototype"})
_DEEPEST: Final = 64


class Shared:
    """The thread's state as this run's client has it."""

    def __init__(self) -> None:
        self.value: Any = {}
        self.changed = False

    def update(self, updated: StateUpdated) -> dict[str, Any]:
        """The event that brings the client's state up to date: a patch where it can apply one."""
        operation = None
        if updated.key:
            self.value, operation = with_value(self.value, pointer_of(updated.key), updated.value)
        else:
            self.value = updated.value
        self.changed = True
        if operation is not None:
            return {"type": "STATE_DELTA", "delta": [operation]}
        return {"type": "STATE_SNAPSHOT", "snapshot": self.value}


def pointer_of(key: str) -> str:
    """A key as a JSON Pointer; one that is none names a member at the top."""
    return key if key.startswith("/") else "/" + key.replace("~", "~0").replace("/", "~1")


def with_value(state: Any, pointer: str, value: Any) -> tuple[Any, dict[str, Any] | None]:
    """The state with `value` at `pointer`, and the patch operation that does the same.

    No operation where a client cannot apply one (what should hold the value is not there, or its
    library refuses the name): it then needs the whole state. A pointer deeper than 64 is ignored.
    The given state is left as it is.
    """
    tokens = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]
    if len(tokens) > _DEEPEST:
        return state, None
    changed, op = _set(state, tokens, value)
    if op is None or _FORBIDDEN.intersection(tokens):
        return changed, None
    return changed, {"op": op, "path": pointer, "value": value}


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
    """The place that a token names in a list, its end included; None if it names none."""
    if token == "-":
        return length
    if not (token.isascii() and token.isdigit() and len(token) <= 9) or (
        len(token) > 1 and token[0] == "0"
    ):
        return None
    return index if (index := int(token)) <= length else None
