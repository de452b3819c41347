"""Claiming of runs by a worker, with their requests as values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from agents import requests
from agents.requests import Claim
from conversations.log import event_log
from conversations.log.event_log import Batch
from conversations.runs import leases

HOLDER: Final = """
    SELECT FROM agents_pluginruntime
    WHERE held_by = run.for_worker AND held_until > clock_timestamp()
"""


async def claim(
    *, worker: str, limit: int, lease_s: float, prompt_versions: str, split: bool = False
) -> list[Claim]:
    """Claim up to `limit` waiting runs as `leases.claim` does; the caller announces their start."""
    rows = await leases.claim(
        worker=worker,
        limit=limit,
        lease_s=lease_s,
        prompt_versions=prompt_versions,
        split=split,
        holder=HOLDER,
    )
    return [Claim(*row[:9], requests.load(row.request), row.started) for row in rows]


def announce(claims: Sequence[Claim]) -> None:
    """Notify the readers of these runs that they have started."""
    batches = [Batch(one.run_id, one.last_seq, one.last_seq, one.started) for one in claims]
    event_log.announce(batches)
