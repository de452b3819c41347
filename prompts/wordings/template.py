"""Variables in a wording: `{{ name }}` or `{{ name | default }}`.

Values are untrusted (a client's context, an account's name), so a value becomes one short line
without line breaks, comment marks or braces that would form another variable. Unknown names stay
unchanged, so a wording about templates needs no escaping; `\\{{ date }}` escapes a known one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

LONGEST_VALUE: Final = 500
VARIABLES: Final[dict[str, str]] = {
    "date": "the date on which the run starts, such as 2026-03-14 (in TIME_ZONE)",
    "time": "the time at which the run starts, such as 09:26",
    "weekday": "the name of that day, such as Saturday",
    "model": "the requested model",
    "user.name": "the account's first name, or else its user name",
    "user.email": "the account's email address",
    "user.tier": "the account's tier",
}
"""The variables that Parley fills, besides `app.…` and `context.…`."""
SOURCES: Final[dict[str, str]] = {
    "user.": "the account that started the run",
    "app.": "app settings",
    "context.": "the client's context, by its description",
}
_NAME: Final = r"[a-z][a-z0-9_]*(?:\.[a-z0-9_-]+)*"
_VARIABLE: Final = re.compile(r"(\\?)\{\{[ \t]*(" + _NAME + r")[ \t]*(?:\|([^{}\r\n]*))?\}\}")
_NOT_IN_NAMES: Final = re.compile(r"[^a-z0-9-]+")
_LINE_ENDS: Final = re.compile("[\x00-\x1f\x7f\x80-\x9f\u2028\u2029]+")


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of a wording; `default` is None if it has none."""

    name: str
    default: str | None

    @property
    def source(self) -> str:
        """The source of its value, for people."""
        if self.name in VARIABLES:
            return VARIABLES[self.name]
        return next(text for start, text in SOURCES.items() if self.name.startswith(start))


def is_known(name: str) -> bool:
    """Return whether Parley fills a variable of this name."""
    return name in VARIABLES or name.startswith(("app.", "context."))


def find_variables(wording: str) -> tuple[Variable, ...]:
    """Return the variables in the order in which they first appear."""
    found: dict[str, Variable] = {}
    for escaped, name, default in _VARIABLE.findall(wording):
        if not escaped and is_known(name):
            known = found.get(name)
            default = default.strip() or None
            if known is None or (known.default is None and default is not None):
                found[name] = Variable(name, default)
    return tuple(found.values())


def find_unknown(wording: str) -> tuple[str, ...]:
    """Return the names in braces that Parley does not fill; they stay unchanged."""
    names = (name for escaped, name, _ in _VARIABLE.findall(wording) if not escaped)
    return tuple(dict.fromkeys(name for name in names if not is_known(name)))


def has_variables(wording: str) -> bool:
    """Return whether `fill` would change the wording."""
    return "{{" in wording and any(
        escaped or is_known(name) for escaped, name, _ in _VARIABLE.findall(wording)
    )


def fill(wording: str, values: Mapping[str, str]) -> str:
    """Replace every variable by its value, or else its default, or else nothing."""

    def replace(found: re.Match[str]) -> str:
        escaped, name, default = found.groups()
        if not is_known(name):
            return found[0]
        if escaped:
            return found[0][1:]
        return sanitize(values.get(name) or "") or (default or "").strip()

    return _VARIABLE.sub(replace, wording)


def sanitize(value: str) -> str:
    """Return the value as one line without markup, cut to LONGEST_VALUE characters."""
    line = _LINE_ENDS.sub(" ", value[: 4 * LONGEST_VALUE]).strip()
    for mark, harmless in (("<!--", "<! --"), ("-->", "-- >"), ("{{", "{ {"), ("}}", "} }")):
        line = line.replace(mark, harmless)
    line = line.replace("```", "'''")
    return line if len(line) <= LONGEST_VALUE else f"{line[: LONGEST_VALUE - 1]}…"


def make_context_name(description: str) -> str:
    """Return the variable of a client's context item: `context.user_time-zone` for `User Time-Zone`."""
    name = _NOT_IN_NAMES.sub("_", description.strip().lower()).strip("_")
    return f"context.{name[:64]}" if name else ""
