"""Hypothesis strategies from our own JSON Schemas: values that are valid, and values that nearly are."""

from __future__ import annotations

import copy
import json
from typing import Any

import jsonschema
from hypothesis import strategies as st

from tests.support.paths import SCHEMAS

JSON = Any

_UNITS = ["x", "好", "😀", "<b>", "\x00", "\ud800", "\u202e", '"', "\\", "](javascript:x) ", " \n"]
_TAILS = [
    "e.com/a.png",
    "e.com",
    "[::1]:8/x?q=1#f",
    "例子.cn/图",
    "",
    " ",
    "u:p@e.com",
    "e\\f",
    "/x",
    "\x00",
    "\ud800",
]
_OF_PATTERN = {
    "^https://": st.sampled_from(_TAILS).map("https://".__add__),
    "^/": st.sampled_from(["", "a/b?c=d", "/host", "\\host", "\t/x", "行程", "\ud800"]).map("/".__add__),
    "^[a-z0-9_]{1,40}$": st.sampled_from(["a", "check_circle", "9" * 40]),
    "^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$": st.sampled_from(["en", "zh-CN", "zh-Hant-TW", "yue"]),
}
_LOOSE_LOCALES = st.sampled_from(["en", "zh-CN", "", "zh_CN", "en\n", "x" * 80, "zh" + "-abc" * 99])
_NEARLY: list[Any] = [
    None, True, False, 0, 1, -1, 7, 0.5, 1e308, 10**400, "", "x", "\x00", "\ud800", "x" * 5000,
    "http://e.com", "javascript:alert(1)", "data:text/html,x", [], {}, [[]], [{}], [None] * 200,
    {"type": "copy", "text": "x"}, {"label": "x"}, {"type": "text", "content": "x"},
    {"type": "script", "content": "x"},
]  # fmt: skip


def load(name: str) -> dict[str, Any]:
    """The published schema of that name."""
    found: dict[str, Any] = json.loads((SCHEMAS / f"{name}.schema.json").read_text())
    return found


def validator(name: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(load(name))


def valid(name: str) -> st.SearchStrategy[JSON]:
    """Values that the schema accepts, limits and awkward texts among them."""
    schema = load(name)
    made: dict[str, st.SearchStrategy[JSON]] = {}
    for ref, part in schema.get("$defs", {}).items():
        made[f"#/$defs/{ref}"] = _later(part, made)
    return _strategy(schema, made)


def _later(part: dict[str, Any], made: dict[str, st.SearchStrategy[JSON]]) -> st.SearchStrategy[JSON]:
    """Definitions name each other, and themselves."""
    return st.deferred(lambda: _strategy(part, made))


@st.composite
def nearly_valid(draw: st.DrawFn, name: str) -> JSON:
    """A valid value with one place in it changed, lost or added: often invalid, sometimes not."""
    value = copy.deepcopy(draw(valid(name)))
    holder, key = draw(st.sampled_from(_places(value)))
    match draw(st.sampled_from(["change", "lose", "add", "double"])):
        case "lose":
            del holder[key]
        case "add" if isinstance(holder, dict):
            holder[draw(st.sampled_from(["id", "html", "status", "onclick", "url", ""]))] = "x"
        case "double" if isinstance(holder[key], list | str):
            holder[key] = holder[key] * 60
        case _:
            holder[key] = draw(st.sampled_from(_NEARLY))
    return value


def _places(value: JSON) -> list[tuple[Any, Any]]:
    """Every (holder, key) in the value."""
    keys: list[Any] = (
        list(value)
        if isinstance(value, dict)
        else list(range(len(value)))
        if isinstance(value, list)
        else []
    )
    return [(value, key) for key in keys] + [place for key in keys for place in _places(value[key])]


def _strategy(
    schema: dict[str, Any], made: dict[str, st.SearchStrategy[JSON]]
) -> st.SearchStrategy[JSON]:
    match schema:
        case {"$ref": ref}:
            return made[ref]
        case {"oneOf": choices}:
            return st.one_of([_strategy(choice, made) for choice in choices])
        case {"const": value}:
            return st.just(value)
        case {"enum": values}:
            return st.sampled_from(values)
        case {"type": "object"}:
            return _objects(schema, made)
        case {"type": "array"}:
            return _arrays(schema, made)
        case {"type": "string"}:
            return _texts(schema)
        case {"type": "boolean"}:
            return st.booleans()
        case {"type": "integer"}:
            return st.integers(schema["minimum"], schema["maximum"])
        case {"type": "number"}:
            whole = st.sampled_from([schema["minimum"], schema["maximum"]])
            return whole | st.floats(schema["minimum"], schema["maximum"])
    raise AssertionError(f"not known here: {schema}")


def _objects(
    schema: dict[str, Any], made: dict[str, st.SearchStrategy[JSON]]
) -> st.SearchStrategy[JSON]:
    fields = {name: _strategy(part, made) for name, part in schema["properties"].items()}
    required = {name: fields.pop(name) for name in schema.get("required", ())}
    enough = schema.get("minProperties", 0)
    return st.fixed_dictionaries(required, optional=fields).filter(lambda value: len(value) >= enough)


def _arrays(schema: dict[str, Any], made: dict[str, st.SearchStrategy[JSON]]) -> st.SearchStrategy[JSON]:
    """Few different items, and sometimes as many as are allowed."""
    item, least, most = _strategy(schema["items"], made), schema.get("minItems", 0), schema["maxItems"]
    few = st.lists(item, min_size=least, max_size=min(most, 3))
    recursive = "$ref" in schema["items"]  # full at every level would be 50 to the power of the depth
    return few if recursive else st.one_of(few, item.map(lambda one: [one] * most))


def _texts(schema: dict[str, Any]) -> st.SearchStrategy[str]:
    if pattern := schema.get("pattern"):
        return _OF_PATTERN[pattern]
    if "maxLength" not in schema:
        return _LOOSE_LOCALES
    least, most = schema.get("minLength", 0), schema["maxLength"]
    short = st.lists(st.sampled_from(_UNITS), max_size=4).map(lambda units: "".join(units)[:most])
    longest = st.sampled_from(_UNITS).map(lambda unit: (unit * most)[:most])
    return st.one_of(short, st.text(max_size=min(most, 12)), longest).filter(
        lambda text: len(text) >= least
    )
