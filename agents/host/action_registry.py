"""The Host's actions for runners: each is a handler in `agents.host.actions`, decorated by `@action`.

A new action is one handler, with the types of its parameters and its reply; the checks of all actions
are in one place, `agents.host.session`.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import isasyncgenfunction
from operator import attrgetter
from typing import Any, Final, Literal, TypeVar, get_type_hints

from msgspec import Struct

Group = Literal[
    "models", "tools", "knowledge_bases", "history", "events", "artifacts", "storage", "files",
    "platform_api", "state", "",
]  # fmt: skip
Handler = TypeVar("Handler", bound=Callable[[Any, Any], Any])


def _no_resource(params: Any) -> str:
    return ""


class Action(Struct, frozen=True, kw_only=True):
    """One action of the Host; see `action`."""

    name: str
    handler: Callable[[Any, Any], Any]
    takes: type[Struct]
    streams: bool
    group: Group
    operation: str
    resource: Callable[[Any], str]
    seconds: float

    @property
    def kind(self) -> str:
        """Return the group's name in the singular."""
        return self.group.removesuffix("s")


ACTIONS: Final[dict[str, Action]] = {}


def action(
    name: str,
    group: Group = "",
    operation: str = "",
    *,
    resource: str | Callable[[Any], str] = _no_resource,
    seconds: float = 30.0,
) -> Callable[[Handler], Handler]:
    """Register a coroutine as the Host action with this name on the wire; a generator yields replies.

    `group` and `operation` are the required permission in the manifest; no permission is required if
    both are "" (the binding allows state; the operation of `storage` is the parameter `area`, that of
    `platform_api` the requested action). `resource` is a field of the parameters, or a function of
    them, for the grant and the audit; `seconds` is the time limit.
    """

    def register(handler: Handler) -> Handler:
        _, takes, *_ = get_type_hints(handler).values()
        ACTIONS[name] = Action(
            name=name,
            handler=handler,
            takes=takes,
            streams=isasyncgenfunction(handler),
            group=group,
            operation=operation,
            resource=attrgetter(resource) if isinstance(resource, str) else resource,
            seconds=seconds,
        )
        return handler

    return register
