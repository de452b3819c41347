"""The OpenAPI operations of attachments (specs/run-agent-input.md §6)."""

from __future__ import annotations

from typing import Final

from config.openapi.parts import (
    COUNT,
    TEXT,
    Operation,
    body,
    errors,
    operation,
    path_param,
    query,
    record,
    response,
    strings,
)

_BYTES: Final = {"type": "string", "format": "binary"}
_FORM: Final = record({"file": _BYTES}, {"threadId": TEXT, "runId": TEXT})


def attachment_operations() -> dict[str, dict[str, Operation]]:
    """Return the operations of uploads and signed URLs by path and method."""
    return {
        "/api/v1/agent/artifacts/{artifact_id}": {"get": _artifact()},
        "/api/v1/agent/attachments": {"post": _upload()},
        "/storage/v1/object/sign/{bucket}/{path}": {"get": _download()},
    }


def _upload() -> Operation:
    stored = strings("bucket", "path", "mime_type", "url")
    return operation(
        "agent_attachments_create",
        "Upload an image for a message",
        {"201": response("The image is stored; its url is valid for an hour.", stored)},
        (404, 415, 507),
        requestBody=body(_FORM, "multipart/form-data"),
    )


def _artifact() -> Operation:
    found = record(dict.fromkeys(("artifact_id", "mime_type", "url"), TEXT) | {"size_bytes": COUNT})
    return operation(
        "agent_artifact_retrieve",
        "Get a tool result that was too large for the stream",
        {"200": response("The size of the result, and a url that is valid for an hour.", found)},
        (404,),
        parameters=[path_param("artifact_id")],
    )


def _download() -> Operation:
    image = {"*/*": {"schema": _BYTES}}
    refused = strings("statusCode", "error", "message")
    return {
        "operationId": "attachment_retrieve",
        "summary": "Download an attachment by its signed URL",
        "tags": ["agent"],
        "security": [],
        "parameters": [
            path_param("bucket"),
            path_param("path"),
            query("token", "The token of the signed URL.") | {"required": True},
        ],
        "responses": {
            "200": {"description": "The whole file.", "content": image},
            "206": {"description": "A range of the file.", "content": image},
            "302": {"description": "A redirect to the file in the object store."},
            "304": {"description": "The caller's copy is current."},
            "400": response("The token or the object is not valid.", refused),
            "412": {"description": "The file is another version than the caller's."},
            "416": {
                "description": "The file does not have this range.",
                "headers": {"Content-Range": {"required": True, "schema": TEXT}},
            },
        }
        | errors(404, 405, 503),
    }
