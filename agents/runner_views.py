"""Runners over REST, for operators: which there are, and a run of one of them in the seed's envelope."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from django.http import HttpRequest, HttpResponseBase, StreamingHttpResponse
from msgspec.structs import replace

from agents import rows, sources, streaming, views
from agents.dialects import runner as dialect
from agents.dialects.base import Frame, wants_stream
from agents.hostcalls import catalogue
from agents.hosting.manifest import RunnerManifest
from agents.hosting.runner_id import home_of
from config.auth.access import Access
from config.auth.bearer import Caller
from config.auth.models import Scope
from config.errors import InvalidRequest, NotFound
from config.http import api, json_response

sources.add_sources()
_NDJSON: Final = "application/x-ndjson; charset=utf-8"
_BINDINGS: Final = """
SELECT runner_id, array_agg(name ORDER BY position, id) FROM agents_runnerbinding WHERE is_active
GROUP BY runner_id
"""


@api(GET=Access(Scope.ADMIN, "agents.view_runnerbinding"))
async def runners(request: HttpRequest, caller: Caller) -> HttpResponseBase:
    """`GET /api/v1/agent/runners`: every runner that is there now, with its manifest."""
    await sources.refresh()
    bound = dict(await rows.every(_BINDINGS, ()))
    listed = [_shown(manifest, bound.get(manifest.id, [])) for manifest in catalogue.manifests()]
    return json_response({"runners": listed})


@api(POST=Access(Scope.RUN, "agents.change_runnerbinding"))
async def run(request: HttpRequest, caller: Caller, runner_id: str) -> HttpResponseBase:
    """`POST /api/v1/agent/runners/{runner_id}/run`: its result stream, as NDJSON or as SSE."""
    posted = await views.posted(request, dialect.NAME)
    await sources.refresh()
    if catalogue.find(runner_id) is None and runner_id not in catalogue.BUILTIN:
        raise NotFound("There is no such runner now: see GET /api/v1/agent/runners.")
    asked = replace(posted.asked, runner=runner_id)
    if asked.event and not asked.messages and runner_id in catalogue.BUILTIN:
        raise InvalidRequest(
            f"{runner_id} answers messages only: input.text is missing.", code="text_required"
        )
    if wants_stream(request.headers.get("Accept", "")):
        return await views.streamed(caller, dialect, asked)
    lease, row, leaving = await views.begun(caller, asked)
    lists = streaming.frames(row, dialect, after=streaming.FROM_THE_START)
    body_of = streaming.server_sent(lists, on_leaving=leaving, write=_line, silence=b"\n")
    return StreamingHttpResponse(lease.around(body_of), content_type=_NDJSON)


def _line(frame: Frame) -> bytes:
    return frame.data + b"\n"


def _shown(manifest: RunnerManifest, bindings: list[str]) -> dict[str, Any]:
    told: dict[str, Any] = msgspec.to_builtins(manifest)
    return told | {"home": home_of(manifest.id), "bindings": bindings}
