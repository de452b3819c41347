"""JSON Schemas whose evaluation doubles with each level."""

from __future__ import annotations

from typing import Any


def doubling(levels: int) -> dict[str, Any]:
    """An object whose member `a` is a number by two equal ways at each level."""
    parts: dict[str, Any] = {"level-0": {"type": "integer"}}
    for level in range(1, levels + 1):
        below = {"$ref": f"#/$defs/level-{level - 1}"}
        parts[f"level-{level}"] = {"anyOf": [below, below]}
    return {
        "type": "object",
        "properties": {"a": {"$ref": f"#/$defs/level-{levels}"}},
        "required": ["a"],
        "$defs": parts,
    }


def dear_to_compile(levels: int) -> dict[str, Any]:
    """An object that needs twice the time and memory with each level to be looked at at all."""
    parts: dict[str, Any] = {"level-0": {"type": "integer"}}
    for level in range(1, levels + 1):
        below = {"$ref": f"#/$defs/level-{level - 1}"}
        parts[f"level-{level}"] = {"allOf": [below, below], "unevaluatedProperties": False}
    return {"type": "object", "properties": {"a": {"$ref": f"#/$defs/level-{levels}"}}, "$defs": parts}


def arrays(levels: int, size: int = 1_000) -> dict[str, Any]:
    """An object whose member `a` has `size` to the power of `levels` numbers."""
    inner: dict[str, Any] = {"type": "integer"}
    for _ in range(levels):
        inner = {"type": "array", "minItems": size, "items": inner}
    return {"type": "object", "properties": {"a": inner}, "required": ["a"]}
