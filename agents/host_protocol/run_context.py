"""The context of a run for its runner: the event itself, and handles for the rest (seed §4).

Times (`timestamp`, `event_time`, `deadline_at`) are epoch seconds.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from agents.host_protocol.messages import ContentElement, Message
from agents.host_protocol.resources import AgentResources

Scope = Literal["conversation", "actor", "subject", "runner", "binding"]
SCOPES: tuple[Scope, ...] = ("conversation", "actor", "subject", "runner", "binding")
INLINED: tuple[Scope, ...] = SCOPES[:4]
"""The scopes of the initial snapshot (seed §4.11); a runner reads `binding` by a call (§7.7)."""


class Trigger(Struct, frozen=True):
    """The cause of a run. `source`: `pipeline_adapter` in v1 runtimes, `host_adapter` in released ones;
    Parley sends `api`.
    """

    type: str
    source: Literal[
        "platform", "webui", "api", "scheduler", "system", "pipeline_adapter", "host_adapter"
    ] = "api"
    timestamp: int | None = None


class EventContext(Struct, frozen=True, kw_only=True):
    event_id: str
    event_type: str
    event_time: int | None = None
    source: str
    source_event_type: str | None = None
    raw_ref: dict[str, Any] | None = None
    data: dict[str, Any] = {}


class ConversationContext(Struct, frozen=True, kw_only=True):
    conversation_id: str | None = None
    thread_id: str | None = None
    launcher_type: str | None = None
    launcher_id: str | None = None
    sender_id: str | None = None
    bot_id: str | None = None
    workspace_id: str | None = None
    session_id: str | None = None


class ActorContext(Struct, frozen=True, kw_only=True):
    actor_type: str
    actor_id: str | None = None
    actor_name: str | None = None
    metadata: dict[str, Any] = {}


class SubjectContext(Struct, frozen=True, kw_only=True):
    subject_type: str
    subject_id: str | None = None
    data: dict[str, Any] = {}


class ArtifactRef(Struct, frozen=True, kw_only=True):
    """A file of the input; the released entity has the same fields except `artifact_id`."""

    artifact_id: str
    artifact_type: str | None = None
    mime_type: str | None = None
    size: int | None = None
    name: str | None = None
    source: str | None = None
    url: str | None = None
    content: str | None = None
    id: str | None = None


class AgentInput(Struct, frozen=True, kw_only=True):
    text: str | None = None
    contents: tuple[ContentElement, ...] = ()
    attachments: tuple[ArtifactRef, ...] = ()


class DeliveryContext(Struct, frozen=True, kw_only=True):
    surface: str
    reply_target: dict[str, Any] | None = None
    supports_streaming: bool = False
    supports_edit: bool = False
    supports_reaction: bool = False
    max_message_size: int | None = None
    platform_capabilities: dict[str, Any] = {}


class InlinePolicy(Struct, frozen=True, kw_only=True):
    mode: Literal["none", "current_event", "recent_tail", "summary_tail"] = "current_event"
    delivered_count: int = 0
    source_total_count: int | None = None
    messages_complete: bool = False
    reason: str | None = None


class AvailableApis(Struct, frozen=True, kw_only=True):
    """`ContextAPICapabilities`: the Host calls that this run may make."""

    history_page: bool = False
    history_search: bool = False
    event_get: bool = False
    event_page: bool = False
    artifact_metadata: bool = False
    artifact_read: bool = False
    state: bool = False
    storage: bool = False
    prompt_get: bool = False
    run_append_result: bool = False


class ContextAccess(Struct, frozen=True, kw_only=True):
    conversation_id: str | None = None
    thread_id: str | None = None
    latest_cursor: str | None = None
    event_seq: int | None = None
    transcript_seq: int | None = None
    has_history_before: bool = False
    inline_policy: InlinePolicy = InlinePolicy()
    available_apis: AvailableApis = AvailableApis()


class RunState(Struct, frozen=True, kw_only=True):
    """A snapshot of the Host's state, by scope."""

    conversation: dict[str, Any] = {}
    actor: dict[str, Any] = {}
    subject: dict[str, Any] = {}
    runner: dict[str, Any] = {}


class RuntimeContext(Struct, frozen=True, kw_only=True):
    """The run's environment.

    `deadline_at`: epoch seconds after which the Host refuses every call. `static_refs`: the SHA-256 of
    the system prompt (`get_prompt`) and of the grants.
    """

    host: str = "parley"
    langbot_version: str | None = None
    sdk_protocol_version: str = "1"
    query_id: int | None = None
    trace_id: str | None = None
    deadline_at: float | None = None
    locale: str | None = None
    timezone: str | None = None
    static_refs: dict[str, Any] = {}
    metadata: dict[str, Any] = {}


class Bootstrap(Struct, frozen=True, kw_only=True):
    """Inlined history, for a runner whose manifest requires it."""

    messages: tuple[Message, ...] = ()
    summary: str | None = None
    artifacts: tuple[ArtifactRef, ...] = ()
    metadata: dict[str, Any] = {}


class AgentRunContext(Struct, frozen=True, kw_only=True):
    """One run, for its runner; `config` is the binding's, `adapter.extra` is the rest of the request."""

    run_id: str
    trigger: Trigger
    event: EventContext
    conversation: ConversationContext | None = None
    actor: ActorContext | None = None
    subject: SubjectContext | None = None
    input: AgentInput
    delivery: DeliveryContext
    resources: AgentResources
    context: ContextAccess = ContextAccess()
    state: RunState = RunState()
    runtime: RuntimeContext
    config: dict[str, Any] = {}
    bootstrap: Bootstrap | None = None
    adapter: dict[str, Any] | None = None
    metadata: dict[str, Any] = {}
