"""The OpenAPI operations of attachments (specs/run-agent-input.md §6)."""

from __future__ import annotations

from typing import Final

from config.openapi.builders import (
    COUNT,
    TEXT,
    Route,
    body,
    operation,
    public_operation,
    query,
    record,
    response,
)

_BYTES: Final = {"type": "string", "format": "binary"}
_FORM: Final = record(file=_BYTES, optional={"threadId": TEXT, "runId": TEXT})

_ARTIFACT: Final = record(artifact_id=TEXT, mime_type=TEXT, url=TEXT, size_bytes=COUNT)
_IMAGE: Final = {"*/*": {"schema": _BYTES}}

OPERATIONS: Final[list[Route]] = [
    operation(
        "GET /api/v1/agent/artifacts/{artifact_id}",
        "agent_artifact_retrieve",
        "Get a tool result that was too large for the stream",
        {"200": response("The size of the result, and a url that is valid for an hour.", _ARTIFACT)},
    ),
    operation(
        "POST /api/v1/agent/attachments",
        "agent_attachments_create",
        "Upload an image for a message",
        {
            "201": response(
                "The image is stored; its url is valid for an hour.",
                record(bucket=TEXT, path=TEXT, mime_type=TEXT, url=TEXT),
            )
        },
        (404, 415, 507),
        requestBody=body(_FORM, "multipart/form-data"),
    ),
    public_operation(
        "GET /storage/v1/object/sign/{bucket}/{path}",
        "attachment_retrieve",
        "Download an attachment by its signed URL",
        {
            "200": {"description": "The whole file.", "content": _IMAGE},
            "206": {"description": "A range of the file.", "content": _IMAGE},
            "302": {"description": "A redirect to the file in the object store."},
            "304": {"description": "The caller's copy is current."},
            "400": response(
                "The token or the object is not valid.",
                record(statusCode=TEXT, error=TEXT, message=TEXT),
            ),
            "412": {"description": "The file is another version than the caller's."},
            "416": {
                "description": "The file does not have this range.",
                "headers": {"Content-Range": {"required": True, "schema": TEXT}},
            },
        },
        parameters=[query("token", "The token of the signed URL.") | {"required": True}],
    ),
]
