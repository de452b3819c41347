"""Artifacts over REST: the description of one, and the URL at which its owner can download it."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponseBase
from msgspec.structs import astuple

from config.auth.bearer import Caller
from config.auth.requirements import READ
from config.errors import NotFound
from config.http.async_views import api, json_response
from config.http.documentation import groups
from config.http.documentation.json_types import Count, Hex, Shown
from config.http.documentation.operations import described, operation, response
from config.http.documentation.schema_builders import ref
from conversations.identifiers import uuid_of
from conversations.threads import artifacts


class FoundArtifact(Shown, frozen=True):
    """The description of an artifact, and a URL that is valid for an hour."""

    artifact_id: Hex
    mime_type: str
    size_bytes: Count
    url: str


@described(
    operation(
        "GET /api/v1/agent/artifacts/{artifact_id}",
        "agent_artifact_retrieve",
        "Get a tool result that was too large for the stream",
        {"200": response("The result's size, and a url that is valid for an hour.", ref("Artifact"))},
        group=groups.FILES,
    )
)
@api(GET=READ)
async def artifact(request: HttpRequest, caller: Caller, artifact_id: str) -> HttpResponseBase:
    """Answer `GET /api/v1/agent/artifacts/{artifact_id}`: the caller's artifact, with a URL."""
    requested_id = uuid_of(artifact_id)
    found = await artifacts.find_artifact(requested_id, caller.user_id) if requested_id else None
    if requested_id is None or found is None:
        raise NotFound("There is no such artifact.", code="artifact_not_found")
    return json_response(FoundArtifact(requested_id.hex, *astuple(found)))
