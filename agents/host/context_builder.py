"""Build the context of a hosted runner's run: the event itself, and handles for the rest (seed §4).

History is inlined only if the manifest's context policy requires a tail, and only within its limits.
The client's parameters beside its messages are in `metadata.params`, without those that look secret.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Sequence
from itertools import takewhile
from typing import Any, Final

import msgspec
from django.conf import settings

from agents.context.summary import wrap_summary
from agents.host import request_messages, sealed_config
from agents.host.actions import history, models, state
from agents.host.actions.files import LANGBOT_VERSION
from agents.host.grants import Binding
from agents.host.run_input import agent_input, upload_ref
from agents.host.session import Scene
from agents.host_protocol import run_context
from agents.host_protocol.manifest import ContextPolicy, RunnerManifest
from agents.host_protocol.messages import Message
from agents.host_protocol.run_context import AgentRunContext
from agents.providers.base import ChatMessage
from agents.providers.base import ToolCall as ProviderCall
from agents.providers.decoding import parse_object
from agents.requests import Happened
from agents.runners.base import RunContext
from config.auth import accounts

MESSAGE: Final = "message.received"
DECIDED: Final = "approval.decided"
_SECRET: Final = re.compile(
    r"secret|token|passw|api.?key|authorization|credential|cookie|private.?key", re.IGNORECASE
)
_encode: Final = msgspec.json.Encoder().encode
_LARGEST_PARAMS: Final = 64 * 1024
_LONGEST_OUTCOME: Final = 64 * 1024
_MAX_COUNTED: Final = 10_000
_USUAL_MESSAGES: Final = 50
_USUAL_BYTES: Final = 64 * 1024


async def build_context(context: RunContext, scene: Scene, *, inlines: bool = False) -> AgentRunContext:
    """Return the context of one run for its runner; with `inlines` the input contains its files."""
    input_message = request_messages.input_message(context)
    before = _messages_before(context)
    tail = _tail(before, scene.manifest)
    # without an event the cause is a message, or a decided approval
    happened = context.request.event or Happened(DECIDED if input_message is None else MESSAGE)
    now = int(time.time())
    return AgentRunContext(
        run_id=scene.run_id.hex,
        trigger=run_context.Trigger(happened.event_type, happened.trigger, happened.event_time or now),
        event=run_context.EventContext(
            event_id=f"{scene.run_id.hex}-1",
            event_type=happened.event_type,
            event_time=happened.event_time or now,
            source=happened.source,
            source_event_type=happened.source_event_type or context.request.dialect,
            data={"outcomes": _outcomes(context)} if happened.event_type == DECIDED else happened.data,
        ),
        conversation=_conversation(scene),
        actor=await _actor(happened, scene),
        subject=_subject(happened, scene),
        input=await agent_input(input_message, inlines=inlines),
        delivery=run_context.DeliveryContext(
            surface=context.request.dialect,
            supports_streaming=scene.binding.delivery == "stream",
            platform_capabilities=scene.resources.platform_capabilities,
        ),
        resources=scene.resources,
        context=await _access(context, scene, len(before), tail),
        state=await state.snapshot(scene),
        runtime=run_context.RuntimeContext(
            trace_id=context.request.request_id,
            deadline_at=scene.deadline_at,
            langbot_version=LANGBOT_VERSION,
            timezone=settings.TIME_ZONE,
            static_refs=_static_refs(scene),
        ),
        config=await sealed_config.open_config(scene.binding, scene.manifest),
        bootstrap=None if tail is None else _bootstrap(context, before, tail),
        adapter=_adapter(context),
        metadata={"params": public_params(context.request.forwarded_props), "model": scene.model},
    )


async def _actor(happened: Happened, scene: Scene) -> run_context.ActorContext | None:
    """Return the run's user; for an event of another type, the actor that the caller names."""
    if happened.event_type in (MESSAGE, DECIDED):
        named = await accounts.find(scene.user_id)
        return run_context.ActorContext(
            actor_type="user",
            actor_id=scene.user_id.hex,
            actor_name=named.display_name if named else None,
        )
    if happened.actor is None:
        return None
    return msgspec.convert(happened.actor, run_context.ActorContext, from_attributes=True)


