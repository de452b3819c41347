"""OpenAI's Responses API, at the addresses where its SDKs look for it under a base URL of ours."""

from __future__ import annotations

from typing import Final

from django.http import HttpRequest, HttpResponseBase

from agents import actions, guards, streaming, views
from agents.dialects import responses
from config.auth.access import READ, RUN
from config.auth.bearer import Caller
from config.http import api, json_response
from conversations import reads
from conversations.models import LIVE
from conversations.reads import RunRow

_CANCELLED_S: Final = 5.0  # by then a run that is cancelled has ended (promise P9)


@api(POST=RUN)
async def create(request: HttpRequest, caller: Caller) -> HttpResponseBase:
    """`POST /v1/responses`: the response when it is done, its stream, or (`background`) its id."""
    _, asked, body = await views.posted(request, responses.NAME)
    if responses.streams(body, accept=""):
        return await views.streamed(caller, responses, asked)
    if responses.waits(body):
        return await views.answered(caller, responses, asked)
    return json_response(await views.accepted(caller, responses, asked))


@api(GET=READ)
async def retrieve(request: HttpRequest, caller: Caller, response_id: str) -> HttpResponseBase:
    """`GET /v1/responses/{response_id}`: as it stands, or with `?stream=true` what came after
    `?starting_after=`."""
    row = await _row(response_id, caller)
    await reads.check_events_kept(row)
    if request.GET.get("stream") != "true":
        return json_response(await streaming.standing(row, responses))
    after = views.position(request.headers.get("Last-Event-ID"), request.GET.get("starting_after"))
    if request.method == "HEAD":
        return views.headers_of_stream()
    lease = await guards.admit(caller.user_id, row.thread_id, resumed=after > streaming.FROM_THE_START)
    return views.stream(lease, row, responses, after=after)


@api(POST=RUN)
async def cancel(request: HttpRequest, caller: Caller, response_id: str) -> HttpResponseBase:
    """`POST /v1/responses/{response_id}/cancel`: the response, cancelled if it had not ended."""
    row = await _row(response_id, caller)
    await reads.check_events_kept(row)
    if row.status not in LIVE:
        return json_response(await streaming.standing(row, responses))
    await actions.cancel_run(row.run_id)
    return json_response(await streaming.settled(row, responses, wait_s=_CANCELLED_S))


async def _row(response_id: str, caller: Caller) -> RunRow:
    return await reads.run_row(views.run_id_of(response_id), user_id=caller.user_id)
