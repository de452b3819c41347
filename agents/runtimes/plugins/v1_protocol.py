"""The first generation: `list_agent_runners`, `run_agent`, large documents in pieces, no cancelling.

Its SDK of June 2026 is treated alike, but lists typed manifests, has no artifacts, and has other names
for their references in history and input attachments; its entities refuse any other key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from agents.host_protocol.manifest import RunnerManifest, known_permissions
from agents.host_protocol.run_context import AgentRunContext
from agents.host_protocol.runner_id import PluginRunnerId, plugin_runner_id
from agents.runtimes.plugins.envelopes import Request
from agents.runtimes.plugins.wire_protocol import WireProtocol

_OLDER_MODELS: Final = frozenset(("invoke", "stream", "rerank"))


class V1Protocol(WireProtocol):
    """The protocol of seed-generation runtimes."""

    name = "v1"
    cut = True
    list_action = "list_agent_runners"
    run_action = "run_agent"

    def __init__(self) -> None:
        self._is_of_june = False

    def greeting(self) -> tuple[str, dict[str, Any]]:
        return "__ping", {}

    def manifest(self, entry: Mapping[str, Any]) -> RunnerManifest:
        raw = entry.get("manifest") or {}
        is_of_june = "id" in raw
        described = raw if is_of_june else raw.get("metadata") or {}
        found = read_manifest(
            entry,
            label=described.get("label"),
            description=entry.get("runner_description") or described.get("description"),
            context=(raw.get("spec") or {}).get("context"),
            capabilities=entry.get("capabilities"),
            permissions=entry.get("permissions"),
            config_schema=entry.get("config"),
        )
        self._is_of_june = is_of_june
        return found

    def run_context(self, context: AgentRunContext) -> dict[str, Any]:
        entity: dict[str, Any] = msgspec.to_builtins(context)
        if entity["trigger"]["source"] == "host_adapter":
            entity["trigger"]["source"] = "pipeline_adapter"
        models = entity["resources"]["models"]
        entity["resources"]["models"] = [_in_older_form(model) for model in models if _is_usable(model)]
        if self._is_of_june:
            entity["input"]["attachments"] = [attachment(ref) for ref in entity["input"]["attachments"]]
            entity["event"]["raw_ref"] = raw_ref(entity["event"]["raw_ref"])
        return entity

    def caller(self, request: Request) -> str | None:
        """Return the caller; runtimes of this generation name it, except in a rerank."""
        found = request.payload.get("caller_plugin_identity")
        return found if isinstance(found, str) and found else None

    def answer(self, action: str, payload: dict[str, Any]) -> dict[str, Any]:
        return with_attachment_refs(action, payload) if self._is_of_june else payload


def attachment(ref: dict[str, Any]) -> dict[str, Any]:
    """Return a file of the input in the form of later entities, which allow no other keys."""
    kept = {key: ref.get(key) for key in ("mime_type", "size", "name", "source", "url", "content", "id")}
    return {"type": ref.get("artifact_type"), **kept}


def raw_ref(ref: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return a reference to a raw event in the form of later entities."""
    if not ref:
        return None
    return {"ref_id": ref.get("artifact_id") or ref.get("ref_id"), "storage_key": ref.get("storage_key")}


def with_attachment_refs(action: str, payload: dict[str, Any]) -> dict[str, Any]:
    """Return the items of a history reply in the form of later entities."""
    if action not in ("history_page", "history_search"):
        return payload
    return payload | {"items": [_later_item(item) for item in payload.get("items") or ()]}


def _later_item(item: dict[str, Any]) -> dict[str, Any]:
    refs = item.get("artifact_refs") or []
    return {key: one for key, one in item.items() if key != "artifact_refs"} | {"attachment_refs": refs}


def _is_usable(model: dict[str, Any]) -> bool:
    operations = model.get("operations")
    return not operations or bool(_OLDER_MODELS.intersection(operations))


def _in_older_form(model: dict[str, Any]) -> dict[str, Any]:
    """Return a model without `count_tokens`, for which older SDKs refuse the whole context."""
    kept = [name for name in model.get("operations") or () if name in _OLDER_MODELS]
    return model | {"operations": kept}


def _without_nulls(value: Any, depth: int = 4) -> Any:
    """Return the value without its nulls.

    An SDK writes a null for every omitted value, as in a text `{"en_US": "Agent", "zh_Hant": null}` of a
    config form's field.
    """
    match value:
        case dict() if depth:
            kept = {key: one for key, one in value.items() if one is not None}
            return {key: _without_nulls(one, depth - 1) for key, one in kept.items()}
        case list() if depth:
            return [_without_nulls(one, depth - 1) for one in value]
    return value


def read_manifest(entry: Mapping[str, Any], **fields: Any) -> RunnerManifest:
    """Return the manifest of a listed runner; its id comes from its place, not from its own name."""
    parts = (str(entry[key]) for key in ("plugin_author", "plugin_name", "runner_name"))
    runner_id = plugin_runner_id(str(PluginRunnerId(*parts)))
    known = _without_nulls(fields)
    if isinstance(may := known.get("permissions"), dict):
        known["permissions"] = known_permissions(may)
    metadata = {"plugin_version": entry["plugin_version"]} if entry.get("plugin_version") else {}
    return msgspec.convert(
        {
            "id": str(runner_id),
            "name": runner_id.runner,
            "label": {"en_US": runner_id.runner},
            "metadata": metadata,
            **known,
        },
        RunnerManifest,
        strict=False,
    )
