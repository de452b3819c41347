"""Retention of the audit log: upkeep deletes entries older than AUDIT_DAYS in batches.

The database allows a deletion only in a transaction that sets the number of days (migration 0002),
and only of older entries. Therefore no page and no accidental SQL can shorten the log.
"""

from __future__ import annotations

from typing import Final

from django.conf import settings

from config import database

AT_ONCE: Final = 2_000
COUNT_ABOUT: Final = "SELECT count(*) FROM audit_auditentry WHERE object_id = %(user)s::text"
"""Counts the entries about an account."""
_KEEP: Final = "SELECT set_config('parley.audit_days', %s::text, true)"
_FORGET: Final = f"""
DELETE FROM audit_auditentry WHERE id = ANY(ARRAY(
    SELECT id FROM audit_auditentry WHERE at < now() - make_interval(days => %s)
    ORDER BY at LIMIT {AT_ONCE}))
"""


async def delete_old() -> int:
    """Delete at most AT_ONCE entries older than AUDIT_DAYS (0: keep all); return the number."""
    days = settings.AUDIT_DAYS
    if not days:
        return 0
    async with database.connection() as held, held.transaction():
        await held.execute(_KEEP, (days,))
        return (await held.execute(_FORGET, (days,))).rowcount
