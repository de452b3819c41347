"""State for runners: small JSON values by scope and key, separate for each runner and binding."""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec
from psycopg.types.json import Jsonb

from agents.host.action_registry import action
from agents.host.actions.checks import checked_key, checked_limit, checked_prefix
from agents.host.session import Scene, Session
from agents.host_protocol import parameters, replies
from agents.host_protocol.errors import invalid, too_large, unauthorized
from agents.host_protocol.run_context import INLINED, SCOPES, RunState, Scope
from config import sql
from conversations.log.storable_text import clean_value

LARGEST: Final = 256 * 1024
MAX_KEYS: Final = 1_000
LONGEST_KEY: Final = 200
_MAX_LISTED: Final = 100
_INLINED: Final = 200
_INLINED_BYTES: Final = 256 * 1024
_ALIASES: Final = {"conversation_id": "external.conversation_id"}

_OF: Final = """
runner_id = %(runner_id)s::text AND binding_id = %(binding_id)s::int AND scope = %(scope)s::text
AND scope_key = %(scope_key)s::text
"""
_GET: Final = f"SELECT value FROM agents_hoststate WHERE {_OF} AND key = %(key)s::text"
_SET: Final = f"""
INSERT INTO agents_hoststate
    (runner_id, binding_id, scope, scope_key, key, value, owner_id, thread_id, updated_at)
SELECT %(runner_id)s::text, %(binding_id)s::int, %(scope)s::text, %(scope_key)s::text,
    %(key)s::text, %(value)s::jsonb, %(owner_id)s::uuid, %(thread_id)s::uuid, clock_timestamp()
WHERE (SELECT count(*) FROM agents_hoststate WHERE {_OF} AND key <> %(key)s::text) < %(most)s
ON CONFLICT (runner_id, binding_id, scope, scope_key, key)
DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at
"""
_DELETE: Final = f"DELETE FROM agents_hoststate WHERE {_OF} AND key = %(key)s::text"
_LIST: Final = f"""
SELECT key FROM agents_hoststate WHERE {_OF} AND starts_with(key, %(prefix)s::text)
ORDER BY key LIMIT %(limit)s
"""
_SNAPSHOT: Final = """
SELECT scope, key, value FROM agents_hoststate
WHERE runner_id = %(runner_id)s::text AND binding_id = %(binding_id)s::int
AND (scope, scope_key) IN (SELECT * FROM unnest(%(scopes)s::text[], %(keys)s::text[]))
AND octet_length(value::text) <= %(bytes)s
ORDER BY updated_at DESC LIMIT %(limit)s
"""


def _place(params: Any) -> str:
    return f"{params.scope}/{getattr(params, 'key', '')}"


@action("state_get", "state", resource=_place, seconds=15)
async def get(session: Session, params: parameters.GetState) -> replies.StateValue:
    """Return the value, or null if there is none."""
    found = await sql.one(_GET, _owner_values(session.scene, params.scope) | {"key": _key(params.key)})
    return replies.StateValue(found[0] if found else None)


@action("state_set", "state", resource=_place, seconds=15)
async def put(session: Session, params: parameters.SetState) -> replies.Done:
    """Store the value in place of the present one."""
    scene = session.scene
    values = _owner_values(scene, params.scope) | {
        "key": _key(params.key),
        "value": Jsonb(to_storable(params.value)),
        "owner_id": scene.user_id if params.scope in ("conversation", "actor", "subject") else None,
        "thread_id": scene.thread_id if params.scope == "conversation" else None,
        "most": MAX_KEYS,
    }
    if not await sql.change(_SET, values):
        raise too_large(f"A scope holds at most {MAX_KEYS} keys.")
    return replies.Done()


@action("state_delete", "state", resource=_place, seconds=15)
async def delete(session: Session, params: parameters.DeleteState) -> replies.Done:
    """Delete the key; return whether it existed."""
    values = _owner_values(session.scene, params.scope) | {"key": _key(params.key)}
    return replies.Done(await sql.change(_DELETE, values) > 0)


@action("state_list", "state", resource=_place, seconds=15)
async def keys(session: Session, params: parameters.ListState) -> replies.StateKeys:
    """Return the keys in order, at most 100."""
    limit = checked_limit(params.limit, _MAX_LISTED)
    values = _owner_values(session.scene, params.scope) | {
        "prefix": checked_prefix(params.prefix or "", LONGEST_KEY),
        "limit": limit + 1,
    }
    found = [key for (key,) in await sql.every(_LIST, values)]
    return replies.StateKeys(tuple(found[:limit]), len(found) > limit)


async def snapshot(scene: Scene) -> RunState:
    """Return the run's initial state in its scopes: the newest values, as many as fit."""
    scope_keys = [(scope, key) for scope in INLINED if (key := _scope_key(scene, scope))]
    if not scope_keys:
        return RunState()
    values: dict[str, Any] = {
        "runner_id": scene.runner_id,
        "binding_id": scene.binding.id,
        "scopes": [scope for scope, _ in scope_keys],
        "keys": [key for _, key in scope_keys],
        "limit": _INLINED,
        "bytes": _INLINED_BYTES // 4,
    }
    found: dict[str, dict[str, Any]] = {scope: {} for scope in INLINED}
    room = _INLINED_BYTES
    for scope, key, value in await sql.every(_SNAPSHOT, values):
        room -= len(msgspec.json.encode(value))
        if room >= 0:
            found[scope][key] = value
    return RunState(**found)


def _owner_values(scene: Scene, scope: str) -> dict[str, Any]:
    """Return the state's owner; raise HostRefusal for a scope that the policy or the run excludes."""
    if scope not in SCOPES:
        raise invalid(f"scope must be one of {', '.join(SCOPES)}.")
    if not scene.binding.state_enabled:
        raise unauthorized("State access is disabled by binding policy")
    if scope not in scene.binding.scopes:
        raise unauthorized(f'Scope "{scope}" is not enabled by binding policy')
    scope_key = scene.scope_key(scope)
    if not scope_key:
        raise unauthorized(f'Scope key not available for scope "{scope}"')
    return {
        "runner_id": scene.runner_id,
        "binding_id": scene.binding.id,
        "scope": scope,
        "scope_key": scope_key,
    }


def _scope_key(scene: Scene, scope: Scope) -> str:
    return scene.scope_key(scope) if scope in scene.binding.scopes else ""


def _key(key: str) -> str:
    """Return the stored form of the key; the seed's own runners use an older name of one key."""
    return _ALIASES.get(key) or checked_key(key, LONGEST_KEY)


def to_storable(value: Any) -> Any:
    """Return the value as JSON; raise HostRefusal if it cannot be JSON, or is too large."""
    try:
        cleaned = clean_value(value)
        size = len(json.dumps(cleaned, ensure_ascii=False, allow_nan=False).encode())
    except (TypeError, ValueError, RecursionError) as problem:
        raise invalid(f"Value is not JSON-serializable: {type(problem).__name__}") from None
    if size > LARGEST:
        raise too_large(f"Value size {size} bytes exceeds limit {LARGEST} bytes")
    return cleaned
