"""How the OpenAPI document describes attachments (specs/run-agent-input.md §6)."""

from __future__ import annotations

from typing import Any, Final

from config.openapi_parts import ERROR, Operation, answer, operation, query

_TEXT: Final = {"type": "string"}
_BYTES: Final = {"type": "string", "format": "binary"}
_FORM: Final = {
    "type": "object",
    "required": ["file"],
    "properties": {"file": _BYTES, "threadId": _TEXT, "runId": _TEXT},
}


def attachment_operations() -> dict[str, dict[str, Operation]]:
    """The paths of uploads and of signed URLs."""
    return {
        "/api/v1/agent/artifacts/{artifact_id}": {"get": _artifact()},
        "/api/v1/agent/attachments": {"post": _upload()},
        "/storage/v1/object/sign/{bucket}/{path}": {"get": _download()},
    }


def _texts(*names: str) -> dict[str, Any]:
    return {"type": "object", "required": list(names), "properties": dict.fromkeys(names, _TEXT)}


def _upload() -> Operation:
    stored = _texts("bucket", "path", "mime_type", "url")
    return operation(
        "agent_attachments_create",
        "Upload an image for a message",
        {"201": answer("It is stored; the url opens it for an hour.", stored)},
        (401, 405, 413, 415, 422, 429, 507),
        requestBody={"required": True, "content": {"multipart/form-data": {"schema": _FORM}}},
    )


def _artifact() -> Operation:
    found = _texts("artifact_id", "mime_type", "url")
    found["properties"] = found["properties"] | {"size_bytes": {"type": "integer"}}
    return operation(
        "agent_artifact_retrieve",
        "What a tool found that was too large to be told whole",
        {"200": answer("Its size, and a url that opens it for an hour.", found)},
        (401, 404, 405, 429),
        parameters=[{"name": "artifact_id", "in": "path", "required": True, "schema": _TEXT}],
    )


def _download() -> Operation:
    image = {"image/*": {"schema": _BYTES}}
    refused = _texts("statusCode", "error", "message")
    places = [
        {"name": name, "in": "path", "required": True, "schema": _TEXT} for name in ("bucket", "path")
    ]
    return {
        "operationId": "attachment_retrieve",
        "summary": "An attachment, by its signed URL",
        "tags": ["agent"],
        "security": [],
        "parameters": [*places, query("token", "From the signed URL.") | {"required": True}],
        "responses": {
            "200": {"description": "The image.", "content": image},
            "206": {"description": "A range of it.", "content": image},
            "302": {"description": "It is at this address of the storage."},
            "400": answer("The token or the object is not valid.", refused),
            "404": answer("No such address.", ERROR),
            "405": answer("Wrong method.", ERROR),
        },
    }
