"""Schemas of the REST framework's views: models, settings, prompts and the publication of exercises.

The views refer to them by name (`config.http.drf_views.published`).
"""

from __future__ import annotations

from typing import Final

from agents.tools.exercises.import_files import LibraryItem
from agents.tools.exercises.library_bodies import PatchBody, SeedBody, TableBody
from config.http.documentation.schema_builders import (
    COUNT,
    FLAG,
    TEXT,
    TIME,
    Schema,
    any_of,
    array,
    envelope,
    nullable,
    record,
    ref,
)
from config.openapi.derived_schemas import derive_structs
from prompts.app_settings import SETTINGS, Setting
from prompts.endpoints import web_search_key
from prompts.wordings.prompt_crud import PromptBody

_ID: Final = {"type": "integer"}
_TOOL: Final[Schema] = {"description": "A tool definition: any JSON that staff have entered."}
_TOOLS: Final = {
    "type": ["array", "object", "null"],
    "items": _TOOL,
    "additionalProperties": True,
    "description": "A list of tool definitions, or a single one.",
}
_PROMPT: Final = record(
    id=_ID,
    name=TEXT,
    content=TEXT,
    version=nullable(_ID),
    category=TEXT,
    description=TEXT,
    tools_json=_TOOLS,
    prompt_type=TEXT,
    is_active=FLAG,
    active_version=nullable(_ID),
    created_at=TIME,
    updated_at=TIME,
)
_IN_USE: Final = nullable(record(id=_ID, name=TEXT, version=_ID, content=TEXT, tools_json=_TOOLS))
_ENDPOINT: Final = record(
    endpoint_id=_ID,
    name=TEXT,
    provider=TEXT,
    dialect=TEXT,
    base_url=TEXT,
    is_active=FLAG,
    key_masked=TEXT,
    updated_at=TIME,
)


def _value(setting: Setting) -> Schema:
    if setting.options:
        return {"enum": list(setting.options), "description": setting.help}
    kind = "string" if isinstance(setting.default, str) else "boolean"
    return {"type": kind, "description": setting.help}


def _app_config() -> tuple[Schema, Schema]:
    """Return the schemas of the settings in requests and in responses."""
    key, settings = web_search_key.FIELD, {name: _value(setting) for name, setting in SETTINGS.items()}
    written = TEXT | {"description": "Write-only; an empty value removes the key."}
    shown: dict[str, Schema] = {
        f"{key}_masked": TEXT,
        f"{key}_source": {"enum": ["db", "env", "none"]},
    }
    return record(optional=settings | {key: written}), record(**settings, **shown)


def _exercise_bodies() -> dict[str, Schema]:
    """Return the bodies that publish exercises; theirs are read one by one, so that errors name them."""
    found = derive_structs(SeedBody, PatchBody, LibraryItem)
    found["LibraryItem"]["properties"]["id"].pop("default")  # an id that is left out is made
    item, change = ref("LibraryItem"), found["LibraryItem"] | {"required": ["id"]}
    found["SeedBody"]["properties"]["payload"]["items"] = item
    found["PatchBody"]["properties"] |= {"added": array(item), "updated": array(change)}
    return found


def rest_schemas() -> dict[str, Schema]:
    """Return the schemas by name."""
    written, shown = _app_config()
    in_use = record(agent_system=_IN_USE, agent_tools=_IN_USE, system_message=nullable(TEXT))
    return (
        _exercise_bodies()
        | derive_structs(PromptBody, TableBody)
        | {
            "LlmModels": envelope(array(any_of(ref("LlmModel"), _ENDPOINT)), total=COUNT),
            "AppConfigChanges": written,
            "AppConfig": envelope(shown),
            "Prompts": envelope(array(_PROMPT), total=COUNT, page=COUNT, page_size=COUNT),
            "Prompt": envelope(_PROMPT),
            "PromptDeleted": envelope(record(id=_ID)),
            "PromptVersionChoice": record(optional={"version": nullable(_ID)}),
            "ActivePrompts": envelope(in_use),
            "LibraryPublish": any_of(ref("TableBody"), ref("SeedBody")),
            "LibraryPatch": ref("PatchBody"),
        }
    )
