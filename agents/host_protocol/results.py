"""The result stream of a run (seed §6): an envelope and its known types; others are ignored."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Struct

from agents.host_protocol.messages import Message, MessageChunk, TokenUsage

MESSAGE_DELTA: Final = "message.delta"
MESSAGE_COMPLETED: Final = "message.completed"
TOOL_STARTED: Final = "tool.call.started"
TOOL_COMPLETED: Final = "tool.call.completed"
STATE_UPDATED: Final = "state.updated"
ARTIFACT_CREATED: Final = "artifact.created"
ACTION_REQUESTED: Final = "action.requested"
RUN_COMPLETED: Final = "run.completed"
RUN_FAILED: Final = "run.failed"
PLUGIN_LOG: Final = "processor.log"
TYPES: Final = frozenset(
    (
        MESSAGE_DELTA, MESSAGE_COMPLETED, TOOL_STARTED, TOOL_COMPLETED, STATE_UPDATED,
        ARTIFACT_CREATED, ACTION_REQUESTED, RUN_COMPLETED, RUN_FAILED, PLUGIN_LOG,
    )
)  # fmt: skip


class RunResult(Struct, frozen=True, kw_only=True):
    """`AgentRunResult`, as runners say it and as the `runner` dialect gives it out.

    `timestamp`: epoch seconds.
    """

    run_id: str
    type: str
    data: dict[str, Any] = {}
    usage: TokenUsage | None = None
    sequence: int | None = None
    timestamp: int | None = None


class MessageDeltaData(Struct, frozen=True):
    """The data of a `message.delta`: a piece, or all of the text so far if `all_content` has it."""

    chunk: MessageChunk


class MessageCompletedData(Struct, frozen=True):
    message: Message


class ToolStartedData(Struct, frozen=True):
    tool_call_id: str
    tool_name: str
    parameters: dict[str, Any] = {}


class ToolCompletedData(Struct, frozen=True):
    tool_call_id: str
    tool_name: str
    result: dict[str, Any] | None = None
    error: str | None = None


class StateUpdatedData(Struct, frozen=True):
    scope: str
    key: str
    value: Any = None


class ArtifactCreatedData(Struct, frozen=True, kw_only=True):
    """A file that the runner made; its bytes are inline, at most 1 MiB."""

    artifact_id: str | None = None
    artifact_type: str
    mime_type: str | None = None
    name: str | None = None
    size_bytes: int | None = None
    sha256: str | None = None
    metadata: dict[str, Any] = {}
    content: bytes | None = msgspec.field(default=None, name="content_base64")


class ActionRequestedData(Struct, frozen=True):
    action: str
    target: dict[str, Any] | None = None
    payload: dict[str, Any] | None = None


class RunCompletedData(Struct, frozen=True):
    """The data of `run.completed`; other keys are ignored."""

    finish_reason: str = "stop"
    message: Message | None = None


class RunFailedData(Struct, frozen=True):
    """The data of `run.failed`; its text is in `message` (seed's text) or `error` (seed's code)."""

    code: str = "runner.error"
    error: str = ""
    message: str = ""
    retryable: bool = False


def delta(run_id: str, text_so_far: str, *, message_id: str | None = None) -> RunResult:
    """Return a result with all of a message's text so far."""
    chunk = MessageChunk(
        role="assistant", content=text_so_far, all_content=text_so_far, resp_message_id=message_id
    )
    return _result(run_id, MESSAGE_DELTA, MessageDeltaData(chunk))


def piece(run_id: str, text: str, *, message_id: str | None = None) -> RunResult:
    """Return a result with the next piece of a message's text."""
    chunk = MessageChunk(role="assistant", content=text, resp_message_id=message_id)
    return _result(run_id, MESSAGE_DELTA, MessageDeltaData(chunk))


def message(run_id: str, text: str, *, message_id: str | None = None) -> RunResult:
    """Return a result with a whole message."""
    whole = Message(role="assistant", content=text, resp_message_id=message_id)
    return _result(run_id, MESSAGE_COMPLETED, MessageCompletedData(whole))


def state(run_id: str, scope: str, key: str, value: Any) -> RunResult:
    """Return a result that stores a value for later runs."""
    return _result(run_id, STATE_UPDATED, StateUpdatedData(scope, key, value))


def artifact(run_id: str, content: bytes, *, artifact_type: str = "file", **more: Any) -> RunResult:
    """Return a result with a file; `more` may be `mime_type`, `name` and `metadata`."""
    return _result(
        run_id,
        ARTIFACT_CREATED,
        ArtifactCreatedData(artifact_type=artifact_type, content=content, **more),
    )


def action(run_id: str, name: str, *, target: Any = None, payload: Any = None) -> RunResult:
    """Return a result that requests a platform action."""
    return _result(run_id, ACTION_REQUESTED, ActionRequestedData(name, target, payload))


def completed(run_id: str, *, finish_reason: str = "stop") -> RunResult:
    """Return the result of a run that ended well."""
    return _result(run_id, RUN_COMPLETED, RunCompletedData(finish_reason))


def failed(run_id: str, code: str, text: str, *, retryable: bool = False) -> RunResult:
    """Return the result of a run that failed, with both spellings of its text."""
    return _result(run_id, RUN_FAILED, RunFailedData(code, text, text, retryable))


def _result(run_id: str, kind: str, payload: Struct) -> RunResult:
    return RunResult(run_id=run_id, type=kind, data=msgspec.to_builtins(payload))
