"""The state of a thread: any JSON, changed by `state.updated` events at a JSON Pointer (RFC 6901)."""

from __future__ import annotations

from typing import Any


def put(state: Any, pointer: str, value: Any) -> Any:
    """The state with `value` at `pointer`; objects on the way are made, what is no object gives way.

    "" replaces the whole, "-" or the length of a list appends. The given state is not changed.
    """
    if not pointer:
        return value
    return _put(state, [_unescaped(part) for part in pointer.removeprefix("/").split("/")], value)


def _put(state: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    name, rest = path[0], path[1:]
    if isinstance(state, list) and (place := _place(name, len(state))) is not None:
        inner = state[place] if place < len(state) else None
        return [*state[:place], _put(inner, rest, value), *state[place + 1 :]]
    found = state if isinstance(state, dict) else {}
    return found | {name: _put(found.get(name), rest, value)}


def _place(name: str, length: int) -> int | None:
    if name == "-":
        return length
    return int(name) if name.isascii() and name.isdigit() and int(name) <= length else None


def _unescaped(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~")
