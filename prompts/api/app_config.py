"""The app config of specs/text-run.md §4: all settings, and the write-only key of the web search."""

from __future__ import annotations

from typing import Any, Final, cast

from django.db import transaction

from config.auth.models import User
from config.errors import InvalidRequest
from prompts import app_settings
from prompts.app_settings import Value
from prompts.endpoints import web_search_key

KEY: Final = "web_search_exa_api_key"


def read_config() -> dict[str, Any]:
    """Return all settings with their values, and the mask and source of the key."""
    key = web_search_key.get_masked_key()
    return app_settings.get_all() | {f"{KEY}_masked": key.masked, f"{KEY}_source": key.source}


@transaction.atomic
def change(values: dict[str, Any], *, by: User) -> None:
    """Store the given settings; raise `InvalidRequest` and store nothing if one is invalid."""
    for name, value in values.items():
        _check(name, value)
    for name, value in values.items():
        if name == KEY:
            web_search_key.store_key(value, by=by)
        elif app_settings.get(name) != value:
            app_settings.change(name, cast("Value", value), by=by)


def _check(name: str, value: object) -> None:
    if name == KEY:
        web_search_key.check_key(value)
    elif not name.isprintable() or len(name) > 100:
        raise InvalidRequest("There is no such setting.", code="setting_unknown")
    else:
        app_settings.check(name, value)
