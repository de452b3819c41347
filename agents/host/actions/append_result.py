"""Results that a runner sends by a call (released runtimes: `run_append_result`) outside its stream."""

from __future__ import annotations

import time
from typing import Final

import msgspec
from msgspec.structs import replace

from agents.host.action_registry import action
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
_MAX_WAITING: Final = 256  # waiting results are written with the next result of the stream


@action("run_append_result", resource="result.type", seconds=15)
async def append(session: Session, params: parameters.AppendResult) -> replies.RunEventRecord:
    """Append the result to the run's stream; later results of the stream follow it.

    Raise HostRefusal for the result of another run, for unknown types, and for types with an effect
    (state, artifacts, actions, the run's end): those belong in the stream, which keeps their order.
    """
    run_id, result = session.scene.run_id.hex, params.result
    if {params.target_run_id.replace("-", ""), (result.run_id or run_id).replace("-", "")} != {run_id}:
        raise unauthorized(f"Run {params.target_run_id[:100]} is not accessible by this run")
    if result.type not in _TYPES:
        raise invalid(f"A result of the type {result.type[:100]} cannot be appended.")
    if len(msgspec.json.encode(result.data)) > _LARGEST:
        raise too_large("A result that is appended has at most 256 KiB.")
    if len(session.facts) >= _MAX_WAITING:
        raise HostRefusal("rate_limited", "Too much is appended that the stream has not followed.")
    try:
        session.facts += await session.convert_result(replace(result, sequence=None))
    except RunFailure as problem:
        raise invalid(problem.message) from None
    session.appended_count += 1
    return replies.RunEventRecord(
        run_id=run_id,
        sequence=session.appended_count,
        type=result.type,
        data=result.data,
        created_at=int(time.time()),
        source="runner",
    )