def _subject(happened: Happened, scene: Scene) -> run_context.SubjectContext | None:
    if happened.event_type in (MESSAGE, DECIDED):
        kind = "message" if happened.event_type == MESSAGE else "approval"
        return run_context.SubjectContext(subject_type=kind, subject_id=scene.subject_id)
    if happened.subject is None:
        return None
    return msgspec.convert(happened.subject, run_context.SubjectContext, from_attributes=True)


def _static_refs(scene: Scene) -> dict[str, Any]:
    """Return hashes of what stays the same between runs, so that a runner can check its caches."""
    if not scene.manifest.context.wants_static_context_refs:
        return {}
    contents = {"system": scene.system.encode(), "resources": _encode(scene.resources)}
    return {name: {"sha256": hashlib.sha256(content).hexdigest()} for name, content in contents.items()}


def _outcomes(context: RunContext) -> list[dict[str, Any]]:
    """Return the outcomes of calls that waited for approval: the answers that end the conversation."""
    latest = list(takewhile(lambda message: message.role != "user", reversed(context.conversation)))
    calls = {call.id: call for message in latest for call in message.tool_calls}
    return [
        _outcome(message, calls.get(message.tool_call_id or ""))
        for message in reversed(latest)
        if message.role == "tool"
    ]


def _outcome(answer: ChatMessage, call: ProviderCall | None) -> dict[str, Any]:
    """Return the outcome of one call, with its tool's name and parameters if they are known."""
    outcome = {"tool_call_id": answer.tool_call_id, "content": answer.content[:_LONGEST_OUTCOME]}
    if call is None:
        return outcome
    return outcome | {"tool_name": call.name, "parameters": parse_object(call.arguments)}


def _conversation(scene: Scene) -> run_context.ConversationContext | None:
    thread = scene.conversation_id
    if thread is None:
        return None
    return run_context.ConversationContext(
        conversation_id=thread,
        thread_id=thread,
        launcher_type="person",
        launcher_id=scene.user_id.hex,
        sender_id=scene.user_id.hex,
        session_id=thread,
    )


async def _access(
    context: RunContext, scene: Scene, known: int, tail: tuple[Message, ...] | None
) -> run_context.ContextAccess:
    is_first = scene.thread_seq <= 1 and len(context.request.messages) <= 1
    counted = 0 if is_first else await history.count_before(scene, 1 if tail is None else _MAX_COUNTED)
    total = max(counted, known)
    left_out = total - len(tail or ())
    return run_context.ContextAccess(
        conversation_id=scene.conversation_id,
        thread_id=scene.conversation_id,
        latest_cursor=history.latest_cursor(scene),
        event_seq=1,
        transcript_seq=scene.thread_seq,
        has_history_before=left_out > 0,
        inline_policy=_inline_policy(context, scene.manifest.context, tail, total=total),
        available_apis=_apis(scene),
    )


def _apis(scene: Scene) -> run_context.AvailableApis:
    """Return the Host calls that are allowed to the run and that its manifest declares."""
    may, policy = scene.manifest.permissions, scene.manifest.context
    scopes = [scope for scope in run_context.SCOPES if scope in scene.binding.scopes]
    here = scene.thread_id is not None
    files = policy.supports_artifact_pull
    return run_context.AvailableApis(
        history_page=here and policy.supports_history_pull and "page" in may.history,
        history_search=(
            here and policy.supports_history_search is not False and "search" in may.history
        ),
        event_get=here and "get" in may.events,
        event_page=here and "page" in may.events,
        artifact_metadata=files and "metadata" in may.artifacts,
        artifact_read=files and "read" in may.artifacts,
        state=any(scene.scope_key(scope) for scope in scopes),
        storage=bool(frozenset(may.storage) & frozenset(scene.binding.storage)),
        prompt_get=True,
        run_append_result=True,
    )


