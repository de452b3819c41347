"""The released generation: an identity and a workspace in every request, paced streams, cancelling.

A runtime keeps the first identity that it receives for its whole life, so Parley's is derived from the
row's and never changes. Each plugin has its own installation id: the runtime itself adds it to all
requests of the plugin, so it identifies the caller better than any field of the request.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID, uuid5

import msgspec

from agents.host_protocol.manifest import RunnerManifest
from agents.host_protocol.run_context import AgentRunContext
from agents.runtimes.plugins.envelopes import Request
from agents.runtimes.plugins.v1_protocol import (
    attachment,
    raw_ref,
    read_manifest,
    with_attachment_refs,
)
from agents.runtimes.plugins.wire_protocol import WireProtocol

_POLICY: Final = {
    "max_cpus": 2.0,
    "max_memory_mb": 2048,
    "max_pids": 512,
    "max_open_files": 4096,
    "max_file_size_mb": 1024,
}
_MANIFEST_FIELDS: Final = ("label", "description", "capabilities", "permissions", "config_schema")
_SCOPES: Final = ("instance_uuid", "workspace_uuid")


class ReleasedProtocol(WireProtocol):
    """The protocol of langbot-plugin 0.7 and similar versions."""

    name = "released"
    paced = True
    lenient = True
    cancels = True
    list_action = "list_runners"
    run_action = "run_runner"

    def __init__(self, identity: UUID) -> None:
        self._identity = identity
        self._plugins: dict[str, str] = {}
        self.context = {
            "instance_uuid": str(identity),
            "workspace_uuid": str(uuid5(identity, "workspace")),
            "placement_generation": 1,
            "installation_uuid": str(uuid5(identity, "host")),
            "runtime_revision": 1,
            "artifact_digest": "0" * 64,
        }

    def greeting(self) -> tuple[str, dict[str, Any]]:
        identity = {
            "instance_uuid": str(self._identity),
            "runtime_id": str(uuid5(self._identity, "runtime")),
        }
        return "set_runtime_config", {
            "runtime_identity": identity,
            "worker_policy": _POLICY,
            "runtime_profile": "oss_dev",
        }

    def manifest(self, entry: Mapping[str, Any]) -> RunnerManifest:
        raw = entry.get("manifest") or {}
        self._installation(f"{entry['plugin_author']}/{entry['plugin_name']}")
        return read_manifest(entry, **{field: raw.get(field) for field in _MANIFEST_FIELDS})

    def run_context(self, context: AgentRunContext) -> dict[str, Any]:
        entity: dict[str, Any] = msgspec.to_builtins(context)
        if entity["trigger"]["source"] == "pipeline_adapter":
            entity["trigger"]["source"] = "host_adapter"
        entity["input"]["attachments"] = [
            {"ref": ref["artifact_id"], **attachment(ref)} for ref in entity["input"]["attachments"]
        ]
        entity["event"]["raw_ref"] = raw_ref(entity["event"]["raw_ref"])
        return entity

    def settings(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        plugin = f"{payload.get('plugin_author')}/{payload.get('plugin_name')}"
        return super().settings(payload) | {"installation_uuid": self._installation(plugin)}

    def _installation(self, plugin: str) -> str:
        """Return the plugin's installation id: the same in every process, as long as the row exists."""
        installation = str(uuid5(self._identity, f"plugin:{plugin}"))
        self._plugins[installation] = plugin
        return installation

    def caller(self, request: Request) -> str | None:
        expected = self.context or {}
        if any(request.context.get(scope) != expected[scope] for scope in _SCOPES):
            return None
        return self._plugins.get(str(request.context.get("installation_uuid")))

    def answer(self, action: str, payload: dict[str, Any]) -> dict[str, Any]:
        return with_attachment_refs(action, payload)
