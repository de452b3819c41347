"""Ids of runs and of messages. Run ids are UUIDs of version 7, so that they sort by time.

The event log is partitioned by run id: with the time in the id, a partition is a span of days and
a reader that knows the id needs no other key to find the right partition.
"""

from __future__ import annotations

import os
import re
import time
from datetime import datetime
from typing import Final
from uuid import UUID

_HEX: Final = re.compile(r"(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])")


def uuid7(at_ms: int | None = None) -> UUID:
    """Return a version 7 UUID (RFC 9562 §5.7): 48 bits of epoch milliseconds, 74 random bits."""
    milliseconds = time.time_ns() // 1_000_000 if at_ms is None else at_ms
    random = int.from_bytes(os.urandom(10))
    value = (milliseconds & (1 << 48) - 1) << 80 | random
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return UUID(int=value)


def uuid_of(text: str | None) -> UUID | None:
    """Return the UUID of a text in any form; None if it has none."""
    try:
        return UUID(text) if text else None
    except ValueError:
        return None


def find_hex_ids(text: str) -> list[str]:
    """Return the ids of 32 hex digits that stand in a longer id, such as its run's."""
    return _HEX.findall(text)


def lowest_uuid7(at: datetime) -> UUID:
    """Return the lower bound of all ids made from `at` on."""
    return UUID(int=int(at.timestamp() * 1000) << 80)


def tool_message_id(run_id: str, tool_call_id: str, asked_in: str | None = None) -> str:
    """Return the id of the message that holds a tool's answer; run ids as 32 hex digits."""
    return f"tool-{run_id}-{asked_in}-{tool_call_id}" if asked_in else f"tool-{run_id}-{tool_call_id}"


def call_message_id(tool_call_id: str) -> str:
    """Return the id of the message in which a client's tool is called."""
    return f"call-{tool_call_id}"
