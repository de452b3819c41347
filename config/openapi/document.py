"""The OpenAPI document: the operations that stand beside the views, and all schemas.

drf-spectacular describes only the views of the REST framework; `add_async_operations` adds the others.
The schemas come from the types that parse and serialize. A test compares the document with the routes,
and every response and frame in the test suite is checked against it (`tests/schema_true`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from django.urls import URLPattern, URLResolver, get_resolver

from config.http.documentation import groups, headers
from config.http.documentation.operations import Route, common_errors, complete, errors
from config.http.documentation.schema_builders import ERROR, ERRORS
from config.openapi import ag_ui, metrics, openai, runs, threads
from config.openapi.derived_schemas import derived_schemas
from config.openapi.frames import FRAMES
from config.openapi.introduction import INFO
from config.openapi.rest_schemas import rest_schemas

_UNSUPPORTED_MEDIA_TYPE: Final = 415  # the REST framework's response to a body that is not JSON
_WRITTEN: Final = (runs, threads, ag_ui, openai, metrics)


def add_async_operations(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Add the async operations and all components: a post-processing hook of drf-spectacular."""
    paths = result["paths"]
    for operations in paths.values():
        _add_errors(operations)
    for path, method, operation in _described(get_resolver().url_patterns):
        paths.setdefault(path, {})[method] = operation
    for operations in paths.values():
        operations |= {method: complete(operation) for method, operation in operations.items()}
    components = result.setdefault("components", {})
    components |= {"parameters": headers.PARAMETERS, "headers": headers.HEADERS}
    components["schemas"] = components.get("schemas", {}) | _schemas()
    return result | {"info": INFO, "tags": groups.TAGS, "paths": groups.sort_paths(paths)}


def _described(patterns: Iterable[URLPattern | URLResolver]) -> Iterator[Route]:
    """Yield the operations of all views that `described` marks, in the order of the routes."""
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            yield from _described(pattern.url_patterns)
        else:
            yield from getattr(pattern.callback, "operations", ())


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


def _schemas() -> dict[str, Any]:
    found = ERRORS | FRAMES | derived_schemas() | rest_schemas()
    for module in _WRITTEN:
        found |= module.SCHEMAS
    return found
