"""What a tool's large result is, and where its owner can download it."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest, HttpResponseBase

from config.auth.access import READ
from config.auth.bearer import Caller
from config.errors import NotFound
from config.http import api, json_response
from conversations import attachments


@api(GET=READ)
async def artifact(request: HttpRequest, caller: Caller, artifact_id: str) -> HttpResponseBase:
    """`GET /api/v1/agent/artifacts/{artifact_id}`: the caller's own, with a signed URL of its bytes."""
    stored = await attachments.find_artifact(_id(artifact_id), owner_id=caller.user_id)
    found = stored and await attachments.opened(stored)
    if not stored or not found:
        raise _missing()
    return json_response(
        {
            "artifact_id": _id(artifact_id).hex,
            "mime_type": attachments.mime_type_of(stored),
            "size_bytes": found.stat.size,
            "url": attachments.sign(stored.bucket, stored.path),
        }
    )


def _id(given: str) -> UUID:
    try:
        return UUID(given)
    except ValueError:
        raise _missing() from None


def _missing() -> NotFound:
    return NotFound("There is no such artifact.", code="artifact_not_found")
