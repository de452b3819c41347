"""Build what a hosted runner is told of its run: the event first, handles for the rest (seed §4).

No history is inlined unless the manifest's context policy asks for a tail, and then only as much as it
bounds. What a client sent beside its messages is given as `metadata.params`, without what
looks secret.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Any, Final

import msgspec
from django.conf import settings

from agents.context.summary import words_of
from agents.host import request_messages, sealed_config
from agents.host.calls import history, state, transcript_items
from agents.host.calls.files import LANGBOT_VERSION
from agents.host.grants import Binding
from agents.host.run_input import agent_input
from agents.host.session import Scene
from agents.host_protocol import run_context as told
from agents.host_protocol.manifest import ContextPolicy, RunnerManifest
from agents.host_protocol.messages import FunctionCall, Message, ToolCall
from agents.host_protocol.run_context import AgentRunContext
from agents.providers.base import ChatMessage
from agents.providers.base import ToolCall as ProviderCall
from agents.requests import Happened, InputMessage
from agents.runners.base import RunContext
from agents.runners.tool_loop import arguments_of
from config.auth import accounts

MESSAGE: Final = "message.received"
DECIDED: Final = "approval.decided"
_SECRET: Final = re.compile(
    r"secret|token|passw|api.?key|authorization|credential|cookie|private.?key", re.IGNORECASE
)
_encode: Final = msgspec.json.Encoder().encode
_LARGEST_PARAMS: Final = 64 * 1024
_LONGEST_OUTCOME: Final = 64 * 1024
_MOST_COUNTED: Final = 10_000
_USUAL_MESSAGES: Final = 50
_USUAL_BYTES: Final = 64 * 1024


async def agent_context(context: RunContext, scene: Scene, *, inlines: bool = False) -> AgentRunContext:
    """The context of one run, for the runner of its scene; with `inlines` the input holds its files."""
    asked = request_messages.input_message(context)
    before = _said_before(context)
    tail = _tail(before, scene.manifest)
    happened = context.request.event or _usual(asked)
    now = int(time.time())
    return AgentRunContext(
        run_id=scene.run_id.hex,
        trigger=told.Trigger(happened.event_type, happened.trigger, happened.event_time or now),
        event=told.EventContext(
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
        input=await agent_input(asked, inlines=inlines),
        delivery=told.DeliveryContext(
            surface=context.request.dialect,
            supports_streaming=scene.binding.delivery == "stream",
            platform_capabilities=scene.resources.platform_capabilities,
        ),
        resources=scene.resources,
        context=await _access(context, scene, len(before), tail),
        state=await state.snapshot(scene),
        runtime=told.RuntimeContext(
            trace_id=context.request.request_id,
            deadline_at=scene.deadline_at,
            langbot_version=LANGBOT_VERSION,
            timezone=settings.TIME_ZONE,
            static_refs=_static_refs(scene),
        ),
        config=await sealed_config.opened(scene.binding, scene.manifest),
        bootstrap=None if tail is None else _bootstrap(context, before, tail),
        adapter=_adapter(context),
        metadata={"params": params(context.request.forwarded_props), "model": scene.model},
    )


def _usual(asked: InputMessage | None) -> Happened:
    """What a run is for where the caller does not say more: a message, or what was approved."""
    return Happened(MESSAGE if asked is not None else DECIDED)


async def _actor(happened: Happened, scene: Scene) -> told.ActorContext | None:
    """Who did it: the run's user, or of any other event whom the caller names."""
    if happened.event_type in (MESSAGE, DECIDED):
        named = await accounts.find(scene.user_id)
        return told.ActorContext(
            actor_type="user",
            actor_id=scene.user_id.hex,
            actor_name=named.display_name if named else None,
        )
    if happened.actor is None:
        return None
    return msgspec.convert(happened.actor, told.ActorContext, from_attributes=True)


def _subject(happened: Happened, scene: Scene) -> told.SubjectContext | None:
    if happened.event_type in (MESSAGE, DECIDED):
        kind = "message" if happened.event_type == MESSAGE else "approval"
        return told.SubjectContext(subject_type=kind, subject_id=scene.subject_id)
    if happened.subject is None:
        return None
    return msgspec.convert(happened.subject, told.SubjectContext, from_attributes=True)


