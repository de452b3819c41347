"""The OpenAPI operations of runners."""

from __future__ import annotations

from typing import Any, Final

from config.openapi.parts import (
    STARTS_RUN,
    TEXT,
    Operation,
    array,
    body,
    operation,
    path_param,
    record,
    ref,
    response,
    sse,
)

_TAG: Final[dict[str, Any]] = {"tags": ["runners"]}
_RUNNER: Final = {
    "allOf": [
        ref("RunnerManifest"),
        {
            "type": "object",
            "required": ["home", "bindings"],
            "properties": {
                "home": {"enum": ["builtin", "python", "plugin"]},
                "bindings": array(TEXT) | {"description": "The names of the bindings that use it."},
            },
        },
    ]
}


def runner_operations() -> dict[str, dict[str, Operation]]:
    """Return the operations by path and method."""
    root = "/api/v1/agent/runners"
    return {root: {"get": _list()}, f"{root}/{{runner_id}}/run": {"post": _run()}}


def _list() -> Operation:
    return operation(
        "agent_runners",
        "List the available runners, for staff",
        {"200": response("The manifests of the runners.", record({"runners": array(_RUNNER)}))},
        **_TAG,
    )


def _run() -> Operation:
    lines = {"application/x-ndjson": {"x-itemSchema": ref("RunResult")}}
    streamed: dict[str, Any] = {
        "200": {
            "description": "The run's results: one AgentRunResult per line or per server-sent event.",
            "content": lines | sse(ref("RunResult")),
        }
    }
    return operation(
        "agent_runner_run",
        "Start a run on one runner, for staff",
        streamed,
        STARTS_RUN,
        parameters=[path_param("runner_id")],
        requestBody=body(ref("RunnerBody")),
        **_TAG,
    )
