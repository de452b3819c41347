"""Builders of the parts of operations; see `config.openapi`."""

from __future__ import annotations

from collections.abc import Sequence
from string import Formatter
from typing import Any, Final

from conversations.metrics.sheets import SHEETS

Operation = dict[str, Any]
Route = tuple[str, str, Operation]
"""A path, a method in lower case, and its operation."""
Schema = dict[str, Any]

TEXT: Final[Schema] = {"type": "string"}
COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
TIME: Final[Schema] = {"type": "string", "format": "date-time"}
FLAG: Final[Schema] = {"type": "boolean"}
CITATION: Final[dict[str, Schema]] = {
    "url": TEXT | {"description": "The address of the file, for the owner of the run."},
    "title": TEXT | {"description": "The name of the file."},
    "start_index": COUNT,
    "end_index": COUNT,
}


def ref(name: str) -> Schema:
    """Return a reference to the component schema of this name."""
    return {"$ref": f"#/components/schemas/{name}"}


def nullable(schema: Schema) -> Schema:
    """Return the schema extended by null."""
    if "$ref" in schema or "anyOf" in schema:
        return any_of(schema, {"type": "null"})
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return schema | {"type": [*kinds, "null"]}


def record(*, optional: dict[str, Schema] | None = None, **required: Schema) -> Schema:
    """Return the schema of an object with these members and no others."""
    return {
        "type": "object",
        "required": list(required),
        "additionalProperties": False,
        "properties": required | (optional or {}),
    }


def envelope(data: Schema, **more: Schema) -> Schema:
    """Return the schema of the envelope in which some endpoints send their data."""
    return record(code={"const": 200}, msg=TEXT, data=data, **more)


def array(of: Schema) -> Schema:
    return {"type": "array", "items": of}


def any_of(*schemas: Schema) -> Schema:
    return {"anyOf": list(schemas)}


def open_object(description: str) -> Schema:
    """Return the schema of an object with any members."""
    return {"type": "object", "additionalProperties": True, "description": description}


ERROR: Final = ref("Error")
OPENAI_ERROR: Final = ref("OpenAIError")
AGENT_API_ERROR: Final = ref("AgentApiError")
_ERROR: Final[dict[str, Schema]] = {
    "detail": TEXT | {"description": "The error as a sentence, for people."},
    "code": TEXT | {"description": "The error code, for programs."},
    "request_id": TEXT | {"description": "The request's id in the logs."},
}
_FACTS: Final[dict[str, Schema]] = {
    "errors": {
        "type": ["array", "object"],
        "items": open_object("One validation error: `loc`, `msg`, `type`."),
        "additionalProperties": True,
        "description": "The validation errors of the body, or those of a form by field.",
    },
    "param": nullable(TEXT) | {"description": "The invalid field."},
}


def _error(**more: Schema) -> Schema:
    """Return the schema of an error with these members beside the common ones; it may have others."""
    required = _ERROR | more
    return {"type": "object", "required": list(required), "properties": required | _FACTS}


ERRORS: Final[dict[str, Schema]] = {
    "Error": _error(),
    "OpenAIError": _error(error=record(message=TEXT, type=TEXT, param=_FACTS["param"], code=TEXT)),
    "AgentApiError": _error(error=record(code=TEXT, message=TEXT)),
}
"""The component schemas that error responses refer to."""

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
_HEADERS: Final[dict[int, dict[str, Any]]] = {
    401: {"WWW-Authenticate": {"required": True, "schema": TEXT}},
    405: {"Allow": {"required": True, "schema": TEXT}},
    429: {"Retry-After": {"required": True, "schema": COUNT}},
    503: {"Retry-After": {"required": True, "schema": COUNT}},
}


def query(name: str, description: str, **schema: Any) -> dict[str, Any]:
    """Return a parameter of the query, a text unless the schema has another type."""
    return {"name": name, "in": "query", "schema": TEXT | schema, "description": description}


def header(name: str, description: str, **schema: Any) -> dict[str, Any]:
    return query(name, description, **schema) | {"in": "header"}


_VARIABLES: Final[dict[str, dict[str, Any]]] = {
    "run_id": {"description": "The run's id (32 hex digits or a UUID), or the client's `runId`."},
    "task_id": {"description": "The run's id."},
    "thread_id": {"description": "The thread's id, or the client's name for it."},
    "response_id": {"description": "`resp_` followed by the run's id."},
    "model_id": {"description": "The key of a model, or its name (`global:` and the key)."},
    "name": {"description": "The schema's name, with or without its suffix."},
    "sheet": {
        "schema": TEXT | {"enum": list(SHEETS)},
        "description": "users, runs and messages are paginated (limit, cursor); the other sheets are "
        "not.",
    },
}
"""What the variables of paths mean; others explain themselves."""


def _path_parameters(path: str) -> list[dict[str, Any]]:
    shared = {"in": "path", "required": True, "schema": TEXT}
    names = [name for _, name, *_ in Formatter().parse(path) if name]
    return [{"name": name} | shared | _VARIABLES.get(name, {}) for name in names]


BRANCH: Final = query(
    "branch",
    "The last run of the branch to show (its id, or the client's `runId`). Default: the branch that was "
    "continued last.",
)


PAGING: Final = [
    query("limit", "The page size, 1 to 100.", type="integer"),
    query("cursor", "The `nextCursor` of the previous page."),
]


def page(**items: Schema) -> Schema:
    """Return the schema of a page of items, from which PAGING goes on to the next one."""
    return record(**items, nextCursor=nullable(TEXT))


def response(description: str, schema: Schema, kind: str = "application/json") -> dict[str, Any]:
    return {"description": description, "content": {kind: {"schema": schema}}}


def streamed(description: str, frame: Schema, whole: Schema | None = None) -> dict[str, Any]:
    """Return the response 200 that is a stream of frames or, if the client asks so, the whole JSON."""
    content = sse(frame) | ({"application/json": {"schema": whole}} if whole else {})
    return {"200": {"description": description, "content": content}}


def sse(frame: Schema) -> dict[str, Any]:
    """Return server-sent events whose data is this JSON. (OpenAPI 3.2 calls this `itemSchema`.)"""
    data = TEXT | {"contentMediaType": "application/json", "contentSchema": frame}
    event = record(data=data, optional={"event": TEXT, "id": TEXT})
    return {"text/event-stream": {"x-itemSchema": event}}


def body(schema: Schema, kind: str = "application/json") -> dict[str, Any]:
    """Return a required request body."""
    return {"required": True, "content": {kind: {"schema": schema}}}


def errors(*statuses: int, error: Schema = ERROR) -> dict[str, Any]:
    """Return the error responses of these statuses, with their headers."""
    return {str(status): _error_response(status, error) for status in sorted(statuses)}


def _error_response(status: int, error: Schema) -> dict[str, Any]:
    headers = _HEADERS.get(status)
    return response(_MEANINGS[status], error) | ({"headers": headers} if headers else {})


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
    if parameters := [*_path_parameters(path), *parameters]:
        more["parameters"] = parameters
    described = {
        "operationId": operation_id,
        "summary": summary,
        "tags": ["agent"],
        "security": [{"bearer": []}],
        "responses": errors(*statuses, error=error) | responses,
    }
    return path, method.lower(), described | more


def public_operation(
    address: str, operation_id: str, summary: str, responses: dict[str, Any], **more: Any
) -> Route:
    """Return an operation that needs no token, of a path with variables."""
    path, method, described = operation(address, operation_id, summary, {}, security=[], **more)
    described["responses"] = errors(404, 405, 503) | responses
    return path, method, described
