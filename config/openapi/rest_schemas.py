"""Schemas of the REST framework's views: models, settings, prompts and the library of exercises.

The views refer to them by name (`config.http.drf_views.published`).
"""

from __future__ import annotations

from typing import Final

from agents.tools.exercises.import_files import LibraryItem
from agents.tools.exercises.index import ExerciseDto
from agents.tools.exercises.library_bodies import PatchBody, SeedBody, TableBody
from agents.tools.exercises.library_reads import LibraryMeta, LibraryUpdates
from config.http.documentation.schema_builders import (
    COUNT,
    TEXT,
    Schema,
    any_of,
    array,
    envelope,
    record,
    ref,
)
from config.openapi.derived_schemas import derive_structs
from prompts.api.prompts import DeletedPrompt, PromptPreview, PromptVersionChoice
from prompts.app_settings import SETTINGS, Setting
from prompts.endpoints import web_search_key
from prompts.endpoints.routing import ListedEndpoint
from prompts.wordings.prompt_crud import PromptBody, PromptItem

_STRUCTS: Final = (PromptBody, PromptItem, DeletedPrompt, PromptPreview, ListedEndpoint, TableBody)
_TOOL: Final[Schema] = {"description": "A tool definition: any JSON that staff have entered."}
_TOOLS: Final[Schema] = {
    "type": ["array", "object", "null"],
    "items": _TOOL,
    "additionalProperties": True,
    "description": "A list of tool definitions, or a single one.",
}


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
    choice = derive_structs(PromptVersionChoice)["PromptVersionChoice"]
    return (
        _exercise_bodies()
        | derive_structs(*_STRUCTS, LibraryMeta, LibraryUpdates)
        | {
            "LlmModels": envelope(array(any_of(ref("LlmModel"), ref("ListedEndpoint"))), total=COUNT),
            "PromptTools": _TOOLS,
            "AppConfigChanges": written,
            "AppConfig": envelope(shown),
            "Prompts": envelope(array(ref("PromptItem")), total=COUNT, page=COUNT, page_size=COUNT),
            "Prompt": envelope(ref("PromptItem")),
            "PromptDeleted": envelope(ref("DeletedPrompt")),
            "PromptVersionChoice": choice | {"additionalProperties": False},  # they are ignored
            "ActivePrompts": envelope(ref("PromptPreview")),
            "Exercise": derive_structs(ExerciseDto)["ExerciseDto"],
            "LibraryPublish": any_of(ref("TableBody"), ref("SeedBody")),
            "LibraryPatch": ref("PatchBody"),
        }
    )
