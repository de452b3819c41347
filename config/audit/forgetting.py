"""What the audit log forgets: entries older than AUDIT_DAYS, a round of upkeep at a time.

The database lets go of an entry only to a transaction that says how many days it keeps (migration
0002), and only of one that is older: no page and no slip of SQL shortens the log.
"""

from __future__ import annotations

from typing import Final

from django.conf import settings

from config import database

AT_ONCE: Final = 2_000
_KEEP: Final = "SELECT set_config('parley.audit_days', %s::text, true)"
_FORGET: Final = f"""
DELETE FROM audit_auditentry WHERE id = ANY(ARRAY(
    SELECT id FROM audit_auditentry WHERE at < now() - make_interval(days => %s)
    ORDER BY at LIMIT {AT_ONCE}))
"""


async def forget_old() -> int:
    """Delete at most AT_ONCE entries past AUDIT_DAYS (0: keep for ever); how many."""
    days = settings.AUDIT_DAYS
    if not days:
        return 0
    async with database.connection() as held, held.transaction():
        await held.execute(_KEEP, (days,))
        return (await held.execute(_FORGET, (days,))).rowcount
