"""Ids of traces and spans that are computed from a run, so that every process knows them beforehand."""

from __future__ import annotations

import hashlib
from uuid import UUID


def trace_id_of(run_id: UUID) -> int:
    """Return the trace of a run that belongs to no other trace."""
    return _number(run_id, "trace", 16)


def root_id_of(run_id: UUID) -> int:
    """Return the id of the run's own span, the same in every process that executes it."""
    return _number(run_id, "run", 8)


def tool_id_of(run_id: UUID, call_id: str) -> int:
    """Return the id of the span of a tool call: the tool's server knows it before the span is made."""
    return _number(run_id, f"tool {call_id}", 8)


def _number(run_id: UUID, what: str, size: int) -> int:
    """Return a number of so many bytes that is not 0, which W3C reserves."""
    return int.from_bytes(hashlib.sha256(run_id.bytes + what.encode()).digest()[:size]) or 1
