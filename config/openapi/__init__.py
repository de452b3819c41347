"""The operations of the plain async endpoints, added to the OpenAPI document of the DRF views.

drf-spectacular describes only DRF views, so this package writes the operations of the async views.
Their schemas come from the types that parse and serialize, and a test compares them with the routes.
Every response in the test suite is checked against the document (`tests/schema_true`).
"""

from __future__ import annotations

from typing import Any, Final

from config.openapi import (
    ag_ui,
    exercise_library,
    metrics,
    openai,
    runs,
    threads,
)
from config.openapi.builders import (
    ERROR,
    ERRORS,
    Route,
    common_errors,
    errors,
    open_object,
    public_operation,
    response,
)
from config.openapi.derived_schemas import derived_schemas
from config.openapi.frames import FRAMES
from config.openapi.rest_schemas import rest_schemas

_UNSUPPORTED_MEDIA_TYPE: Final = 415  # the REST framework's response to a body that is not JSON

_CONTRACT: Final[Route] = public_operation(
    "GET /api/v1/schemas/{name}",
    "contract_schema",
    "Get a JSON Schema of the published contracts",
    {"200": response("The schema.", open_object("A JSON Schema document."), "application/schema+json")},
    tags=["schemas"],
)
_OPERATIONS: Final[list[Route]] = [
    *runs.OPERATIONS,
    *threads.OPERATIONS,
    *ag_ui.OPERATIONS,
    *threads.ATTACHMENT_OPERATIONS,
    *exercise_library.OPERATIONS,
    *openai.OPERATIONS,
    *metrics.OPERATIONS,
    _CONTRACT,
]


def _add_errors(operations: dict[str, Any]) -> None:
    """Add the error responses that all views of the REST framework share, in Parley's error format."""
    for operation in operations.values():
        has_body = "requestBody" in operation
        statuses = common_errors(has_body=has_body) + ((_UNSUPPORTED_MEDIA_TYPE,) if has_body else ())
        if not operation.get("security"):
            statuses = tuple(status for status in statuses if status != 403)
        shared, own = errors(*statuses), operation["responses"]
        for status, declared in own.items():
            if status >= "400":
                declared["content"] = {"application/json": {"schema": ERROR}}
        operation["responses"] = shared | {key: shared.get(key, {}) | own[key] for key in own}


def add_async_operations(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Add the async operations and their schemas: a post-processing hook of drf-spectacular."""
    for operations in result["paths"].values():
        _add_errors(operations)
    for path, method, operation in _OPERATIONS:
        result["paths"].setdefault(path, {})[method] = operation
    components = result.setdefault("components", {})
    components["schemas"] = components.get("schemas", {}) | _schemas()
    return result


def _schemas() -> dict[str, Any]:
    written = ERRORS | FRAMES | runs.SCHEMAS | openai.SCHEMAS | ag_ui.SCHEMAS
    return written | derived_schemas() | rest_schemas()
