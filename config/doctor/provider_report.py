"""The model providers: each active endpoint is asked for its list of models, which costs nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import psycopg
from django.db import Error

from agents.admin import endpoint_check
from config import database
from config.audit import key_openings
from config.doctor.findings import Finding, State, without_secrets
from config.process import refused_settings
from config.process.installation import MANAGE
from prompts.endpoints import secrets
from prompts.models import Endpoint, ModelMapping, ProviderDialect

_GROUP: Final = "providers"
_MOST: Final = 6


def report() -> Iterator[Finding]:
    """Report which endpoints answer and take their keys."""
    for needed in ("DATABASE_URL", "SEALING_KEYS"):
        if refused_settings.is_refused(needed):
            yield _not_asked(f"{needed} is refused")
            return
    try:
        with database.connect():  # Django's pool would wait for ten seconds
            pass
        endpoints = list(
            Endpoint.objects.filter(is_active=True).select_related("secret").order_by("name")
        )
        models = ModelMapping.objects.filter(is_active=True).count()
        number, unreadable = secrets.list_unreadable()
    except (psycopg.Error, Error):
        yield _not_asked("the database cannot be read")
        return
    yield from _stored_keys(number, unreadable)
    asked = [one for one in endpoints if one.dialect != ProviderDialect.DEMO]
    if not asked:
        text = "none: only the offline demo answers"
        yield Finding(_GROUP, "endpoints", "warning", text, "Enter an endpoint and its key in admin.")
        return
    answers = zip(asked, endpoint_check.check_lists(asked), strict=True)
    yield from _shortened([_about(endpoint, *answer) for endpoint, answer in answers])
    if not models:
        yield Finding(_GROUP, "models", "warning", "no model is mapped", "Add a model mapping in admin.")
    database.run_sync(key_openings.write())


def _stored_keys(number: int, unreadable: list[str]) -> Iterator[Finding]:
    if not unreadable:
        if number:
            yield Finding(_GROUP, "stored keys", "ok", f"all {number} are opened by SEALING_KEYS")
        return
    more = ", …" if unreadable[_MOST:] else ""
    text = (
        f"{len(unreadable)} of {number} are opened by none of SEALING_KEYS: "
        f"{', '.join(unreadable[:_MOST])}{more}"
    )
    fix = "Put the keys.json or the SEALING_KEYS back that sealed them, or enter them again in admin."
    yield Finding(_GROUP, "stored keys", "fault", text, fix)


def _about(endpoint: Endpoint, works: bool, message: str) -> Finding:
    text = f"{endpoint.name} at {without_secrets(endpoint.base_url)}: {message}"
    fix = "" if works else f"Mend the endpoint {endpoint.name} in admin."
    return Finding(_GROUP, "endpoint", "ok" if works else "fault", text, fix)


def _shortened(found: list[Finding]) -> Iterator[Finding]:
    """Yield the first of each state, and one line for the others: it is to stay one screen."""
    states: tuple[State, ...] = ("fault", "ok")
    for state in states:
        some = [one for one in found if one.state == state]
        yield from some[:_MOST]
        if len(some) > _MOST:
            fix = "Mend those first, then look again." if state == "fault" else ""
            yield Finding(_GROUP, "endpoints", state, f"{len(some) - _MOST} more", fix)


def _not_asked(reason: str) -> Finding:
    fix = f"Mend that first, then {MANAGE} doctor again."
    return Finding(_GROUP, "endpoints", "warning", f"not asked: {reason}", fix)
