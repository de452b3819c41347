"""The members whose form is not Parley's to say, each with whose it is.

A schema that is derived from a type cannot stay a bare `object`: a new open member of a type must be
explained here, or the document cannot be made.
"""

from __future__ import annotations

from typing import Any, Final

from config.http.documentation.schema_builders import Schema

_OPENAI: Final = "In the form of OpenAI's API."
_IGNORED: Final = "Accepted and ignored."
_OPEN: Final[dict[str, str]] = {
    "actor": "Who did it, if it is no message: `actor_type`, `actor_id`, `actor_name`, `metadata`.",
    "added": "An exercise.",
    "args": "The arguments of the call, in the form that the tool declares.",
    "arguments": "The arguments of the call, in the form that the tool declares.",
    "content": "The content of an activity; `activityType` says of which form it is.",
    "data": "In the form that the type of its holder says, or the sender's own.",
    "default": "The field's value if none is set.",
    "edited_arguments": "The arguments that replace those of the call.",
    "forwardedProps": "Options of the run: `model`, `generation`, `responseFormat`, `onDisconnect` "
    "(`cancel`) and `history` (`stored`). The rest is for tools and runners.",
    "metadata": "Notes of the sender, who alone knows their form.",
    "options": "One of the field's choices.",
    "parameters": "Of a tool: the JSON Schema of its arguments. Of a call: the arguments.",
    "payload": "What belongs to it, in a form of its own.",
    "properties": "The JSON Schema of each argument.",
    "provider_specific_fields": "What only this provider says.",
    "result": "The result of the tool, in a form of its own.",
    "resume": "AG-UI's answers to interrupts, which its own address takes.",
    "state": "The thread's state, which is the client's: any JSON.",
    "subject": "Whom it concerns, if it is no message: `subject_type`, `subject_id`, `data`.",
    "target": "The target of the action, in the form of its platform.",
    "tools_json": "A list of tool definitions, or a single one.",
    "updated": "Changes of an exercise.",
    "usage": "The numbers of tokens, by their kinds.",
    "value": "Any JSON.",
    **dict.fromkeys(
        (
            "allowed_tools",
            "filters",
            "format",
            "require_approval",
            "response_format",
            "tool_choice",
            "tools",
            "user_location",
        ),
        _OPENAI,
    ),
    **dict.fromkeys(
        (
            "active_version",
            "client_metadata",
            "created_at",
            "id",
            "prompt_cache_options",
            "stream_options",
            "updated_at",
            "version",
        ),
        _IGNORED,
    ),
}
_ANNOTATIONS: Final = frozenset({"title", "default", "description"})


def explain(node: Any, name: str = "") -> Any:
    """Describe each schema that allows anything; `name` is the member that the schema belongs to.

    Raise KeyError for a member that nobody has explained.
    """
    if isinstance(node, list):
        return [explain(value, name) for value in node]
    if not isinstance(node, dict):
        return node
    found = {key: explain(value, name) for key, value in node.items() if key not in _LITERAL}
    found |= {key: node[key] for key in _LITERAL & node.keys()}
    if "properties" in node:
        found["properties"] = {key: explain(value, key) for key, value in node["properties"].items()}
    return _explained(found, name) if _is_open(found) else found


_LITERAL: Final = frozenset({"properties", "default", "const", "enum", "required", "examples"})


def _is_open(schema: Schema) -> bool:
    """Return whether the schema says nothing of its values, or only that they are objects."""
    if not schema.keys() - _ANNOTATIONS:
        return True
    return schema.get("type") in ("object", ["object", "null"]) and not (
        "properties" in schema or isinstance(schema.get("additionalProperties"), dict)
    )


def _explained(schema: Schema, name: str) -> Schema:
    found = schema if "description" in schema else schema | {"description": _OPEN[name]}
    return found | ({"additionalProperties": True} if "type" in found else {})
