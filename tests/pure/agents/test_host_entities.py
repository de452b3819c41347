"""The Host's values against seed 003's entities: every field, and every default that it prints."""

from __future__ import annotations

from typing import Any, Final, get_args

import msgspec
import pytest
from msgspec.structs import FieldInfo, fields

from agents.host_protocol import errors, manifest, results
from agents.host_protocol import run_context as told
from agents.host_protocol.resources import AgentResources

NEEDED: Final = object()
"""A field for which the seed prints no default."""
SELF: Final = object()
"""A default that is an entity's own."""
OTHERS: Final = frozenset(
    {
        "ContextPolicy.supports_history_search",  # not said, it is as the permissions have it
        "RuntimeContext.host",  # the Host's own name
    }
)
"""Defaults that differ: docs/protocols/conformance.md says where they are ruled on."""
SEED: Final[dict[type[msgspec.Struct], dict[str, Any]]] = {
    manifest.RunnerManifest: {
        "id": NEEDED,
        "name": NEEDED,
        "label": NEEDED,
        "description": None,
        "capabilities": NEEDED,
        "permissions": NEEDED,
        "context": NEEDED,
        "config_schema": [],
        "metadata": {},
    },
    manifest.Capabilities: {
        "streaming": False,
        "tool_calling": False,
        "knowledge_retrieval": False,
        "multimodal_input": False,
        "event_context": True,
        "platform_api": False,
        "interrupt": False,
        "stateful_session": False,
        "self_managed_context": True,
    },
    manifest.Permissions: {
        "models": [],
        "tools": [],
        "knowledge_bases": [],
        "history": [],
        "events": [],
        "artifacts": [],
        "storage": [],
        "files": [],
        "platform_api": [],
    },
    manifest.ContextPolicy: {
        "ownership": "self_managed",
        "bootstrap": "current_event",
        "max_inline_events": 0,
        "max_inline_bytes": 0,
        "supports_history_pull": True,
        "supports_history_search": False,
        "supports_artifact_pull": True,
        "owns_compaction": True,
        "wants_static_context_refs": True,
    },
    told.AgentRunContext: {
        "run_id": NEEDED,
        "trigger": NEEDED,
        "event": NEEDED,
        "conversation": None,
        "actor": None,
        "subject": None,
        "input": NEEDED,
        "delivery": NEEDED,
        "resources": NEEDED,
        "context": NEEDED,
        "state": NEEDED,
        "runtime": NEEDED,
        "config": {},
        "bootstrap": None,
        "adapter": None,
        "metadata": {},
    },
    told.Trigger: {"type": NEEDED, "source": NEEDED, "timestamp": None},
    told.EventContext: {
        "event_id": NEEDED,
        "event_type": NEEDED,
        "event_time": None,
        "source": NEEDED,
        "source_event_type": None,
        "raw_ref": None,
        "data": {},
    },
    told.ConversationContext: dict.fromkeys(
        ("conversation_id", "thread_id", "launcher_type", "launcher_id", "bot_id", "workspace_id")
    ),
    told.ActorContext: {"actor_type": NEEDED, "actor_id": None, "actor_name": None, "metadata": {}},
    told.SubjectContext: {"subject_type": NEEDED, "subject_id": None, "data": {}},
    told.AgentInput: {"text": None, "contents": [], "attachments": []},
    told.DeliveryContext: {
        "surface": NEEDED,
        "reply_target": None,
        "supports_streaming": False,
        "supports_edit": False,
        "supports_reaction": False,
        "max_message_size": None,
        "platform_capabilities": {},
    },
    told.ContextAccess: {
        "conversation_id": None,
        "thread_id": None,
        "latest_cursor": None,
        "event_seq": None,
        "transcript_seq": None,
        "has_history_before": False,
        "inline_policy": NEEDED,
        "available_apis": NEEDED,
    },
    told.InlinePolicy: {
        "mode": NEEDED,
        "delivered_count": 0,
        "source_total_count": None,
        "messages_complete": False,
        "reason": None,
    },
    told.AvailableApis: dict.fromkeys(
        (
            "history_page",
            "history_search",
            "event_get",
            "event_page",
            "artifact_metadata",
            "artifact_read",
            "state",
            "storage",
        ),
        False,
    ),
    told.Bootstrap: {"messages": [], "summary": None, "artifacts": [], "metadata": {}},
    told.RuntimeContext: {
        "host": "langbot",
        "langbot_version": None,
        "trace_id": NEEDED,
        "deadline_at": None,
        "locale": None,
        "timezone": None,
        "static_refs": {},
        "metadata": {},
    },
    told.RunState: {"conversation": {}, "actor": {}, "subject": {}, "runner": {}},
    AgentResources: {
        "models": [],
        "tools": [],
        "knowledge_bases": [],
        "files": [],
        "storage": SELF,
        "platform_capabilities": {},
    },
    results.RunResult: {
        "run_id": NEEDED,
        "type": NEEDED,
        "data": {},
        "sequence": None,
        "timestamp": None,
    },
    errors.AgentAPIError: {"code": NEEDED, "message": NEEDED, "retryable": False, "details": {}},
}
CHOICES: Final = {
    "Permissions.models": {"invoke", "stream", "rerank"},
    "Permissions.tools": {"detail", "call"},
    "Permissions.knowledge_bases": {"list", "retrieve"},
    "Permissions.history": {"page", "search"},
    "Permissions.events": {"get", "page"},
    "Permissions.artifacts": {"metadata", "read"},
    "Permissions.storage": {"plugin", "workspace", "binding"},
    "Permissions.files": {"config", "knowledge"},
    "ContextPolicy.ownership": {"self_managed", "host_bootstrap", "hybrid"},
    "ContextPolicy.bootstrap": {"none", "current_event", "recent_tail", "summary_tail"},
    "InlinePolicy.mode": {"none", "current_event", "recent_tail", "summary_tail"},
    "Trigger.source": {"platform", "webui", "api", "scheduler", "system", "pipeline_adapter"},
}
RESULTS: Final = {
    "message.delta",
    "message.completed",
    "tool.call.started",
    "tool.call.completed",
    "artifact.created",
    "state.updated",
    "action.requested",
    "run.completed",
    "run.failed",
}
CODES: Final = {
    "unauthorized",
    "not_found",
    "deadline_exceeded",
    "payload_too_large",
    "rate_limited",
    "invalid_argument",
    "runtime_error",
}


