"""The settings that staff change while Parley runs: typed, with defaults; only changes are stored.

To add one, add a line to `SETTINGS`; admin and the API show it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import structlog
from django.db import transaction

from config.auth.models import User
from config.database import connection
from config.errors import InvalidRequest
from prompts.models import AppSetting
from prompts.remembered import Remembered

log = structlog.get_logger(__name__)

Value = str | bool


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: a switch, or one of `options`."""

    name: str
    default: Value
    help: str
    options: tuple[str, ...] = ()

    def accepts(self, value: object) -> bool:
        return value in self.options if self.options else isinstance(value, bool)

    @property
    def wanted(self) -> str:
        return f"one of {', '.join(self.options)}" if self.options else "true or false"


SETTINGS: Final = {
    setting.name: setting
    for setting in (
        Setting(
            "default_result_mode",
            "raw_passthrough",
            "What a text run delivers when its request does not say.",
            options=("xml_plaintext", "raw_passthrough", "auto"),
        ),
        Setting(
            "prompt_mode",
            "server",
            "server: runs use the active prompts. passthrough: runs get no system message of ours.",
            options=("server", "passthrough"),
        ),
        Setting(
            "web_search_enabled", False, "Runs may search the web; a request can only switch it off."
        ),
        Setting("web_search_provider", "exa", "Who searches the web.", options=("exa",)),
    )
}


def get(name: str) -> Value:
    """The setting's value now, or its default."""
    return _valid(name, dict(AppSetting.objects.filter(pk=name).values_list("key", "value")))


async def aget(name: str) -> Value:
    """The same without the ORM; at most a second old."""
    return _valid(name, await _stored.get())


def forget() -> None:
    """Let `aget` read again at once in this process."""
    _stored.forget()


def everything() -> dict[str, Value]:
    """All settings with their values."""
    stored = dict(AppSetting.objects.values_list("key", "value"))
    return {name: _valid(name, stored) for name in SETTINGS}


@transaction.atomic
def change(name: str, value: Value, *, by: User | None) -> None:
    """Store a value; raises `InvalidRequest` for an unknown name or a value of another type."""
    setting = SETTINGS.get(name)
    if setting is None:
        raise InvalidRequest(f"There is no setting {name!r}.", code="setting_unknown", field=name)
    if not setting.accepts(value):
        raise InvalidRequest(f"{name} must be {setting.wanted}.", code="setting_invalid", field=name)
    AppSetting.objects.update_or_create(key=name, defaults={"value": value, "updated_by": by})
    transaction.on_commit(_stored.forget)
    log.info("setting changed", setting=name, value=value, by=by.get_username() if by else "parley")


def _valid(name: str, stored: dict[str, object]) -> Value:
    """The stored value, or the default where an older release stored what is no longer accepted."""
    setting = SETTINGS[name]
    value = stored.get(name, setting.default)
    return value if isinstance(value, str | bool) and setting.accepts(value) else setting.default


async def _read() -> dict[str, object]:
    async with connection() as held:
        rows = await (await held.execute("SELECT key, value FROM prompts_appsetting")).fetchall()
    return dict(rows)


_stored: Final = Remembered(_read, seconds=1.0)
