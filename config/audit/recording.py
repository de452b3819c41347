"""Writing of audit entries, and the current actor.

The middleware sets the actor to the signed-in account with `acting_in`; actions pass `by`. An entry is
written in the transaction of its change, so neither exists without the other.
"""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from django.db import models

from config.audit.models import AuditEntry
from config.errors import current_request_id

NOBODY: Final = "parley"
LONGEST_VALUE: Final = 2_000
_acting: ContextVar[Any] = ContextVar("acting", default=None)


@contextmanager
def acting_as(user: Any) -> Iterator[None]:
    """Set the actor of entries inside the block: an account, or None for Parley itself."""
    before = _acting.set(user)
    try:
        yield
    finally:
        _acting.reset(before)


@contextmanager
def acting_in(request: Any) -> Iterator[None]:
    """Set the actor to the account of a request, which is looked up only if needed."""
    with acting_as(lambda: getattr(request, "user", None)):
        yield


def record(
    action: str,
    thing: models.Model | type[models.Model],
    *,
    by: Any = None,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
    name: str = "",
) -> None:
    """Record an action of `by`, or else of the current actor; long values are cut.

    A model in place of one of its rows stands for many of them, which `name` describes.
    """
    actor = by if by is not None else current_actor()
    AuditEntry.objects.create(
        actor=actor,
        actor_name=actor.get_username()[:150] if actor else NOBODY,
        action=action[:64],
        object_type=thing._meta.label_lower,
        object_id="" if isinstance(thing, type) else str(thing.pk)[:64],
        object_name=(name or str(thing))[:200],
        before=to_json_value(before or {}),
        after=to_json_value(after or {}),
        request_id=current_request_id()[:128],
    )


def to_json_value(value: Any) -> Any:
    """Return a value as JSON, with long texts cut."""
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
            return [to_json_value(item) for item in value[:100]]
        case dict():
            return {str(name): to_json_value(item) for name, item in list(value.items())[:100]}
    return _cut(str(value))


def _cut(text: str) -> str:
    text = text.replace("\x00", "�")
    if len(text) <= LONGEST_VALUE:
        return text
    return f"{text[:LONGEST_VALUE]}… ({len(text)} characters)"


def current_actor() -> Any:
    """Return the account that acts; None for Parley itself and for anonymous visitors."""
    found = _acting.get()
    actor = found() if callable(found) else found
    return actor if actor is not None and actor.is_authenticated else None
