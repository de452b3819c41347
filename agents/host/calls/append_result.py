"""Results that a runner says by a call (released runtimes: `run_append_result`), not in its stream."""

from __future__ import annotations

import time
from typing import Final

import msgspec
from msgspec.structs import replace

from agents.host.actions import action
from agents.host.session import Session
from agents.host_protocol import parameters, replies, results
from agents.host_protocol.errors import HostRefusal, invalid, too_large, unauthorized
from agents.runners.base import RunFailure

_TYPES: Final = frozenset(
    (
        results.MESSAGE_DELTA, results.MESSAGE_COMPLETED, results.TOOL_STARTED, results.TOOL_COMPLETED,
        results.PLUGIN_LOG,
    )
)  # fmt: skip
_LARGEST: Final = 256 * 1024
_MOST_WAITING: Final = 256  # they are written with the next result of the stream


@action("run_append_result", resource="result.type", seconds=15)
async def append(session: Session, ask: parameters.AppendResult) -> replies.RunEventRecord:
    """Say it as if it stood in the run's stream; what comes next there follows it.

    HostRefusal for another run's result, and for types that have an effect (state, artifacts, actions,
    the run's end) or that nobody knows: those are said in the stream, where their order is certain.
    """
    run_id, said = session.scene.run_id.hex, ask.result
    if {ask.target_run_id.replace("-", ""), (said.run_id or run_id).replace("-", "")} != {run_id}:
        raise unauthorized(f"Run {ask.target_run_id[:100]} is not accessible by this run")
    if said.type not in _TYPES:
        raise invalid(f"A result of the type {said.type[:100]} cannot be appended.")
    if len(msgspec.json.encode(said.data)) > _LARGEST:
        raise too_large("A result that is appended has at most 256 KiB.")
    if len(session.facts) >= _MOST_WAITING:
        raise HostRefusal("rate_limited", "Too much is appended that the stream has not followed.")
    try:
        session.facts += await session.take(replace(said, sequence=None))
    except RunFailure as problem:
        raise HostRefusal("invalid_argument", problem.message) from None
    session.appended += 1
    return replies.RunEventRecord(
        run_id=run_id,
        sequence=session.appended,
        type=said.type,
        data=said.data,
        created_at=int(time.time()),
        source="runner",
    )