def default_of(field: FieldInfo) -> Any:
    made = field.default if field.default is not msgspec.NODEFAULT else None
    if field.default_factory is not msgspec.NODEFAULT:
        made = field.default_factory()
    return msgspec.json.decode(msgspec.json.encode(made))


@pytest.mark.parametrize("entity", SEED, ids=lambda entity: entity.__name__)
def test_an_entity_has_the_seeds_fields_and_defaults(entity: type[msgspec.Struct]) -> None:
    ours = {field.encode_name: field for field in fields(entity)}
    assert SEED[entity].keys() <= ours.keys()
    for name, default in SEED[entity].items():
        if default not in (NEEDED, SELF) and f"{entity.__name__}.{name}" not in OTHERS:
            assert default_of(ours[name]) == default, name


@pytest.mark.parametrize("place", CHOICES)
def test_a_choice_has_the_seeds_words(place: str) -> None:
    name, _, field = place.partition(".")
    (entity,) = (entity for entity in SEED if entity.__name__ == name)
    (found,) = (one for one in fields(entity) if one.encode_name == field)
    assert CHOICES[place] <= set(_words(found.type))


def _words(kind: Any) -> list[Any]:
    inner = get_args(kind)
    return [word for one in inner for word in (_words(one) or [one])]


def test_no_entity_counts_rounds_or_tells_of_the_binding() -> None:
    """Seed §3.5: how much history a runner wants is its config's; §2: a binding is the Host's own."""
    names = {field.encode_name for entity in SEED for field in fields(entity)}
    assert [name for name in names if "round" in name or "binding" in name] == []


def test_what_is_granted_lists_no_history_events_or_artifacts() -> None:
    """Seed §5: those are reached by permission and scope, and cannot be enumerated."""
    assert {field.encode_name for field in fields(AgentResources)} == SEED[AgentResources].keys()


def test_the_results_and_codes_are_the_seeds() -> None:
    assert RESULTS <= results.TYPES
    assert set(get_args(errors.Code)) == CODES
