"""Variables in a wording: `{{ name }}` or `{{ name | what stands there without a value }}`.

A value comes from outside (a client's context, an account's name), so it is put in as one short line
from which nothing can be closed or begun: no line end, no comment mark, no braces that would be read
as a variable again. A name that is none of ours stays as it is written, so a wording that is about
templates needs no escaping; `\\{{ date }}` is how one of ours is written out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

LONGEST_VALUE: Final = 500
VARIABLES: Final[dict[str, str]] = {
    "date": "the day on which the run starts, such as 2026-03-14 (of TIME_ZONE)",
    "time": "the time at which it starts, such as 09:26",
    "weekday": "the day's name, such as Saturday",
    "model": "the model that was asked for",
    "user.name": "the account's first name, or else its user name",
    "user.email": "the account's address",
    "user.tier": "the account's tier",
}
"""The names that Parley fills, beside `app.…` and `context.…`."""
SOURCES: Final[dict[str, str]] = {
    "user.": "the account that asked",
    "app.": "app settings",
    "context.": "the client's context, by its description",
}
_NAME: Final = r"[a-z][a-z0-9_]*(?:\.[a-z0-9_-]+)*"
_VARIABLE: Final = re.compile(r"(\\?)\{\{[ \t]*(" + _NAME + r")[ \t]*(?:\|([^{}\r\n]*))?\}\}")
_NOT_IN_NAMES: Final = re.compile(r"[^a-z0-9-]+")
_LINE_ENDS: Final = re.compile("[\x00-\x1f\x7f\x80-\x9f\u2028\u2029]+")


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of a wording; `default` is None where none is written."""

    name: str
    default: str | None

    @property
    def source(self) -> str:
        """Where its value comes from, for people."""
        if self.name in VARIABLES:
            return VARIABLES[self.name]
        return next(said for start, said in SOURCES.items() if self.name.startswith(start))


def is_ours(name: str) -> bool:
    """Whether Parley fills a variable of this name."""
    return name in VARIABLES or name.startswith(("app.", "context."))


def variables(wording: str) -> tuple[Variable, ...]:
    """The variables in the order in which they first appear."""
    found: dict[str, Variable] = {}
    for escaped, name, default in _VARIABLE.findall(wording):
        if not escaped and is_ours(name):
            known = found.get(name)
            said = default.strip() or None
            if known is None or (known.default is None and said is not None):
                found[name] = Variable(name, said)
    return tuple(found.values())


def unknown(wording: str) -> tuple[str, ...]:
    """Names in braces that Parley does not fill; they stay as they are written."""
    names = (name for escaped, name, _ in _VARIABLE.findall(wording) if not escaped)
    return tuple(dict.fromkeys(name for name in names if not is_ours(name)))


def has_variables(wording: str) -> bool:
    """Whether filling would change anything."""
    return "{{" in wording and any(
        escaped or is_ours(name) for escaped, name, _ in _VARIABLE.findall(wording)
    )


def filled(wording: str, values: Mapping[str, str]) -> str:
    """The wording with every variable's value, else its default, else nothing in its place."""

    def put(found: re.Match[str]) -> str:
        escaped, name, default = found.groups()
        if not is_ours(name):
            return found[0]
        if escaped:
            return found[0][1:]
        return inert(values.get(name) or "") or (default or "").strip()

    return _VARIABLE.sub(put, wording)


def inert(value: str) -> str:
    """The value as one line that closes and begins nothing, cut to LONGEST_VALUE characters."""
    line = _LINE_ENDS.sub(" ", value[: 4 * LONGEST_VALUE]).strip()
    for mark, harmless in (("<!--", "<! --"), ("-->", "-- >"), ("{{", "{ {"), ("}}", "} }")):
        line = line.replace(mark, harmless)
    line = line.replace("```", "'''")
    return line if len(line) <= LONGEST_VALUE else f"{line[: LONGEST_VALUE - 1]}…"


def context_name(description: str) -> str:
    """A client's context item as a variable: `User Time-Zone` is `context.user_time-zone`."""
    name = _NOT_IN_NAMES.sub("_", description.strip().lower()).strip("_")
    return f"context.{name[:64]}" if name else ""
