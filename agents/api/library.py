"""The exercise library for apps, and its publishing for staff (specs/text-run.md §3)."""

from __future__ import annotations

import asyncio
import gzip
import re
from functools import partial
from typing import ClassVar, Final, cast

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.http import parse_etags
from drf_spectacular.utils import OpenApiResponse, extend_schema
from msgspec import to_builtins
from rest_framework.request import Request
from rest_framework.response import Response

from agents.models import LibraryVersion
from agents.tools.exercises import library_reads
from agents.tools.exercises.library_bodies import PatchBody, SeedBody, read_body, read_publish
from agents.tools.exercises.library_reads import Version, parse_version
from agents.tools.exercises.library_versions import (
    epoch_milliseconds,
    publish,
    publish_patch,
    publish_seed,
)
from config.auth.bearer import Caller
from config.auth.models import Scope, User
from config.auth.requirements import READ, Access, Needs
from config.errors import InvalidRequest
from config.http.async_views import api, json_response
from config.http.documentation import groups, headers
from config.http.documentation.operations import described, operation, query, response
from config.http.documentation.schema_builders import array, ref
from config.http.drf_views import View, json_of, published

_PUBLISHES: Final = {"POST": Access(Scope.ADMIN, "agents.change_exercise")}
_CONFLICT: Final = {409: OpenApiResponse(description="`baseVersion` is not the newest version.")}
_PLANK: Final = {
    "name": "High plank",
    "muscleGroup": "CORE",
    "category": "CORE",
    "equipment": ["NONE"],
}
_operation: Final = partial(operation, group=groups.LIBRARY)
_KNOWN: Final = headers.sends("If-None-Match")
_UNCHANGED: Final = {"304": {"description": "The caller's copy is current."}}
_EXERCISES: Final = array(ref("Exercise"))
_TAGGED: Final = {"headers": headers.named("ETag")}
_ALWAYS_ASK: Final = {"Cache-Control": "private, no-cache"}
_REFUSED: Final = re.compile(r"\s*q\s*=\s*0(\.0*)?\s*")
_FOR_EVER: Final = {"Cache-Control": "private, max-age=31536000, immutable"}


@described(
    _operation(
        "GET /api/v1/exercise/library/meta",
        "exercise_library_meta",
        "Describe the newest published version of the exercise library",
        {"200": response("The newest version.", ref("LibraryMeta")) | _TAGGED} | _UNCHANGED,
        (404,),
        parameters=_KNOWN,
    )
)
@api(GET=READ)
async def meta(request: HttpRequest, caller: Caller) -> HttpResponseBase:
    """`GET /api/v1/exercise/library/meta`: return the newest version; 304 if the caller has it."""
    newest = await library_reads.find_version()
    headers = _ALWAYS_ASK | {"ETag": newest.etag}
    if _has(request, newest):
        return HttpResponse(status=304, headers=headers)
    return json_response(newest.as_meta(), headers=headers)


@described(
    _operation(
        "GET /api/v1/exercise/library/full",
        "exercise_library_full",
        "Get all exercises of a published version",
        {"200": response("The ExerciseDtos; gzip if the client accepts it.", _EXERCISES) | _TAGGED}
        | _UNCHANGED,
        (404,),
        parameters=[query("version", "The version. Default: the newest.", type="integer"), *_KNOWN],
    )
)
@api(GET=READ)
async def full(request: HttpRequest, caller: Caller) -> HttpResponseBase:
    """`GET …/full`: return every exercise of a version (by default the newest) as ExerciseDtos."""
    number = parse_version("version", request.GET.get("version"))
    found = await library_reads.find_version(number)
    headers = (_FOR_EVER if number else _ALWAYS_ASK) | {"ETag": found.etag, "Vary": "Accept-Encoding"}
    if _has(request, found):
        return HttpResponse(status=304, headers=headers)
    packed = await library_reads.read_content(found)
    if accepts_gzip(request.headers.get("Accept-Encoding", "")):
        return json_response(packed, headers=headers | {"Content-Encoding": "gzip"})
    return json_response(await asyncio.to_thread(gzip.decompress, packed), headers=headers)


@described(
    _operation(
        "GET /api/v1/exercise/library/updates",
        "exercise_library_updates",
        "Get the changes between two published versions",
        {"200": response("The changed exercises.", ref("LibraryUpdates"))},
        (404,),
        parameters=[
            query("from", "The caller's version; 0 if it has none.", type="integer"),
            query("to", "The target version. Default: the newest.", type="integer"),
        ],
    )
)
@api(GET=READ)
async def updates(request: HttpRequest, caller: Caller) -> HttpResponseBase:
    """`GET …/updates?from=&to=`: return the changes between two versions, as ExerciseDtos and ids."""
    start = parse_version("from", request.GET.get("from"))
    if start is None:
        raise InvalidRequest(
            "from is required: your version, or 0.", code="invalid_versions", field="from"
        )
    end = parse_version("to", request.GET.get("to"))
    return json_response(await library_reads.find_updates(start, end), headers=_ALWAYS_ASK)


class Publish(View):
    """Publish the library."""

    needs: ClassVar[Needs] = _PUBLISHES

    @extend_schema(
        operation_id="exercise_library_publish",
        summary="Publish the exercise library as a new version",
        description="Without `payload` the library as staff have written it; with it (the published "
        "seed's form) the library becomes exactly that. 409 `version_conflict` if `baseVersion` is not "
        "the newest version.",
        request=json_of("LibraryPublish", table={"note": "Two new exercises"}),
        responses={200: published("LibraryMeta")} | _CONFLICT,
        tags=["Exercise library"],
    )
    def post(self, request: Request) -> Response:
        body, user = read_publish(request.data), cast("User", request.user)
        if isinstance(body, SeedBody):
            return _published(publish_seed(body, by=user))
        return _published(publish(by=user, note=body.note, base=body.base_version))


class Patch(View):
    """Change some exercises and publish."""

    needs: ClassVar[Needs] = _PUBLISHES

    @extend_schema(
        operation_id="exercise_library_patch",
        summary="Change some exercises of the library and publish it",
        description="`{baseVersion, added, updated, deleted}`; of `updated` only the given fields "
        "change. All or nothing; 409 `version_conflict` if `baseVersion` is not the newest version.",
        request=json_of("LibraryPatch", added={"baseVersion": 1, "added": [_PLANK]}),
        responses={200: published("LibraryMeta")} | _CONFLICT,
        tags=["Exercise library"],
    )
    def post(self, request: Request) -> Response:
        body = read_body(request.data, PatchBody)
        return _published(publish_patch(body, by=cast("User", request.user)))


def accepts_gzip(accept_encoding: str) -> bool:
    """Return whether an Accept-Encoding allows gzip."""
    for part in accept_encoding.lower().split(","):
        coding, _, quality = part.partition(";")
        if coding.strip() in {"gzip", "*"}:
            return not _REFUSED.fullmatch(quality)
    return False


def _has(request: HttpRequest, found: Version) -> bool:
    """Return whether the caller has this version already, according to If-None-Match."""
    known = parse_etags(request.headers.get("If-None-Match", ""))
    bare = found.etag.removeprefix("W/")
    return known == ["*"] or any(tag.removeprefix("W/") == bare for tag in known)


def _published(made: LibraryVersion) -> Response:
    at_ms = epoch_milliseconds(made.published_at)
    return Response(to_builtins(Version(made.number, made.total, at_ms, made.checksum).as_meta()))
