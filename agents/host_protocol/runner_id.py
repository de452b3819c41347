"""The ids of runners; the part before the colon is the runner's home."""

from __future__ import annotations

import re
from typing import Final, Literal, cast

from msgspec import Struct

Home = Literal["plugin", "python", "builtin"]
_PART: Final = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"
_PLUGIN: Final = re.compile(rf"plugin:({_PART})/({_PART})/({_PART})")
_LOCAL: Final = re.compile(rf"(python|builtin):({_PART})")


class PluginRunnerId(Struct, frozen=True):
    """The id of a plugin's runner, `plugin:author/name/runner`."""

    author: str
    plugin: str
    runner: str

    def __str__(self) -> str:
        return f"plugin:{self.author}/{self.plugin}/{self.runner}"

    @property
    def identity(self) -> str:
        """Return the caller's identity, `author/name`: a runtime's `caller_plugin_identity`."""
        return f"{self.author}/{self.plugin}"


def plugin_runner_id(text: str) -> PluginRunnerId:
    """Return the parts of an id; raise ValueError unless it is `plugin:author/name/runner`."""
    found = _PLUGIN.fullmatch(text)
    if found is None:
        raise ValueError("A plugin runner's id is plugin:author/name/runner.")
    return PluginRunnerId(*found.groups())


def home_of(runner_id: str) -> Home:
    """Return the home of the runner with this id; raise ValueError if it is no runner's id."""
    if _PLUGIN.fullmatch(runner_id):
        return "plugin"
    found = _LOCAL.fullmatch(runner_id)
    if found is None:
        raise ValueError("A runner's id is plugin:author/name/runner, python:name or builtin:name.")
    return cast("Home", found.group(1))


def identity_of(runner_id: str) -> str:
    """Return the identity of this runner's calls: its plugin's, or else the runner's own id."""
    return plugin_runner_id(runner_id).identity if home_of(runner_id) == "plugin" else runner_id
