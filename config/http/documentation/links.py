"""What a client does next with a response: the links between operations."""

from __future__ import annotations

from typing import Any, Final

Links = dict[str, dict[str, Any]]


def _links(value: str, **operations: str) -> Links:
    """Return links that pass a value of the body to a parameter of each operation."""
    passed, name = f"$response.body#/{value}", value.rpartition("/")[2]
    return {
        f"{operation}_by_{name}": {"operationId": operation, "parameters": {parameter: passed}}
        for operation, parameter in operations.items()
    }


_RUN: Final = {
    "agent_run_retrieve": "run_id",
    "agent_run_events": "run_id",
    "agent_run_cancel": "run_id",
    "agent_run_feedback": "run_id",
    "agent_run_feedback_give": "run_id",
    "agent_run_feedback_withdraw": "run_id",
}
_THREAD: Final = {
    "agent_thread_retrieve": "thread_id",
    "agent_thread_connect": "thread_id",
    "agent_thread_change": "thread_id",
    "agent_thread_delete": "thread_id",
    "agent_history": "threadId",
    "agent_history_search": "threadId",
}
_STARTED: Final = (
    _links("run_id", **_RUN)
    | _links("taskId", **_RUN)
    | _links("conversation_id", **_THREAD)
    | _links("threadId", **_THREAD)
)
_RESPONSE: Final = _links(
    "id",
    responses_retrieve="response_id",
    responses_input_items="response_id",
    responses_cancel="response_id",
    responses_delete="response_id",
)
_PROMPT: Final = _links(
    "data/id",
    llm_prompt="prompt_id",
    llm_prompt_update="prompt_id",
    llm_prompt_activate="prompt_id",
    llm_prompt_delete="prompt_id",
)
_APPROVAL: Final = _links(
    "approvals/0/id", agent_approval_retrieve="approval_id", agent_approval_decide="approval_id"
)
_FILE: Final[Links] = {
    "attachment_retrieve": {
        "operationId": "attachment_retrieve",
        "parameters": {"bucket": "$response.body#/bucket", "path": "$response.body#/path"},
        "description": "The parameter `token` is in the `url` of the response.",
    }
}
_LINKS: Final[dict[tuple[str, str], Links]] = {
    ("agent_runs_create", "202"): _STARTED,
    ("agent_run_create_alias", "202"): _STARTED,
    ("agent_ag_ui", "202"): _links("taskId", **_RUN) | _links("threadId", **_THREAD),
    ("agent_threads", "200"): _links("threads/0/id", **_THREAD),
    ("agent_approvals", "200"): _APPROVAL,
    ("agent_attachments_create", "201"): _FILE,
    ("process_task", "200"): _links("task_id", process_task_retrieve="task_id"),
    ("responses_create", "200"): _RESPONSE,
    ("llm_prompt_create", "201"): _PROMPT,
    ("agent_runners", "200"): _links("runners/0/id", agent_runner_run="runner_id"),
    ("openai_models", "200"): _links("data/0/id", openai_model="model_id"),
}


def links_of(operation_id: str, status: str) -> Links:
    """Return the links of an operation's response with this status."""
    return _LINKS.get((operation_id, status), {})
