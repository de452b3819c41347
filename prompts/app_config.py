"""The app config of specs/text-run.md §4: all settings, and the web search's key in one direction."""

from __future__ import annotations

from typing import Any, Final, cast

from django.db import transaction

from config.auth.models import User
from config.errors import InvalidRequest
from prompts import app_settings, web_search
from prompts.app_settings import Value

KEY: Final = "web_search_exa_api_key"


def shown() -> dict[str, Any]:
    """Every setting with its value; of the key only its mask and where it comes from."""
    key = web_search.key_shown()
    return app_settings.everything() | {f"{KEY}_masked": key.masked, f"{KEY}_source": key.source}


@transaction.atomic
def change(values: dict[str, Any], *, by: User) -> None:
    """Store what is given and leave the rest; all of it or, with an InvalidRequest, nothing."""
    for name, value in values.items():
        _check(name, value)
    for name, value in values.items():
        if name == KEY:
            web_search.store_key(value, by=by)
        elif app_settings.get(name) != value:
            app_settings.change(name, cast("Value", value), by=by)


def _check(name: str, value: object) -> None:
    if name == KEY:
        web_search.check_key(value)
    elif not name.isprintable() or len(name) > 100:
        raise InvalidRequest("There is no such setting.", code="setting_unknown")
    else:
        app_settings.check(name, value)
