"""The response object of OpenAI's Responses API and the items of its output, as plain JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from agents.dialects.artifact_links import citation, files_of
from agents.dialects.base import RunHead
from agents.dialects.openai_responses.client_tools import ToolName, arguments_as_text
from agents.dialects.openai_responses.tools import without_secrets
from agents.dialects.steps import Item, ToolCalled
from agents.dialects.wire import Wire
from agents.requests import OWN_LABEL
from conversations import events
from conversations.events import Usage

SERVER_LABEL: Final = OWN_LABEL  # the label of our own tools, which are shown as those of an MCP server
_DEFAULTS: Final[Wire] = {
    "background": False,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "model": "",
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "reasoning": {"effort": None, "summary": None},
    "service_tier": "default",
    "store": True,
    "temperature": None,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_p": None,
    "truncation": "auto",
    "user": None,
    "safety_identifier": None,
    "prompt_cache_key": None,
    "prompt_cache_retention": None,
    "metadata": {},
}


def response_id(run_id: UUID) -> str:
    """Return the id of a run on this wire."""
    return f"resp_{run_id.hex}"


def parse_run_id(text: str) -> str:
    """Return the run's id in a response's id; any other form stays."""
    return text.removeprefix("resp_")


def echo_request(body: Wire) -> Wire:
    """Return the members of the request that its response repeats."""
    kept = {key: body[key] for key in _DEFAULTS if body.get(key) is not None}
    kept.pop("service_tier", None)  # the response names the tier that served, and there is one
    return kept | {"tools": [*without_secrets(body["tools"])]} if "tools" in kept else kept


def response(
    head: RunHead,
    status: str,
    output: list[Any],
    *,
    completed_at: int | None = None,
    problem: events.Problem | None = None,
    usage: Usage | None = None,
) -> Wire:
    """Return the whole response object."""
    repeated: Wire = _DEFAULTS | head.wire.get("echo", {})
    incomplete = {"reason": "max_output_tokens"} if status == "incomplete" else None
    conversation = head.wire.get("conversation") or str(head.thread_id)
    return {
        "id": response_id(head.run_id),
        "object": "response",
        "created_at": head.created_at_ms // 1000,
        "status": status,
        "completed_at": completed_at,
        "error": None if problem is None else _error(problem),
        "incomplete_details": incomplete,
        "conversation": {"id": conversation},
        "output": output,
        "usage": _usage(usage),
        **repeated,
        "model": repeated["model"] or head.model,
    }


_CODES: Final = {
    "provider_rate_limited": "rate_limit_exceeded",
    "provider_quota_exceeded": "rate_limit_exceeded",
    "provider_bad_request": "invalid_prompt",
}


def _error(problem: events.Problem) -> Wire:
    """Return the run's failure: this wire has a closed list of codes, so ours is in `type`."""
    code = _CODES.get(problem.code, "server_error")
    return {"code": code, "message": problem.message, "type": problem.code}


def _usage(counted: Usage | None) -> Wire | None:
    """Return the tokens that the provider counted; None if it counted none."""
    if counted is None or not (counted.input_tokens or counted.output_tokens):
        return None
    return {
        "input_tokens": counted.input_tokens,
        "input_tokens_details": {
            "cached_tokens": counted.cached_tokens,
            "cache_write_tokens": counted.cache_write_tokens,
        },
        "output_tokens": counted.output_tokens,
        "output_tokens_details": {"reasoning_tokens": counted.reasoning_tokens},
        "total_tokens": counted.input_tokens + counted.output_tokens,
    }


def output_item(item: Item, status: str, *parts: Wire) -> Wire:
    """Return a message or reasoning of the output; at its beginning it has no parts."""
    if item.is_reasoning:
        return {"id": item.wire_id, "type": "reasoning", "status": status, "summary": parts}
    whole = {"id": item.wire_id, "type": "message", "status": status, "role": "assistant"}
    return whole | {"content": parts}


def text_part(text: str, annotations: Sequence[Wire] = ()) -> Wire:
    return {"type": "output_text", "text": text, "annotations": [*annotations], "logprobs": []}


def citations(item: Item, *, at: int) -> list[Wire]:
    """Return the annotations that name the files of a message."""
    return [{"type": "url_citation"} | citation(one, at=at) for one in files_of(item)]


def summary_part(text: str) -> Wire:
    return {"type": "summary_text", "text": text}


def client_call(key: str, call_id: str, tool: ToolName, arguments: str, status: str) -> Wire:
    """Return a call that the client answers, with its `…_call_output`."""
    fields = {"call_id": call_id, "name": tool.name}
    if tool.namespace:
        fields["namespace"] = tool.namespace
    if tool.is_custom:
        whole = {"id": f"ctc_{key}", "type": "custom_tool_call"} | fields
        return whole | {"input": arguments_as_text(arguments)}
    whole = {"id": f"fc_{key}", "type": "function_call", "status": status}
    return whole | fields | {"arguments": arguments}


def server_call(
    call: ToolCalled,
    status: str,
    *,
    arguments: str | None = None,
    output: str | None = None,
    problem: events.Problem | None = None,
) -> Wire:
    """Return a call that we answer ourselves; this wire has a form for it with MCP tools only."""
    error = None
    if problem is not None:
        content = [{"type": "text", "text": f"{problem.code}: {problem.message}"}]
        error = {"type": "mcp_tool_execution_error", "content": content}
    return {
        "id": f"mcp_{call.id}",
        "type": "mcp_call",
        "status": status,
        "approval_request_id": call.approval_id,
        "arguments": call.arguments if arguments is None else arguments,
        "error": error,
        "name": call.name,
        "output": output,
        "server_label": call.server_label or SERVER_LABEL,
    }
