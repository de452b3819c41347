"""Write the audit log: who acts, what is watched, and what of it may be told.

The actor is whoever `acting_as` names: the middleware names the one who is signed in, an action its
`by`. An entry is written in the transaction of the change, so neither is there without the other.
"""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

import structlog
from django.db import models

from config.audit.models import AuditEntry

NOBODY: Final = "parley"
LONGEST_VALUE: Final = 2_000
_acting: ContextVar[Any] = ContextVar("acting", default=None)


@contextmanager
def acting_as(user: Any) -> Iterator[None]:
    """Whatever is recorded inside was done by this account, or (None) by Parley itself."""
    before = _acting.set(user)
    try:
        yield
    finally:
        _acting.reset(before)


@contextmanager
def acting_in(request: Any) -> Iterator[None]:
    """The same for a request, whose account is looked up only if something is recorded."""
    with acting_as(lambda: getattr(request, "user", None)):
        yield


def record(
    action: str,
    thing: models.Model,
    *,
    by: Any = None,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
    name: str = "",
) -> None:
    """Say that `by` (else whoever acts) did this to the thing; values are cut, never a secret's text."""
    actor = by if by is not None else actor_now()
    AuditEntry.objects.create(
        actor=actor,
        actor_name=actor.get_username()[:150] if actor else NOBODY,
        action=action[:64],
        object_type=thing._meta.label_lower,
        object_id=str(thing.pk)[:64],
        object_name=(name or str(thing))[:200],
        before=told(before or {}),
        after=told(after or {}),
        request_id=str(structlog.contextvars.get_contextvars().get("request_id", ""))[:128],
    )


def told(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The facts as JSON that a page can show."""
    return {name: plain(value) for name, value in facts.items()}


def plain(value: Any) -> Any:
    """A value as JSON, long texts cut."""
    match value:
        case None | bool() | int() | float():
            return value
        case str():
            return _cut(value)
        case datetime.datetime() | datetime.date():
            return value.isoformat()
        case uuid.UUID() | models.Model():
            return str(value)
        case list() | tuple():
            return [plain(item) for item in value[:100]]
        case dict():
            return {str(name): plain(item) for name, item in list(value.items())[:100]}
    return _cut(str(value))


def _cut(text: str) -> str:
    text = text.replace("\x00", "�")
    if len(text) <= LONGEST_VALUE:
        return text
    return f"{text[:LONGEST_VALUE]}… ({len(text)} characters)"


def actor_now() -> Any:
    """The account that acts; None for Parley itself and for whoever has not signed in."""
    found = _acting.get()
    actor = found() if callable(found) else found
    return actor if actor is not None and actor.is_authenticated else None
