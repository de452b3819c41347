"""The Host for callers on a wire: find the run's live session, check the caller, parse and execute.

Sessions live in the process that executes their run, which is also the one that holds the runtime's
connection. Refusals before a session is called are written to the audit too.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Final

import msgspec
from msgspec import Struct

from agents.host import call_audit
from agents.host.action_registry import ACTIONS, Action
from agents.host.actions.files import LANGBOT_VERSION
from agents.host.session import Session
from agents.host_protocol.errors import HostRefusal, invalid, unauthorized
from conversations.identifiers import uuid_of

_NAMED: Final = frozenset(("history", "events", "artifacts", "state"))
_live: dict[str, Session] = {}


def register(session: Session) -> None:
    """Open the Host to the runner of a run that begins."""
    _live[session.scene.run_id.hex] = session


def unregister(session: Session) -> None:
    """Close the session of a run that has ended; calls with its id are refused."""
    session.close()
    _live.pop(session.scene.run_id.hex, None)


async def call(
    action: str, payload: dict[str, Any], *, run_id: str | None, identity: str | None
) -> dict[str, Any]:
    """Execute an action for a caller on a wire; return the reply as JSON, or raise HostRefusal."""
    if action == "get_langbot_version":
        return {"version": LANGBOT_VERSION}
    session, params = _admit(action, payload, run_id, identity, streams=False)
    answer: dict[str, Any] = msgspec.to_builtins(await session.call(action, params))
    return answer


async def stream(
    action: str, payload: dict[str, Any], *, run_id: str | None, identity: str | None
) -> AsyncGenerator[dict[str, Any]]:
    """Execute an action that has several replies; yield each as JSON values."""
    session, params = _admit(action, payload, run_id, identity, streams=True)
    async with aclosing(session.stream(action, params)) as pieces:
        async for piece in pieces:
            yield msgspec.to_builtins(piece)


def _admit(
    action: str, payload: dict[str, Any], run_id: str | None, identity: str | None, *, streams: bool
) -> tuple[Session, Struct]:
    session = None
    try:
        row = ACTIONS.get(action)
        if row is None or row.streams is not streams:
            raise invalid(f"Action {action} not found")
        session = _session(run_id)
        _check_identity(session, row, identity)
        return session, _parse_params(row, payload)
    except HostRefusal as refusal:
        _note(action, run_id, session, identity, refusal)
        raise


def _session(run_id: str | None) -> Session:
    if not run_id:
        raise unauthorized("run_id is required")
    found = _live.get(str(run_id).replace("-", "").lower())
    if found is None:
        raise unauthorized(f"Run session {str(run_id)[:100]} not found or expired")
    return found


def _check_identity(session: Session, action: Action, identity: str | None) -> None:
    """Raise HostRefusal for another plugin's identity.

    Runtimes omit the identity in some calls; calls that read history, events, artifacts or state need
    it.
    """
    scene = session.scene
    run_id = scene.run_id.hex
    if not identity:
        if action.group in _NAMED:
            raise unauthorized(f"caller_plugin_identity is required for run_id {run_id}")
        return
    if identity == scene.identity:
        return
    if action.group in _NAMED:
        raise unauthorized(f"Plugin identity mismatch for run_id {run_id}")
    raise unauthorized(
        f"Plugin identity mismatch: caller {identity[:100]} is not authorized for run_id {run_id}"
    )


def _parse_params(action: Action, payload: dict[str, Any]) -> Struct:
    """Return the parsed parameters; SDKs send null for parameters without a value."""
    fields = {key: value for key, value in payload.items() if value is not None or key == "value"}
    try:
        return msgspec.convert(fields, action.takes)
    except msgspec.ValidationError as problem:
        raise invalid(_translate(str(problem), action)) from None


def _translate(problem: str, action: Action) -> str:
    """Return msgspec's error in the words of the seed's Host, if it has any."""
    for key in ("event_id", "artifact_id", "scope", "key"):
        if f"missing required field `{key}`" in problem or (
            f"`$.{key}`" in problem and ">= 1" in problem
        ):
            return f"{key} is required"
    for key in ("offset", "limit", "top_k"):
        if f"`$.{key}`" in problem:
            return f"{key} must be an integer"
    return f"{action.name}: {problem}"


def _note(
    action: str, run_id: str | None, session: Session | None, identity: str | None, refusal: HostRefusal
) -> None:
    runner_id = session.scene.runner_id if session else identity or ""
    binding_id = session.scene.binding.id if session else 0
    call_audit.add_note(
        call_audit.CallNote(
            time.time(), uuid_of(run_id), runner_id, binding_id, action, "", "", refusal.code, 0
        )
    )
