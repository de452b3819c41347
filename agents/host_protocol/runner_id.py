"""The ids of runners: where one lives stands before the colon."""

from __future__ import annotations

import re
from typing import Final, Literal, cast

from msgspec import Struct

Home = Literal["plugin", "python", "builtin"]
_PART: Final = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"
_PLUGIN: Final = re.compile(rf"plugin:({_PART})/({_PART})/({_PART})")
_LOCAL: Final = re.compile(rf"(python|builtin):({_PART})")


class PluginRunnerId(Struct, frozen=True):
    """`plugin:author/name/runner`."""

    author: str
    plugin: str
    runner: str

    def __str__(self) -> str:
        return f"plugin:{self.author}/{self.plugin}/{self.runner}"

    @property
    def identity(self) -> str:
        """Who calls the Host for it: `author/name`, as runtimes say in `caller_plugin_identity`."""
        return f"{self.author}/{self.plugin}"


def plugin_runner_id(given: str) -> PluginRunnerId:
    """The parts of a plugin runner's id. ValueError for anything but `plugin:author/name/runner`."""
    found = _PLUGIN.fullmatch(given)
    if found is None:
        raise ValueError("A plugin runner's id is plugin:author/name/runner.")
    return PluginRunnerId(*found.groups())


def home_of(given: str) -> Home:
    """Where the runner of this id lives. ValueError for what is no runner's id."""
    if _PLUGIN.fullmatch(given):
        return "plugin"
    found = _LOCAL.fullmatch(given)
    if found is None:
        raise ValueError("A runner's id is plugin:author/name/runner, python:name or builtin:name.")
    return cast("Home", found.group(1))


def identity_of(runner_id: str) -> str:
    """Who calls the Host for this runner: the plugin, or the runner itself where it lives here."""
    return plugin_runner_id(runner_id).identity if home_of(runner_id) == "plugin" else runner_id
