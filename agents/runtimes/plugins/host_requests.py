"""A plugin's requests to the Host: the caller, the run, and the reply in its generation's form.

All checks are made behind `agents.host.gateway`. Two facts only the wire knows, and they come from here:
the plugin for which the runtime vouches, and the runs of this connection.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any, Final

from agents.host import gateway
from agents.host.action_registry import ACTIONS
from agents.host_protocol.errors import invalid
from agents.runtimes.plugins.envelopes import Request
from agents.runtimes.plugins.wire_protocol import WireProtocol

STARTING: Final = frozenset(("get_plugin_settings", "initialize_plugin_settings"))
WaitUntilProcessed = Callable[[str], Awaitable[None]]
_AFTER_RESULTS: Final = ("state_", "artifact_")
_UNNAMED: Final = "an unnamed plugin"


def answer(
    request: Request,
    protocol: WireProtocol | None,
    runs: Mapping[str, str],
    wait_until_processed: WaitUntilProcessed,
) -> Awaitable[dict[str, Any]] | AsyncGenerator[dict[str, Any]]:
    """Return the reply to a plugin's request, whole or in parts; awaiting it raises HostRefusal.

    Requests for state or artifacts wait until the run's earlier results are processed, so that a runner
    reads what it wrote.
    """
    run_id, identity = _find_caller(request, protocol, runs)
    action = ACTIONS.get(request.action)
    if action is not None and action.streams:
        return gateway.stream(request.action, request.payload, run_id=run_id, identity=identity)
    must_wait = run_id in runs and request.action.startswith(_AFTER_RESULTS)
    return _call(request, protocol, run_id, identity, wait_until_processed if must_wait else None)


async def _call(
    request: Request,
    protocol: WireProtocol | None,
    run_id: str | None,
    identity: str,
    wait_until_processed: WaitUntilProcessed | None,
) -> dict[str, Any]:
    if run_id and wait_until_processed:
        await wait_until_processed(run_id)
    found = await gateway.call(request.action, request.payload, run_id=run_id, identity=identity)
    return protocol.answer(request.action, found) if protocol else found


def _find_caller(
    request: Request, protocol: WireProtocol | None, runs: Mapping[str, str]
) -> tuple[str | None, str]:
    """Return the run, and the caller; a name that no runner has if the caller is not credible.

    The gateway then refuses the call, and notes the attempt.
    """
    run_id = request.payload.get("run_id")
    identity = (protocol.caller(request) if protocol else None) or _UNNAMED
    if not isinstance(run_id, str) or not run_id:
        return None, identity
    if run_id not in runs:  # of another runtime, ended, or invented
        return run_id, f"{identity} of another runtime"
    if identity == _UNNAMED and request.action == "invoke_rerank" and not request.context:
        return run_id, runs[run_id]  # the first generation does not name the caller of a rerank
    return run_id, identity


async def answer_greeting(request: Request, protocol: WireProtocol | None) -> dict[str, Any]:
    """Return the reply to a request of a plugin that starts; it has no run yet."""
    match request.action:
        case "get_plugin_settings" if protocol is not None:
            return protocol.settings(request.payload)
        case "initialize_plugin_settings":
            return {}
    raise invalid(f"Action {request.action} not found")
