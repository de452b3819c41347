"""The operations of the plain async endpoints, added to the OpenAPI document of the DRF views.

drf-spectacular describes only DRF views, so this package writes the operations of the async views.
Their schemas come from the types that parse and serialize, and a test compares them with the routes.
Every response in the test suite is checked against the document (`tests/schema_true`).
"""

from __future__ import annotations

from typing import Any, Final

from config.openapi.ag_ui import ag_ui_operations, ag_ui_schemas
from config.openapi.approvals import approval_operations
from config.openapi.attachments import attachment_operations
from config.openapi.chat_completions import COMPLETION_SCHEMAS, completion_operations
from config.openapi.feedback import feedback_operations
from config.openapi.frames import FRAMES
from config.openapi.history import history_operations
from config.openapi.library import library_operations
from config.openapi.metrics import metrics_operations
from config.openapi.parts import (
    ERROR,
    ERRORS,
    Operation,
    common_errors,
    errors,
    open_object,
    path_param,
    response,
)
from config.openapi.responses import RESPONSE_SCHEMAS, responses_operations
from config.openapi.runners import runner_operations
from config.openapi.runs import RUN_SCHEMAS, run_operations
from config.openapi.staff import staff_schemas
from config.openapi.types import derived_schemas
from config.openapi.usage import usage_operations

_UNSUPPORTED_MEDIA_TYPE: Final = 415  # the REST framework's response to a body that is not JSON


def _contract() -> Operation:
    return {
        "operationId": "contract_schema",
        "summary": "Get a JSON Schema of the published contracts",
        "tags": ["schemas"],
        "security": [],
        "parameters": [path_param("name", "The schema's name, with or without its suffix.")],
        "responses": {
            "200": response(
                "The schema.", open_object("A JSON Schema document."), "application/schema+json"
            ),
        }
        | errors(404, 405, 503),
    }


def _add_errors(operations: dict[str, Any]) -> None:
    """Add the error responses that all views of the REST framework share, in Parley's error format."""
    for operation in operations.values():
        found = operation["responses"]
        for status, declared in found.items():
            if status >= "400":
                declared["content"] = {"application/json": {"schema": ERROR}}
        has_body = "requestBody" in operation
        more = common_errors(has_body=has_body) + ((_UNSUPPORTED_MEDIA_TYPE,) if has_body else ())
        if not operation.get("security"):
            more = tuple(status for status in more if status != 403)
        operation["responses"] = errors(*more) | found | _headers(found, more)


def _headers(found: dict[str, Any], statuses: tuple[int, ...]) -> dict[str, Any]:
    """Return the error responses that a view describes itself, with their required headers added."""
    shared = errors(*statuses)
    return {key: shared[key] | own for key, own in found.items() if key in shared}


def add_async_operations(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Add the async operations and their schemas: a post-processing hook of drf-spectacular."""
    for operations in result["paths"].values():
        _add_errors(operations)
    result["paths"] |= (
        run_operations()
        | history_operations()
        | ag_ui_operations()
        | attachment_operations()
        | library_operations()
        | approval_operations()
        | feedback_operations()
        | runner_operations()
        | responses_operations()
        | completion_operations()
        | metrics_operations()
        | usage_operations()
        | {"/api/v1/schemas/{name}": {"get": _contract()}}
    )
    components = result.setdefault("components", {})
    components["schemas"] = components.get("schemas", {}) | _schemas()
    schemes = components.setdefault("securitySchemes", {})
    schemes["bearer"] = {"type": "http", "scheme": "bearer", "description": "A JWT or an API token."}
    return result


def _schemas() -> dict[str, Any]:
    return (
        ERRORS
        | FRAMES
        | RUN_SCHEMAS
        | RESPONSE_SCHEMAS
        | COMPLETION_SCHEMAS
        | ag_ui_schemas()
        | derived_schemas()
        | staff_schemas()
    )
