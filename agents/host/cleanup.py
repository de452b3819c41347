"""The hourly cleanup of the Host, while runners work: old audit rows and expired artifacts."""

from __future__ import annotations

from typing import Final

from django.conf import settings

from config import sql

_AUDIT: Final = """
DELETE FROM agents_hostcall WHERE id IN (
    SELECT id FROM agents_hostcall WHERE at < now() - make_interval(days => %s) ORDER BY at LIMIT 10000)
"""
_ARTIFACTS: Final = """
DELETE FROM agents_hostartifact WHERE id IN (
    SELECT id FROM agents_hostartifact WHERE expires_at <= now() LIMIT 1000)
"""


async def delete_old() -> int:
    """Delete some rows past HOST_AUDIT_DAYS and some expired artifacts; return their number."""
    count = await sql.change(_ARTIFACTS, ())
    if settings.HOST_AUDIT_DAYS:
        count += await sql.change(_AUDIT, (settings.HOST_AUDIT_DAYS,))
    return count
