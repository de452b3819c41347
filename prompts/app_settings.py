"""Typed settings with defaults that staff change while Parley runs; only changes are stored.

To add a setting, add it to `SETTINGS`; admin and the API then show it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, cast

import structlog
from django.db import transaction

from config import sql
from config.audit.recording import record
from config.auth.models import User
from config.cache import CachedValue
from config.errors import InvalidRequest
from prompts.models import AppSetting, ModelMapping, PromptLabel

log = structlog.get_logger(__name__)

Value = str | bool
LONGEST_TEXT: Final = 200


def _names_a_model(value: Value) -> bool:
    key = str(value).removeprefix("global:")
    return not key or ModelMapping.objects.filter(key=key).exists()


def _is_a_label(value: Value) -> bool:
    return not value or PromptLabel.objects.filter(name=value).exists()


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting: a boolean, one of `options`, or a text if the default is a text.

    `exists` queries the database when a value is entered; the object that it names may be deleted
    later.
    """

    name: str
    default: Value
    help: str
    options: tuple[str, ...] = ()
    exists: Callable[[Value], bool] = lambda value: True
    expected: str = "true or false"

    def accepts(self, value: object) -> bool:
        if self.options:
            return value in self.options
        if isinstance(self.default, str):
            return isinstance(value, str) and len(value) <= LONGEST_TEXT and value.isprintable()
        return isinstance(value, bool)


SETTINGS: Final = {
    setting.name: setting
    for setting in (
        Setting(
            "default_result_mode",
            "raw_passthrough",
            "The result mode of text runs whose request sets none.",
            options=("xml_plaintext", "raw_passthrough", "auto"),
        ),
        Setting(
            "default_model",
            "",
            "The model of runs that name none. Empty: the first routable model that needs no tier; the "
            "demo only if there is none.",
            exists=_names_a_model,
            expected="the name of a model mapping, or empty",
        ),
        Setting(
            "prompt_mode",
            "server",
            "server: runs use the active prompts. passthrough: Parley adds no system message.",
            options=("server", "passthrough"),
        ),
        Setting(
            "prompt_label",
            "",
            "A label, such as staging. Runs use the version with this label of each active prompt that "
            "has one, and otherwise the active version.",
            exists=_is_a_label,
            expected="a label that a prompt has, or empty",
        ),
        Setting(
            "web_search_enabled", False, "Runs may search the web; a request can only switch it off."
        ),
        Setting(
            "history_summary",
            False,
            "The model summarises the part of a conversation that no longer fits its context, once; the "
            "summary is stored. Off: that part is left out.",
        ),
        Setting(
            "structured_output",
            "fail",
            "If an answer does not match the requested JSON Schema: fail: the run fails. flag: it "
            "completes, and metadata.structured_output describes the error.",
            options=("fail", "flag"),
        ),
        Setting(
            "show_tool_visible",
            False,
            "Show calls of parley.show as tool calls in addition to their cards.",
        ),
        Setting("web_search_provider", "exa", "The provider of the web search.", options=("exa",)),
    )
}


def get(name: str) -> Value:
    """Return the setting's present value, or its default."""
    return _validated(name, dict(AppSetting.objects.filter(pk=name).values_list("key", "value")))


async def aget(name: str) -> Value:
    """Return the same without the ORM; cached for a second."""
    return _validated(name, await _stored.get())


def get_all() -> dict[str, Value]:
    """Return all settings with their values."""
    stored = dict(AppSetting.objects.values_list("key", "value"))
    return {name: _validated(name, stored) for name in SETTINGS}


@transaction.atomic
def change(name: str, value: Value, *, by: User | None) -> None:
    """Store a value; raise `InvalidRequest` for an unknown name or an invalid value."""
    check(name, value)
    before = get(name)
    stored, _ = AppSetting.objects.update_or_create(
        key=name, defaults={"value": value, "updated_by": by}
    )
    if before != value:
        record("changed", stored, by=by, before={name: before}, after={name: value})
    transaction.on_commit(clear_cache)
    log.info("setting changed", setting=name, value=value, by=by.get_username() if by else "parley")


def check(name: str, value: object) -> None:
    """Raise `InvalidRequest` for an unknown name or an invalid value."""
    setting = SETTINGS.get(name)
    if setting is None:
        raise InvalidRequest(f"There is no setting {name!r}.", code="setting_unknown", field=name)
    if not (setting.accepts(value) and setting.exists(cast("Value", value))):
        expected = f"one of {', '.join(setting.options)}" if setting.options else setting.expected
        raise InvalidRequest(f"{name} must be {expected}.", code="setting_invalid", field=name)


def _validated(name: str, stored: dict[str, object]) -> Value:
    """Return the stored value, or the default if it is missing or no longer valid."""
    setting = SETTINGS[name]
    value = stored.get(name, setting.default)
    return value if isinstance(value, str | bool) and setting.accepts(value) else setting.default


async def _read() -> dict[str, object]:
    return dict(await sql.every("SELECT key, value FROM prompts_appsetting"))


_stored: Final = CachedValue(_read, seconds=1.0)
clear_cache: Final = _stored.clear