def _static_refs(scene: Scene) -> dict[str, Any]:
    """What stays the same from run to run, by hash: so a runner knows whether its caches still hold."""
    if not scene.manifest.context.wants_static_context_refs:
        return {}
    held = {"system": scene.system.encode(), "resources": _encode(scene.resources)}
    return {name: {"sha256": hashlib.sha256(said).hexdigest()} for name, said in held.items()}


def _files(sent: Iterable[tuple[str, str]]) -> tuple[told.ArtifactRef, ...]:
    """References to images (path, type) that the user sent."""
    return tuple(
        told.ArtifactRef(
            artifact_id=artifact_id,
            artifact_type="image",
            mime_type=mime_type,
            name=path.rpartition("/")[2],
            source="upload",
            id=artifact_id,
        )
        for path, mime_type in sent
        if (artifact_id := transcript_items.file_id(path))
    )


def _outcomes(context: RunContext) -> list[dict[str, Any]]:
    """What became of the calls that waited for approval: the answers that end the conversation."""
    latest = list(takewhile(lambda said: said.role != "user", reversed(context.conversation)))
    calls = {call.id: call for said in latest for call in said.tool_calls}
    return [
        _outcome(said, calls.get(said.tool_call_id or ""))
        for said in reversed(latest)
        if said.role == "tool"
    ]


def _outcome(said: ChatMessage, call: ProviderCall | None) -> dict[str, Any]:
    """One call: what it was, and its result (JSON) or why there is none."""
    told = {"tool_call_id": said.tool_call_id, "content": said.content[:_LONGEST_OUTCOME]}
    if call is None:
        return told
    return told | {"tool_name": call.name, "parameters": arguments_of(call)}


def _conversation(scene: Scene) -> told.ConversationContext | None:
    if scene.thread_id is None:
        return None
    thread = scene.thread_id.hex
    return told.ConversationContext(
        conversation_id=thread,
        thread_id=thread,
        launcher_type="person",
        launcher_id=scene.user_id.hex,
        sender_id=scene.user_id.hex,
        session_id=thread,
    )


async def _access(
    context: RunContext, scene: Scene, known: int, tail: tuple[Message, ...] | None
) -> told.ContextAccess:
    apis, thread = _apis(scene), scene.thread_id
    is_first = scene.thread_seq <= 1 and len(context.request.messages) <= 1
    counted = 0 if is_first else await history.count_before(scene, 1 if tail is None else _MOST_COUNTED)
    total = max(counted, known)
    left_out = total - len(tail or ())
    return told.ContextAccess(
        conversation_id=thread.hex if thread else None,
        thread_id=thread.hex if thread else None,
        latest_cursor=history.latest_cursor(scene),
        event_seq=1,
        transcript_seq=scene.thread_seq,
        has_history_before=left_out > 0,
        inline_policy=_inline_policy(context, scene.manifest.context, tail, total=total),
        available_apis=apis,
    )


def _apis(scene: Scene) -> told.AvailableApis:
    """What the run may call, of what its manifest says that the runner does call."""
    may, policy = scene.manifest.permissions, scene.manifest.context
    here = scene.thread_id is not None
    files = policy.supports_artifact_pull
    return told.AvailableApis(
        history_page=here and policy.supports_history_pull and "page" in may.history,
        history_search=(
            here and policy.supports_history_search is not False and "search" in may.history
        ),
        event_get=here and "get" in may.events,
        event_page=here and "page" in may.events,
        artifact_metadata=files and "metadata" in may.artifacts,
        artifact_read=files and "read" in may.artifacts,
        state=any(scene.scope_key(scope) for scope in told.SCOPES if scope in scene.binding.scopes),
        storage=bool(frozenset(may.storage) & frozenset(scene.binding.storage)),
        prompt_get=True,
        run_append_result=True,
    )


