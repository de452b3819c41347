"""The settings that staff change while Parley runs: typed, with defaults; only changes are stored.

To add one, add a line to `SETTINGS`; admin and the API show it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, cast

import structlog
from django.db import transaction

from config.audit.recording import record
from config.auth.models import User
from config.database import connection
from config.errors import InvalidRequest
from prompts.models import AppSetting, ModelMapping, PromptLabel
from prompts.remembered import Remembered

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
    """One setting: a switch, one of `options`, or (with a text as default) a text.

    `exists` looks in the database, and only when a value is entered: what a text names may be
    deleted later.
    """

    name: str
    default: Value
    help: str
    options: tuple[str, ...] = ()
    exists: Callable[[Value], bool] = lambda value: True
    wanted: str = "true or false"

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
            "What a text run delivers when its request does not say.",
            options=("xml_plaintext", "raw_passthrough", "auto"),
        ),
        Setting(
            "default_model",
            "",
            "Serves runs that name no model. Empty: the first routable one, the demo only if there is "
            "no other.",
            exists=_names_a_model,
            wanted="the name of a model mapping, or empty",
        ),
        Setting(
            "prompt_mode",
            "server",
            "server: runs use the active prompts. passthrough: runs get no system message of ours.",
            options=("server", "passthrough"),
        ),
        Setting(
            "prompt_label",
            "",
            "Runs use the version that carries this label, such as staging, of each active prompt that "
            "has it; of the others, and if this is empty, the active version.",
            exists=_is_a_label,
            wanted="a label that a prompt has, or empty",
        ),
        Setting(
            "web_search_enabled", False, "Runs may search the web; a request can only switch it off."
        ),
        Setting(
            "history_summary",
            False,
            "What no longer fits a model's context is summarised by it, once, and the summary is kept "
            "with the conversation. Off: it is left out.",
        ),
        Setting(
            "structured_output",
            "fail",
            "An answer that does not fit the JSON Schema asked for. fail: the run fails. flag: it "
            "completes, and metadata.structured_output says what is wrong.",
            options=("fail", "flag"),
        ),
        Setting(
            "show_tool_visible",
            False,
            "Calls of parley.show are shown as tool calls too, not only as the cards they make.",
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
    check(name, value)
    before = get(name)
    stored, _ = AppSetting.objects.update_or_create(
        key=name, defaults={"value": value, "updated_by": by}
    )
    if before != value:
        record("changed", stored, by=by, before={name: before}, after={name: value})
    transaction.on_commit(_stored.forget)
    log.info("setting changed", setting=name, value=value, by=by.get_username() if by else "parley")


def check(name: str, value: object) -> None:
    """Raise `InvalidRequest` for an unknown name or a value that this setting cannot have."""
    setting = SETTINGS.get(name)
    if setting is None:
        raise InvalidRequest(f"There is no setting {name!r}.", code="setting_unknown", field=name)
    if not (setting.accepts(value) and setting.exists(cast("Value", value))):
        wanted = f"one of {', '.join(setting.options)}" if setting.options else setting.wanted
        raise InvalidRequest(f"{name} must be {wanted}.", code="setting_invalid", field=name)


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
