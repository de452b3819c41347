"""What frames are made of, without what they say: how recordings of real peers are kept and compared.

`reduce` puts a placeholder of its kind for every text, id and number and keeps what a reader may act
upon: members, types, nulls, closed words, places, order. `Profile` gathers what a side sends, and
`unlike` tells what one of two sides could not have sent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

TEXT: Final = "…"
PIECE: Final = "1"
"""A piece of a call's arguments: so many of them are a JSON number of so many digits."""
_WORDS: Final = frozenset(
    {"type", "@type", "object", "role", "status", "code", "reason", "category", "phase", "modality"}
    | {"finish_reason", "native_finish_reason", "stop_reason", "finishReason", "blockReason"}
    | {"service_tier", "serviceTier", "tag"}
)
_NUMBERS: Final = frozenset(
    {"index", "output_index", "content_index", "summary_index", "annotation_index"}
    | {"code", "status_code"}
)
_PIECES: Final = frozenset({"arguments", "partial_json"})
_FREE: Final = frozenset(
    {"tools", "metadata", "parameters", "args", "input", "action", "schema", "executed_tools", "raw"}
    | {"groundingMetadata", "inputSchema", "outputSchema", "structuredContent"}
)
"""Below these stands what a caller, a tool or a model chose."""
_WORD: Final = re.compile(r"[A-Za-z][\w.:/-]{0,63}", re.ASCII)


class Ids(dict[str, str]):
    """Each id of a recording by its number, so that the same one stays the same."""

    def __missing__(self, key: str) -> str:
        self[key] = found = f"id-{len(self) + 1}"
        return found


def reduce(value: Any, ids: Ids, name: str = "") -> Any:
    """The shape of a frame, or of what stands in it under this name."""
    match value:
        case dict() | list() if name in _FREE:
            return type(value)() if not value else {TEXT: TEXT} if isinstance(value, dict) else [TEXT]
        case {"type": "response.function_call_arguments.delta"}:
            named = {"delta": "arguments"}
            return {key: reduce(one, ids, named.get(key, key)) for key, one in value.items()}
        case dict():
            return {key: reduce(inner, ids, key) for key, inner in value.items()}
        case list():
            return _without_repeats([reduce(inner, ids, name) for inner in value])
        case str():
            return _word(value, ids, name)
        case bool() | None | 0:
            return value
        case int():
            return value if name in _NUMBERS else 1
    return 0.5


def _word(value: str, ids: Ids, name: str) -> str:
    if not value or (name in _WORDS and _WORD.fullmatch(value)):
        return value
    if name in _PIECES:
        return PIECE
    return ids[value] if re.search(r"(?:^|_)id$|Id$", name) else TEXT


def _without_repeats(values: list[Any]) -> list[Any]:
    return [one for at, one in enumerate(values) if not at or one != values[at - 1]]


def places(value: Any, path: str = "") -> Iterator[str]:
    """Where a frame has what: `.data.runners[].config[].label.zh_Hant null`.

    An object that says its type has it in its path: `.item<message>.content[]<output_text>.text`.
    """
    yield f"{path} {_kind(value)}"
    for inner, below in _inside(value, path):
        yield from places(inner, below)


def _members(value: Any, path: str) -> Iterator[tuple[str, frozenset[str]]]:
    """The members of every object in a frame, by where it stands."""
    if isinstance(value, dict) and not _is_free(path):
        yield _typed(path, value), frozenset(value)
    for inner, below in _inside(value, path):
        yield from _members(inner, below)


def _inside(value: Any, path: str) -> Iterator[tuple[Any, str]]:
    if _is_free(path):
        return
    match value:
        case dict():
            yield from ((inner, f"{_typed(path, value)}.{key}") for key, inner in value.items())
        case list():
            yield from ((inner, f"{path}[]") for inner in value)


def _typed(path: str, value: dict[str, Any]) -> str:
    kind = value.get("type")
    return f"{path}<{kind}>" if isinstance(kind, str) and not path.endswith((":", "error")) else path


def _is_free(path: str) -> bool:
    return path.rpartition(".")[2].removesuffix("[]") in _FREE


def _kind(value: Any) -> str:
    match value:
        case dict():
            return "object"
        case list():
            return "array"
        case bool():
            return "boolean"
        case None:
            return "null"
        case str():
            return "string"
    return "number"


class Profile:
    """What the streams of one side have: places, members that never fail, and what follows what.

    `kind` names a frame's kind, which is the beginning of its paths.
    """

    def __init__(self, streams: Iterable[Sequence[Any]], kind: Callable[[Any], str]) -> None:
        self.places: set[str] = set()
        self.follows: set[tuple[str, str]] = set()
        self.always: dict[str, frozenset[str]] = {}
        for frames in streams:
            kinds = [kind(frame) for frame in frames]
            self.follows.update(pairwise(["the beginning", *kinds, "the end"]))
            for name, frame in zip(kinds, frames, strict=True):
                self._take(name, frame)

    def _take(self, kind: str, frame: Any) -> None:
        self.places.update(places(frame, f"{kind}:"))
        for path, members in _members(frame, f"{kind}:"):
            self.always[path] = self.always.get(path, members) & members


def unlike(fake: Profile, real: Profile) -> list[str]:
    """What the fake sends and its peer does not, leaves out or never sends, and what is out of order."""
    lacking = (
        f"lacks {path}.{member}"
        for path, members in fake.always.items()
        for member in real.always.get(path, frozenset()) - members
    )
    return sorted(
        [
            *(f"not the peer's: {place}" for place in fake.places - real.places),
            *(f"never sent: {place}" for place in real.places - fake.places),
            *lacking,
            *(f"{two} after {one}" for one, two in fake.follows - real.follows),
        ]
    )