def _inline_policy(
    context: RunContext, policy: ContextPolicy, tail: tuple[Message, ...] | None, *, total: int
) -> run_context.InlinePolicy:
    """Return the policy in effect: only the event, or a tail and its share of the conversation."""
    if tail is None and policy.bootstrap == "none":
        return run_context.InlinePolicy(mode="none", reason="bootstrap_none")
    if tail is None:
        return run_context.InlinePolicy(delivered_count=1, reason=policy.ownership)
    complete = len(tail) == total
    reason = None if complete else "inline_bounds"
    if policy.bootstrap == "summary_tail" and not context.summary:
        reason = "host_keeps_no_summary"
    return run_context.InlinePolicy(
        mode="summary_tail" if policy.bootstrap == "summary_tail" and context.summary else "recent_tail",
        delivered_count=len(tail),
        source_total_count=total if total < _MAX_COUNTED else None,
        messages_complete=complete,
        reason=reason,
    )


def _tail(before: Sequence[ChatMessage], manifest: RunnerManifest) -> tuple[Message, ...] | None:
    """Return the newest messages before the input, within the runner's limits; None if it needs none."""
    policy = manifest.context
    is_wanted = policy.bootstrap in ("recent_tail", "summary_tail")
    if policy.bootstrap == "none" or not (is_wanted or policy.ownership != "self_managed"):
        return None
    room = policy.max_inline_bytes or _USUAL_BYTES
    most = policy.max_inline_events or _USUAL_MESSAGES
    tail: list[Message] = []
    for message in reversed(before):
        room -= len(message.content.encode())
        if room < 0 or len(tail) == most:
            break
        tail.append(_message(message))
    while tail and tail[-1].role == "tool":  # its call was left out
        tail.pop()
    return tuple(reversed(tail))


def _bootstrap(
    context: RunContext, before: Sequence[ChatMessage], tail: tuple[Message, ...]
) -> run_context.Bootstrap:
    """Return the tail, the summary of earlier messages if the Host has one, and the tail's files."""
    inlined = before[len(before) - len(tail) :]
    images = [image for message in inlined for image in message.images]
    refs = tuple(ref for image in images if (ref := upload_ref(image.stored, image.mime_type)))
    return run_context.Bootstrap(messages=tail, summary=context.summary or None, artifacts=refs)


def _messages_before(context: RunContext) -> tuple[ChatMessage, ...]:
    """Return the conversation without the run's input message, and without its summary."""
    short = wrap_summary(context.summary)
    messages = tuple(
        one for one in context.conversation if not (context.summary and one.content == short)
    )
    if request_messages.input_place(context) is None:
        return messages
    places = reversed(range(len(messages)))
    place = next((at for at in places if messages[at].role == "user"), len(messages))
    return (*messages[:place], *messages[place + 1 :])


def _adapter(context: RunContext) -> dict[str, Any] | None:
    """Return the parts of the request for which the seed's context has no place."""
    request = context.request
    beside = {
        "instructions": request.instructions,
        "system": [one.content for one in context.conversation if one.role == "system"],
        "tools": list(request.tools),
        "tool_choice": request.tool_choice,
        "generation": request.generation,
        "context": list(request.context),
        "state": context.state,
    }
    extra = {name: value for name, value in msgspec.to_builtins(beside).items() if value}
    return {"extra": extra} if extra else None


def _message(message: ChatMessage) -> Message:
    return Message(
        role=message.role,
        content=message.content,
        tool_calls=models.reply_calls(message.tool_calls),
        tool_call_id=message.tool_call_id or None,
    )


def public_params(params: Any) -> dict[str, Any]:
    """Return a client's parameters for the runner, without private (`_…`), secret and non-JSON ones."""
    if not isinstance(params, dict):
        return {}
    kept: dict[str, Any] = {}
    room = _LARGEST_PARAMS
    for name, value in params.items():
        if not isinstance(name, str) or name.startswith("_") or _SECRET.search(name):
            continue
        try:
            room -= len(json.dumps(value, allow_nan=False))
        except (TypeError, ValueError, RecursionError):
            continue
        if room < 0:
            break
        kept[name] = public_params(value) if isinstance(value, dict) else value
    return kept


def runner_deadline(binding: Binding, run_deadline_ms: int) -> float:
    """Return the runner's deadline in epoch seconds."""
    whole = run_deadline_ms / 1000
    return min(whole, time.time() + binding.deadline_s) if binding.deadline_s else whole
