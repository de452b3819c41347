"""Errors of a body, for its sender: the place by the body's keys, and our words.

Pydantic reports both in its own terms: its places hold names of our classes and of the branches of a
union, one error for each, and its sentences may hold values of the body. None of that is passed on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic.alias_generators import to_camel

from config.errors import InvalidRequest

MOST_ERRORS: Final = 20
_LONGEST_KEY: Final = 64
Body = TypeVar("Body", bound=BaseModel)
_Path = tuple[str | int, ...]

_WORDS: Final = {
    "string_type": "must be a string",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "int_parsing": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "list_type": "must be an array",
    "missing": "is required",
    "extra_forbidden": "is not known here",
    "literal_error": "must be {expected}",
    "union_tag_invalid": "must be one of {expected_tags}",
    "union_tag_not_found": "is required",
    "string_too_long": "may have at most {max_length:,} characters",
    "string_too_short": "must have at least {min_length:,} characters",
    "too_long": "may have at most {max_length:,} items",
    "too_short": "must have at least {min_length:,} items",
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
}
"""Our words for each kind of pydantic's errors; the names are those of its context."""


def validate_body(model: type[Body], body: Any, what: str, *, at: Sequence[str | int] = ()) -> Body:
    """Return the body as this model. Raise InvalidRequest, whose errors name the wrong places.

    `what` is the kind of the body, `at` its place in the whole body.
    """
    try:
        return model.model_validate(body)
    except ValidationError as error:
        found = _field_errors(error, body, at=at)
    first = found[0]
    where = "".join(
        f"[{key}]" if isinstance(key, int) else f".{key}" for key in first["loc"][1:]
    ).removeprefix(".")
    sentence = f"{where} {first['msg']}" if where else f"it {first['msg']}"
    raise InvalidRequest(f"The body is not a valid {what}: {sentence}.", errors=found)


def _field_errors(error: ValidationError, body: Any, *, at: Sequence[str | int]) -> list[dict[str, Any]]:
    """Return each wrong place of `body`, at most 20: `loc` its path, `msg` our words, `type` a code."""
    found: dict[_Path, dict[str, list[str]]] = {}
    branches: set[_Path] = set()
    for item in error.errors(include_url=False, include_input=False):
        path, whole = _path(item["loc"], body, missing=item["type"] == "missing")
        if item["type"].startswith("union_tag"):
            path = (*path, item["ctx"]["discriminator"].strip("'"))
        if not whole:
            branches.add(path)
        words = found.setdefault(path, {})
        template = _WORDS.get(item["type"], "is not valid")
        words.setdefault(template.format(**item.get("ctx", {})), []).append(item["type"])
    paths = [path for path in found if not (path in branches and _is_within(path, found))]
    return [
        {
            "loc": ["body", *at, *path],
            "msg": _together(list(found[path])),
            "type": next(iter(found[path].values()))[0],
        }
        for path in paths[:MOST_ERRORS]
    ]


def _path(loc: tuple[int | str, ...], body: Any, *, missing: bool) -> tuple[_Path, bool]:
    """Return the place by the body's own keys, and whether it is all that pydantic names."""
    path: list[str | int] = []
    node, last = body, len(loc) - 1
    for place, step in enumerate(loc):
        if isinstance(step, int) and isinstance(node, list) and step < len(node):
            key: str | int = step
        elif isinstance(step, str) and isinstance(node, dict) and (own := _key(step, node)) is not None:
            key = own
        elif missing and place == last:
            return (*path, step), True
        else:
            continue
        path.append(key[:_LONGEST_KEY] if isinstance(key, str) else key)
        node = node[key]
    return tuple(path), len(path) == len(loc)


def _key(step: str, node: dict[str, Any]) -> str | None:
    """Return the body's key for this step, which may be written in snake_case."""
    if step in node:
        return step
    return next((key for key in node if to_camel(key) == step), None)


def _is_within(path: _Path, found: dict[_Path, Any]) -> bool:
    """Return whether another error is more exact, in the branch that the sender meant."""
    return any(len(other) > len(path) and other[: len(path)] == path for other in found)


def _together(words: list[str]) -> str:
    """Return one sentence for the demands of all branches of a union."""
    kinds = [one.removeprefix("must be ") for one in words if one.startswith("must be ")]
    return f"must be {' or '.join(kinds)}" if len(kinds) == len(words) else words[0]
