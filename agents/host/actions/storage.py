"""Storage for runners: bytes by key, of a plugin, of the installation, or of one binding (seed §7.7)."""

from __future__ import annotations

from typing import Any, Final

from agents.host.action_registry import action
from agents.host.actions.checks import checked_key, checked_prefix
from agents.host.session import Scene, Session
from agents.host_protocol import parameters, replies
from agents.host_protocol.errors import invalid, not_found, too_large
from config import sql

LARGEST: Final = 10 * 1024 * 1024
MAX_KEYS: Final = 1_000
LONGEST_KEY: Final = 500
_OF: Final = "area = %(area)s::text AND holder = %(holder)s::text"
_GET: Final = f"SELECT content FROM agents_hostblob WHERE {_OF} AND key = %(key)s::text"
_SET: Final = f"""
INSERT INTO agents_hostblob (area, holder, key, content, size, updated_at)
SELECT %(area)s::text, %(holder)s::text, %(key)s::text, %(content)s::bytea, %(size)s::int,
    clock_timestamp()
WHERE (SELECT count(*) FROM agents_hostblob WHERE {_OF} AND key <> %(key)s::text) < %(most)s
ON CONFLICT (area, holder, key)
DO UPDATE SET content = excluded.content, size = excluded.size, updated_at = excluded.updated_at
"""
_DELETE: Final = f"DELETE FROM agents_hostblob WHERE {_OF} AND key = %(key)s::text"
_LIST: Final = f"""
SELECT key FROM agents_hostblob WHERE {_OF} AND starts_with(key, %(prefix)s::text)
ORDER BY key LIMIT %(most)s
"""


@action("get_binary_storage", "storage", resource="key", seconds=15)
async def get(session: Session, params: parameters.GetStored) -> replies.StoredValue:
    """Return the bytes under a key."""
    found = await sql.one(_GET, _row_key(session.scene, params))
    if found is None:
        raise not_found(f"Storage with key {params.key} not found")
    return replies.StoredValue(bytes(found[0]))


@action("set_binary_storage", "storage", resource="key", seconds=15)
async def put(session: Session, params: parameters.SetStored) -> replies.Nothing:
    """Store the bytes in place of the present ones; at most 10 MiB."""
    if len(params.value) > LARGEST:
        raise too_large(f"Binary storage value exceeds limit ({len(params.value)} > {LARGEST} bytes)")
    values = _row_key(session.scene, params) | {
        "content": params.value,
        "size": len(params.value),
        "most": MAX_KEYS,
    }
    if not await sql.change(_SET, values):
        raise too_large(f"A storage area holds at most {MAX_KEYS} keys.")
    return replies.Nothing()


@action("delete_binary_storage", "storage", resource="key", seconds=15)
async def delete(session: Session, params: parameters.DeleteStored) -> replies.Nothing:
    """Delete the bytes; a key without any is no error."""
    await sql.change(_DELETE, _row_key(session.scene, params))
    return replies.Nothing()


@action("get_binary_storage_keys", "storage", seconds=15)
async def keys(session: Session, params: parameters.ListStored) -> replies.StorageKeys:
    """Return the keys in order."""
    values = _holder_values(session.scene, params.area) | {
        "prefix": checked_prefix(params.prefix or "", LONGEST_KEY),
        "most": MAX_KEYS,
    }
    return replies.StorageKeys(tuple(key for (key,) in await sql.every(_LIST, values)))


def _row_key(
    scene: Scene, params: parameters.GetStored | parameters.SetStored | parameters.DeleteStored
) -> dict[str, Any]:
    return _holder_values(scene, params.area) | {"key": checked_key(params.key, LONGEST_KEY)}


def _holder_values(scene: Scene, area: str) -> dict[str, Any]:
    """Return the area and its holder; the holder comes from the run, never from the caller."""
    match area:
        case "plugin":
            return {"area": area, "holder": scene.identity}
        case "workspace":
            return {"area": area, "holder": "default"}
        case "binding" if scene.binding.id:
            return {"area": area, "holder": str(scene.binding.id)}
    raise invalid("The storage area must be plugin, workspace or, for a bound run, binding.")
