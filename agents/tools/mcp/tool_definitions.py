"""What a server says its tools are, made fit for a model: names, descriptions and schemas.

Providers take names of letters, digits, _ and -, up to 64; a server may say anything. A name that
had to change carries a piece of its digest, so that two never become one.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any, Final

import jsonschema_rs
import msgspec

_UNFIT: Final = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME: Final = 64
_LONGEST_DESCRIPTION: Final = 4_000
_LARGEST_SCHEMA: Final = 64 * 1024
_DEEPEST: Final = 32
# of some milliseconds for any schema; `jsonschema_rs.meta` would fetch the `$schema` that one names
_METASCHEMA: Final = jsonschema_rs.Draft202012Validator(
    {"$ref": "https://json-schema.org/draft/2020-12/schema"}
)


def model_name(label: str, tool: str) -> str:
    """`{label}__{tool}`, as every provider takes it."""
    name = f"{label}__{tool}"
    fit = _UNFIT.sub("_", name)
    if fit == name and len(name) <= _LONGEST_NAME:
        return name
    digest = hashlib.sha256(tool.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{fit[: _LONGEST_NAME - 9]}_{digest}"


def described(text: str | None, tool: str) -> str:
    """The description without control characters, cut; the tool's name where there is none."""
    clean = "".join(c for c in text or "" if c.isprintable() or c in "\n\t").strip()
    return clean[:_LONGEST_DESCRIPTION] or f"The tool {model_name('', tool).strip('_')}."


def usable_schema(schema: Any) -> dict[str, Any] | None:
    """The schema if a model can be shown it: an object's, valid, local and of reasonable size."""
    if not isinstance(schema, dict) or schema.get("type", "object") != "object":
        return None
    try:
        if len(msgspec.json.encode(schema)) > _LARGEST_SCHEMA or not _plain(schema, _DEEPEST):
            return None
        if not _METASCHEMA.is_valid(schema):
            return None
    except (RecursionError, TypeError, ValueError):
        return None
    return {"properties": {}, **schema, "type": "object"}


def _plain(value: Any, depth: int) -> bool:
    """Whether it is not too deep and refers to nothing outside itself."""
    if depth == 0:
        return False
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in ("$ref", "$dynamicRef") and not (isinstance(inner, str) and inner[:1] == "#"):
                return False
            if not _plain(inner, depth - 1):
                return False
        return True
    return not isinstance(value, list) or all(_plain(inner, depth - 1) for inner in value)
