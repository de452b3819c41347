"""Tools for runners: those of the run's user that the binding grants, under their policies."""

from __future__ import annotations

from typing import Any, Final
from uuid import uuid4

import msgspec

from agents.host.action_registry import action
from agents.host.session import Session
from agents.host_protocol import parameters, replies
from agents.host_protocol.errors import Code, HostRefusal, not_found, too_large
from agents.requests import ToolUse

_LARGEST: Final = 1024 * 1024
_CODES: Final[dict[str, Code]] = {
    "invalid_arguments": "invalid_argument",
    "approval_required": "unauthorized",
    "tool_not_offered": "not_found",
    "unknown_tool": "not_found",
    "tool_timeout": "deadline_exceeded",
}


@action("get_tool_detail", "tools", "detail", resource="tool_name")
async def detail(session: Session, params: parameters.DescribeTool) -> replies.ToolDescribed:
    """Return a tool's name, description and schema."""
    found = next((tool for tool in session.host.tools if tool.name == params.tool_name), None)
    if found is None:
        raise not_found(f"Tool {params.tool_name} not found")
    spec: dict[str, Any] = {
        "name": found.name,
        "description": found.description,
        "parameters": found.parameters,
    }
    shown = replies.ToolDetail(**spec, label=found.name, human_desc=found.description, spec=spec)
    return replies.ToolDescribed(shown)


@action("call_tool", "tools", "call", resource="tool_name", seconds=180)
async def call(session: Session, params: parameters.CallTool) -> replies.ToolCalled:
    """Return the tool's result; raise HostRefusal with the tool's own code in `details.reason`.

    A call that needs an approval stops the run with an interrupt; the next run makes the call, and its
    context has the outcome (`context_builder`). With `may_wait` false such a call is refused.
    """
    if len(msgspec.json.encode(params.parameters)) > _LARGEST:
        raise too_large("The parameters of a tool call are at most 1 MiB.")
    _count(session)
    use = ToolUse(params.tool_name, params.parameters)
    call_id = f"host_{uuid4().hex}"
    if params.may_wait and (approval := await session.host.approval_for(use, call_id=call_id)):
        await session.add_approval_and_wait(approval)
    session.called_tools.add(use.name)
    outcome = await session.host.call_granted(use, call_id=call_id)
    problem = outcome.problem
    if problem is None:
        return replies.ToolCalled(outcome.result or {})
    code = _CODES.get(problem.code, "runtime_error")
    message = f"Failed to execute tool {params.tool_name}: {problem.message}"
    raise HostRefusal(code, message, reason=problem.code)


def _count(session: Session) -> None:
    """Count a call; raise HostRefusal `rate_limited` if the request allows no more calls."""
    most = session.scene.most_calls
    if most is not None and session.calls >= most:
        raise HostRefusal("rate_limited", f"max_tool_calls: the request allows {most} calls of tools.")
    session.calls += 1
