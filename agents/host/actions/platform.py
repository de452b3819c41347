"""Platform actions for runners, executed at once or after an approval.

See seed §7.8 and `agents.intake.approvals`.
"""

from __future__ import annotations

from uuid import uuid4

from agents.host.action_registry import action
from agents.host.session import Session
from agents.host_protocol import parameters, replies
from agents.host_protocol.errors import HostRefusal, invalid, not_found
from agents.requests import ToolUse
from agents.runners.tool_loop import completion_fact
from agents.tools import offered_tools
from agents.tools.arguments import check_arguments
from agents.tools.base import ToolFailure
from agents.tools.platform_actions import PREFIX
from conversations import events


@action("request_action", "platform_api", resource="action")
async def request(session: Session, params: parameters.RequestAction) -> replies.ActionTaken:
    """Execute a platform action, or end the run with an interrupt for its approval."""
    name = params.action if params.action.startswith(PREFIX) else PREFIX + params.action
    tool = await offered_tools.find_action(name, user_id=session.scene.user_id)
    if tool is None:
        raise not_found(f"Action {params.action} not found")
    use = ToolUse(name, {**(params.target or {}), **(params.payload or {})})
    try:
        await check_arguments(tool, use.arguments)
    except ToolFailure as problem:
        raise invalid(problem.message) from None
    call_id = f"action_{uuid4().hex}"
    requested = events.ActionRequested(params.action, params.target, params.payload)
    if tool.requires_approval:
        approval = session.host.approval_of(tool, use, call_id=call_id)
        session.add_approval(approval)
        session.facts.append(requested)
        return replies.ActionTaken("pending", approval.id.hex)
    session.facts.append(requested)
    session.facts.append(events.ToolCallStarted(call_id, name, use.arguments))
    outcome = await session.host.call_action(tool, use, call_id=call_id)
    session.facts.append(completion_fact(call_id, outcome))
    if outcome.problem is not None:
        raise HostRefusal("runtime_error", outcome.problem.message, reason=outcome.problem.code)
    return replies.ActionTaken("done")
