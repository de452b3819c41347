"""Builders of operations, which stand beside the views: parameters, bodies, responses and errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from string import Formatter
from typing import Any, Final, TypeVar

from config.http.documentation import headers, links
from config.http.documentation.schema_builders import ERROR, TEXT, Schema, any_of, record

View = TypeVar("View", bound=Callable[..., Any])
Operation = dict[str, Any]
Route = tuple[str, str, Operation]
"""A path, a method in lower case, and its operation."""

_MEANINGS: Final = {
    401: "The request has no valid token.",
    403: "The token or the account has no permission (guests: `ANONYMOUS_ACCESS_DENIED`).",
    404: "The user has no such resource.",
    405: "The address does not support the method.",
    408: "The body did not arrive in time.",
    409: "The runId or key was used with another body, or the thread is busy (`on_busy=reject`).",
    410: "The resource existed and is no longer kept.",
    413: "The body exceeds a limit of this address; the code names the limit.",
    415: "The type of the file or of the body is not supported.",
    422: "The request is not valid.",
    429: "Too many requests, or an exhausted budget; try again after Retry-After seconds.",
    503: "The server is temporarily unavailable; the code names the cause. Try again after "
    "Retry-After seconds.",
    507: "The storage has no room for the file.",
}
_COMMON: Final = (401, 403, 405, 422, 429, 503)
_WITH_BODY: Final = (408, 413)
STARTS_RUN: Final = (404, 409, 410, 415, 507)
"""Further errors of requests that start a run: about its thread, its id and its files."""


def query(name: str, description: str, **schema: Any) -> dict[str, Any]:
    """Return a parameter of the query, a text unless the schema has another type."""
    return {"name": name, "in": "query", "schema": TEXT | schema, "description": description}


RUN_OPTIONS: Final = [
    query(
        "on_busy",
        "If the thread has a live run. Default: `enqueue`.",
        enum=["enqueue", "reject", "interrupt"],
    ),
    query(
        "on_disconnect",
        "What becomes of the run if the client disconnects. Default: `continue`.",
        enum=["continue", "cancel"],
    ),
    *headers.sends("Idempotency-Key", "X-Run-Deadline", "X-On-Disconnect", "X-Prompt-Version"),
]
"""The parameters of every operation that starts a run."""
BRANCH: Final = query(
    "branch",
    "The last run of the branch to show (its id, or the client's `runId`). Default: the branch that was "
    "continued last.",
)
PAGING: Final = [
    query("limit", "The page size, 1 to 100.", type="integer"),
    query("cursor", "The `nextCursor` of the previous page."),
]
_VARIABLES: Final[dict[str, dict[str, Any]]] = {
    "run_id": {"description": "The run's id (32 hex digits or a UUID), or the client's `runId`."},
    "task_id": {"description": "The run's id."},
    "thread_id": {"description": "The thread's id, or the client's name for it."},
    "response_id": {"description": "`resp_` followed by the run's id."},
    "model_id": {"description": "The key of a model, or its name (`global:` and the key)."},
    "name": {"description": "The schema's name, with or without its suffix."},
}
"""What the variables of paths mean; others explain themselves, or are among the parameters."""


def _path_parameters(path: str, parameters: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    shared = {"in": "path", "required": True, "schema": TEXT}
    known = {one.get("name") for one in parameters}
    names = [name for _, name, *_ in Formatter().parse(path) if name and name not in known]
    return [{"name": name} | shared | _VARIABLES.get(name, {}) for name in names]


def body(schema: Schema, kind: str = "application/json", /, **examples: Any) -> dict[str, Any]:
    """Return a required request body; a test sends each of its examples."""
    shown = {name: {"value": value} for name, value in examples.items()}
    return {"required": True, "content": {kind: {"schema": schema, "examples": shown}}}


def response(description: str, schema: Schema, kind: str = "application/json") -> dict[str, Any]:
    return {"description": description, "content": {kind: {"schema": schema}}}


def streamed(description: str, frame: Schema, whole: Schema | None = None) -> dict[str, Any]:
    """Return the response 200 that is a stream of frames or, if the client asks so, the whole JSON."""
    content = sse(frame) | ({"application/json": {"schema": whole}} if whole else {})
    return {"200": {"description": description, "content": content}}


def sse(frame: Schema, *, last: str = "") -> dict[str, Any]:
    """Return server-sent events, each with a frame as JSON; after all of them may come a last word."""
    data = TEXT | {
        "contentMediaType": "application/json",
        "contentSchema": frame,
        "description": "One frame in JSON, on one line.",
    }
    event = record(
        data=any_of({"const": last}, data) if last else data,
        optional={
            "event": TEXT | {"description": "The name of the frame, in protocols that name them."},
            "id": TEXT | {"description": "The place in the run: the Last-Event-ID to resume after it."},
        },
    )
    text = "One server-sent event of the stream: each `data:` line holds one frame."
    return {"text/event-stream": {"schema": event | {"description": text}}}


def errors(*statuses: int, error: Schema = ERROR) -> dict[str, Any]:
    """Return the error responses of these statuses."""
    return {str(status): response(_MEANINGS[status], error) for status in sorted(statuses)}


def common_errors(*, has_body: bool) -> tuple[int, ...]:
    """Return the error statuses that every operation with a bearer token shares."""
    return _COMMON + (_WITH_BODY if has_body else ())


def operation(
    address: str,
    operation_id: str,
    summary: str,
    responses: dict[str, Any],
    more_errors: tuple[int, ...] = (),
    *,
    group: str,
    error: Schema = ERROR,
    parameters: Sequence[dict[str, Any]] = (),
    **more: Any,
) -> Route:
    """Return an operation that needs a bearer token, with the common errors and its own.

    `address` is a method and a path. Every path with a variable may lead to nothing (404), and every
    request that is no GET may have a body. `parameters` are those besides the variables of the path.
    """
    method, path = address.split()
    statuses = common_errors(has_body=method != "GET") + ((404,) if "{" in path else ()) + more_errors
    described = {
        "operationId": operation_id,
        "summary": summary,
        "tags": [group],
        "security": [{"bearer": []}],
        "parameters": [*_path_parameters(path, parameters), *parameters],
        "responses": errors(*statuses, error=error) | responses,
    }
    return path, method.lower(), described | more


def public_operation(
    address: str, operation_id: str, summary: str, responses: dict[str, Any], **more: Any
) -> Route:
    """Return an operation that needs no token; a path with a variable may lead to nothing (404)."""
    path, method, described = operation(address, operation_id, summary, {}, security=[], **more)
    described["responses"] = errors(*((404,) if "{" in path else ()), 405, 503) | responses
    return path, method, described


def described(*routes: Route) -> Callable[[View], View]:
    """Attach to a view the operations that it answers; `config.openapi` finds them there."""

    def mark(view: View) -> View:
        view.operations = routes  # type: ignore[attr-defined]
        return view

    return mark


def complete(operation: Operation) -> Operation:
    """Return the operation with the headers of all requests and responses, and with its links."""
    name = operation["operationId"]
    responses = {
        status: _complete(name, status, declared)
        for status, declared in sorted(operation["responses"].items())
    }
    parameters = [*operation.get("parameters", ()), *headers.sends("X-Request-Id")]
    return operation | {"parameters": parameters, "responses": responses}


def _complete(operation_id: str, status: str, declared: dict[str, Any]) -> dict[str, Any]:
    found = links.links_of(operation_id, status)
    sent = headers.of_status(status) | declared.get("headers", {})
    return declared | {"headers": sent} | ({"links": found} if found else {})
