"""The grants of one run (seed §5): its manifest's permissions, cut by its binding.

An entry's `operations` are those of the runner's permissions that apply to it. An empty list means all
operations on the wire, so an entry without allowed operations is left out.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class ModelResource(Struct, frozen=True):
    model_id: str
    model_type: str | None = None
    provider: str | None = None
    operations: tuple[str, ...] = ()


class ToolResource(Struct, frozen=True):
    tool_name: str
    tool_type: str | None = None
    description: str | None = None
    operations: tuple[str, ...] = ()
    parameters: dict[str, Any] | None = None


class KnowledgeBaseResource(Struct, frozen=True):
    kb_id: str
    kb_name: str | None = None
    kb_type: str | None = None
    operations: tuple[str, ...] = ()


class FileResource(Struct, frozen=True):
    file_id: str
    file_name: str | None = None
    mime_type: str | None = None
    source: str | None = None


class StorageResource(Struct, frozen=True):
    plugin_storage: bool = False
    workspace_storage: bool = False


class AgentResources(Struct, frozen=True):
    models: tuple[ModelResource, ...] = ()
    tools: tuple[ToolResource, ...] = ()
    knowledge_bases: tuple[KnowledgeBaseResource, ...] = ()
    files: tuple[FileResource, ...] = ()
    storage: StorageResource = StorageResource()
    platform_capabilities: dict[str, Any] = {}
