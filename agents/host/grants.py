"""The grants of a run: the manifest's permissions, cut by its binding (specs/runner-host.md).

Effective grants = permissions ∩ (grants of the binding ∪ selections of its config).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final
from uuid import UUID

from msgspec import Struct

from agents.host_protocol.manifest import KNOWLEDGE_FIELDS, MODEL_FIELDS, TOOL_FIELDS, RunnerManifest
from agents.host_protocol.resources import (
    AgentResources,
    FileResource,
    KnowledgeBaseResource,
    ModelResource,
    StorageResource,
    ToolResource,
)
from agents.host_protocol.run_context import SCOPES
from agents.tools.base import Tool

EVERY: Final = "*"
USUAL_CALLS_PER_MINUTE: Final = 6_000


class Binding(Struct, frozen=True, kw_only=True):
    """A row of `agents.RunnerBinding`; the defaults, for runs without one, grant only the own model."""

    id: int = 0
    name: str = ""
    runner_id: str = ""
    model: str = ""
    dialect: str = ""
    user_id: UUID | None = None
    tier: str = ""
    prompt_id: int | None = None
    thread_id: UUID | None = None
    config: dict[str, Any] = {}
    own_model: bool = True
    further_models: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    knowledge_bases: tuple[str, ...] = ()
    storage: tuple[str, ...] = ()
    platform_actions: tuple[str, ...] = ()
    state_enabled: bool = True
    state_scopes: tuple[str, ...] = ()
    calls_per_minute: int = USUAL_CALLS_PER_MINUTE
    deadline_s: int | None = None
    delivery: str = "stream"

    @property
    def scopes(self) -> frozenset[str]:
        """Return the scopes of state that its runner may use."""
        if not self.state_enabled:
            return frozenset()
        return frozenset(SCOPES) & frozenset(self.state_scopes or SCOPES)


class Base(Struct, frozen=True):
    """A knowledge base that is in use."""

    id: UUID
    name: str
    embedding_model: str = ""


def selected_values(manifest: RunnerManifest, config: dict[str, Any], kinds: Iterable[str]) -> list[str]:
    """Return the config's selections in form fields of these kinds, without repetitions."""
    types = frozenset(kinds)
    found: list[str] = []
    for item in manifest.config_schema:
        if item.type in types:
            found += _names_in(config.get(item.name, item.default))
    return list(dict.fromkeys(found))


def model_names(manifest: RunnerManifest, binding: Binding, own: str) -> list[str]:
    """Return the public names of the models that the run may call, with the run's own first."""
    chosen = selected_values(manifest, binding.config, MODEL_FIELDS)
    names = [*([own] if binding.own_model and own else []), *binding.further_models, *chosen]
    return list(dict.fromkeys(public_name(name) for name in names))


def tool_names(manifest: RunnerManifest, binding: Binding) -> tuple[str, ...] | None:
    """Return the names of the granted tools; None means all tools of the run's user."""
    chosen = [*binding.tools, *selected_values(manifest, binding.config, TOOL_FIELDS)]
    return None if EVERY in chosen else tuple(dict.fromkeys(chosen))


def resources(
    manifest: RunnerManifest,
    binding: Binding,
    *,
    models: Sequence[tuple[str, str]],
    tools: Sequence[Tool],
    bases: Sequence[Base],
) -> AgentResources:
    """Return the grants of one run; `models` are (public name, provider) of those that have a route."""
    may = manifest.permissions
    chosen = {*binding.knowledge_bases, *selected_values(manifest, binding.config, KNOWLEDGE_FIELDS)}
    areas = frozenset(may.storage) & frozenset(binding.storage)
    return AgentResources(
        models=tuple(ModelResource(name, "llm", by, may.models) for name, by in models if may.models),
        tools=tuple(
            ToolResource(
                tool.name,
                tool.kind,
                tool.description,
                may.tools,
                tool.parameters if "detail" in may.tools else None,
            )
            for tool in tools
            if may.tools
        ),
        knowledge_bases=tuple(
            KnowledgeBaseResource(base.id.hex, base.name, "text", may.knowledge_bases)
            for base in bases
            if may.knowledge_bases and chosen & {base.name, base.id.hex, str(base.id)}
        ),
        files=_files(manifest, binding),
        storage=StorageResource("plugin" in areas, "workspace" in areas),
        platform_capabilities=dict.fromkeys(platform_actions(manifest, binding), True),
    )


def platform_actions(manifest: RunnerManifest, binding: Binding) -> list[str]:
    """Return the platform actions that both the manifest and the binding allow."""
    allowed = manifest.permissions.platform_api
    return [name for name in binding.platform_actions if name in allowed or EVERY in allowed]


def _files(manifest: RunnerManifest, binding: Binding) -> tuple[FileResource, ...]:
    """Return the files that the binding's config names in its form's `file` fields."""
    if "config" not in manifest.permissions.files:
        return ()
    keys = selected_values(manifest, binding.config, ("file", "array[file]"))
    return tuple(FileResource(key, key, None, "config") for key in keys)


def _names_in(value: Any) -> list[str]:
    """Return the names in a form's value: one, a list, `{primary, fallbacks}` or `{file_key}`."""
    match value:
        case str() if value and value != "__none__":
            return [value]
        case list() | tuple():
            return [name for one in value for name in _names_in(one)]
        case dict():
            keys = ("primary", "fallbacks", "file_key", "name", "uuid")
            return [name for key in keys for name in _names_in(value.get(key))]
    return []


def public_name(name: str) -> str:
    """Return the public name of a model mapping, `global:…`, from that name or the key alone."""
    return name if name.startswith("global:") else f"global:{name}"