def _inline_policy(
    context: RunContext, policy: ContextPolicy, tail: tuple[Message, ...] | None, *, total: int
) -> told.InlinePolicy:
    """What was inlined: nothing but the event, or a tail of the conversation and how much of it."""
    if tail is None and policy.bootstrap == "none":
        return told.InlinePolicy(mode="none", reason="bootstrap_none")
    if tail is None:
        return told.InlinePolicy(delivered_count=1, reason=policy.ownership)
    complete = len(tail) == total
    reason = None if complete else "inline_bounds"
    if policy.bootstrap == "summary_tail" and not context.summary:
        reason = "host_keeps_no_summary"
    return told.InlinePolicy(
        mode="summary_tail" if policy.bootstrap == "summary_tail" and context.summary else "recent_tail",
        delivered_count=len(tail),
        source_total_count=total if total < _MOST_COUNTED else None,
        messages_complete=complete,
        reason=reason,
    )


def _tail(before: Sequence[ChatMessage], manifest: RunnerManifest) -> tuple[Message, ...] | None:
    """The newest of what was said before, within the runner's bounds; None where it wants none."""
    policy = manifest.context
    is_wanted = policy.bootstrap in ("recent_tail", "summary_tail")
    if policy.bootstrap == "none" or not (is_wanted or policy.ownership != "self_managed"):
        return None
    room = policy.max_inline_bytes or _USUAL_BYTES
    most = policy.max_inline_events or _USUAL_MESSAGES
    tail: list[Message] = []
    for said in reversed(before):
        room -= len(said.content.encode())
        if room < 0 or len(tail) == most:
            break
        tail.append(_message(said))
    while tail and tail[-1].role == "tool":  # its call was left out
        tail.pop()
    return tuple(reversed(tail))


def _bootstrap(
    context: RunContext, before: Sequence[ChatMessage], tail: tuple[Message, ...]
) -> told.Bootstrap:
    """The tail, what stood before it in short where the Host has that, and the files of its messages."""
    inlined = before[len(before) - len(tail) :]
    shown = [(image.stored, image.mime_type) for said in inlined for image in said.images]
    return told.Bootstrap(messages=tail, summary=context.summary or None, artifacts=_files(shown))


def _said_before(context: RunContext) -> tuple[ChatMessage, ...]:
    """The conversation without the message that the run is for, and without its summary."""
    short = words_of(context.summary)
    said = tuple(one for one in context.conversation if not (context.summary and one.content == short))
    if request_messages.input_place(context) is None:
        return said
    place = next((at for at in reversed(range(len(said))) if said[at].role == "user"), len(said))
    return (*said[:place], *said[place + 1 :])


def _adapter(context: RunContext) -> dict[str, Any] | None:
    """What the client asks for beside its messages, for which the seed's context has no place."""
    request = context.request
    asked = {
        "instructions": request.instructions,
        "system": [said.content for said in context.conversation if said.role == "system"],
        "tools": list(request.tools),
        "tool_choice": request.tool_choice,
        "generation": request.generation,
        "context": list(request.context),
        "state": context.state,
    }
    extra = {name: given for name, given in msgspec.to_builtins(asked).items() if given}
    return {"extra": extra} if extra else None


def _message(said: ChatMessage) -> Message:
    calls = [
        ToolCall(id=call.id, function=FunctionCall(call.name, call.arguments))
        for call in said.tool_calls
    ]
    return Message(
        role=said.role,
        content=said.content,
        tool_calls=calls or None,
        tool_call_id=said.tool_call_id or None,
    )


def params(given: Any) -> dict[str, Any]:
    """A client's own parameters for the runner: no private (`_…`), secret-like or non-JSON ones."""
    if not isinstance(given, dict):
        return {}
    kept: dict[str, Any] = {}
    room = _LARGEST_PARAMS
    for name, value in given.items():
        if not isinstance(name, str) or name.startswith("_") or _SECRET.search(name):
            continue
        try:
            room -= len(json.dumps(value, allow_nan=False))
        except (TypeError, ValueError, RecursionError):
            continue
        if room < 0:
            break
        kept[name] = params(value) if isinstance(value, dict) else value
    return kept


def binding_deadline(binding: Binding, run_deadline_ms: int) -> float:
    """Epoch seconds at which the runner must be done."""
    whole = run_deadline_ms / 1000
    return min(whole, time.time() + binding.deadline_s) if binding.deadline_s else whole
