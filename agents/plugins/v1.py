"""The first generation: `list_agent_runners`, `run_agent`, large documents in pieces, no cancelling."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from agents.hosting.manifest import RunnerManifest
from agents.hosting.run_context import AgentRunContext
from agents.hosting.runner_id import PluginRunnerId, plugin_runner_id
from agents.plugins.channel import Channel
from agents.plugins.envelopes import Request

_OLDER_MODELS: Final = frozenset(("invoke", "stream", "rerank"))


class V1:
    """Speaks with seed-generation runtimes."""

    name = "v1"
    paced = False
    cut = True
    lenient = False
    list_action = "list_agent_runners"
    run_action = "run_agent"
    context: dict[str, Any] | None = None

    async def greet(self, channel: Channel) -> None:
        await channel.ask("__ping", {})

    def manifest(self, entry: Mapping[str, Any]) -> RunnerManifest:
        raw = entry.get("manifest") or {}
        told, spec = raw.get("metadata") or {}, raw.get("spec") or {}
        return read_manifest(
            entry,
            label=told.get("label"),
            description=entry.get("runner_description") or told.get("description"),
            context=spec.get("context") or {},
            capabilities=entry.get("capabilities"),
            permissions=entry.get("permissions"),
            config_schema=entry.get("config"),
        )

    def run_context(self, context: AgentRunContext) -> dict[str, Any]:
        told: dict[str, Any] = msgspec.to_builtins(context)
        if told["trigger"]["source"] == "host_adapter":
            told["trigger"]["source"] = "pipeline_adapter"
        models = told["resources"]["models"]
        told["resources"]["models"] = [_older(model) for model in models if _usable(model)]
        return told

    def settings(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        return plugin_settings()

    def caller(self, request: Request) -> str | None:
        """Runtimes of this generation name the plugin themselves, but not where it asks for a rerank."""
        found = request.payload.get("caller_plugin_identity")
        return found if isinstance(found, str) and found else None

    def answer(self, action: str, payload: dict[str, Any]) -> dict[str, Any]:
        return payload


def _usable(model: dict[str, Any]) -> bool:
    operations = model.get("operations")
    return not operations or bool(_OLDER_MODELS.intersection(operations))


def _older(model: dict[str, Any]) -> dict[str, Any]:
    """A model without `count_tokens`, which makes older SDKs refuse the whole context."""
    kept = [name for name in model.get("operations") or () if name in _OLDER_MODELS]
    return model | {"operations": kept}


def plugin_settings() -> dict[str, Any]:
    """What every plugin is told of itself: it is on, and its runners are configured by bindings."""
    return {
        "enabled": True,
        "priority": 0,
        "plugin_config": {},
        "install_source": "local",
        "install_info": {},
    }


def read_manifest(entry: Mapping[str, Any], **told: Any) -> RunnerManifest:
    """A manifest of a listed runner; its id is made of where it lives, whatever it calls itself."""
    parts = (str(entry[key]) for key in ("plugin_author", "plugin_name", "runner_name"))
    runner_id = plugin_runner_id(str(PluginRunnerId(*parts)))
    given = {key: value for key, value in told.items() if value is not None}
    metadata = {"plugin_version": entry["plugin_version"]} if entry.get("plugin_version") else {}
    return msgspec.convert(
        {
            "id": str(runner_id),
            "name": runner_id.runner,
            "label": {"en_US": runner_id.runner},
            "metadata": metadata,
            **given,
        },
        RunnerManifest,
        strict=False,
    )
