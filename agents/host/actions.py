"""What runners may ask of the Host: each action is a handler in `agents.host.calls`, under `@action`.

A new action is one handler, with the types of its parameters and its reply; the checks of all actions
are made in one place, `agents.host.session`.
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


def _nothing(ask: Any) -> str:
    return ""


class Action(Struct, frozen=True, kw_only=True):
    """One thing a runner may ask of the Host; see `action`."""

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
        """One thing of the group."""
        return self.group.removesuffix("s")


ACTIONS: Final[dict[str, Action]] = {}


def action(
    name: str,
    group: Group = "",
    operation: str = "",
    *,
    resource: str | Callable[[Any], str] = _nothing,
    seconds: float = 30.0,
) -> Callable[[Handler], Handler]:
    """Make a coroutine the Host action of this name on the wire; a generator answers piece by piece.

    `group` and `operation` are the permission in the manifest; "" of both needs none (state is the
    binding's to allow, `storage`'s operation is the ask's area, `platform_api`'s the asked action).
    `resource` is what the ask is about (a field of it, or a function), for the grant and the audit;
    `seconds` how long it may take.
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
