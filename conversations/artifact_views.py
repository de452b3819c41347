"""What an artifact is, and where its owner can download it."""

from __future__ import annotations

from uuid import UUID

import msgspec
from django.http import HttpRequest, HttpResponseBase

from config.auth.access import READ
from config.auth.bearer import Caller
from config.errors import NotFound
from config.http import api, json_response
from conversations import artifacts


@api(GET=READ)
async def artifact(request: HttpRequest, caller: Caller, artifact_id: str) -> HttpResponseBase:
    """`GET /api/v1/agent/artifacts/{artifact_id}`: the caller's own, with a URL of its bytes."""
    wanted = _id(artifact_id)
    found = await artifacts.find(wanted, caller.user_id)
    if found is None:
        raise _missing()
    return json_response({"artifact_id": wanted.hex} | msgspec.to_builtins(found))


def _id(given: str) -> UUID:
    try:
        return UUID(given)
    except ValueError:
        raise _missing() from None


def _missing() -> NotFound:
    return NotFound("There is no such artifact.", code="artifact_not_found")
