"""OpenAI's Responses API, at the addresses where its SDKs look for it under a base URL of ours."""

from __future__ import annotations

from typing import Any, Final

from django.http import HttpRequest, HttpResponseBase
from msgspec.structs import replace

from agents import actions, approvals, context, guards, streaming, views
from agents.dialects import responses
from agents.dialects.openai import items, shape
from agents.requests import RunRequest
from config.auth.access import READ, RUN
from config.auth.bearer import Caller
from config.http import api, json_response
from conversations import attachments, interrupts, reads, unstored
from conversations.cursors import read_limit
from conversations.models import LIVE
from conversations.reads import RunRow

_ITEMS: Final = 20
_CANCELLED_S: Final = 5.0  # by then a run that is cancelled has ended (promise P9)


@api(POST=RUN)
async def create(request: HttpRequest, caller: Caller) -> HttpResponseBase:
    """`POST /v1/responses`: the response when it is done, its stream, or (`background`) its id."""
    _, asked, body = await views.posted(request, responses.NAME)
    asked = await _where_asked(caller, asked)
    if responses.streams(body, accept=""):
        return await views.streamed(caller, responses, asked)
    if responses.waits(body):
        return await views.answered(caller, responses, asked)
    return json_response(await views.accepted(caller, responses, asked))


@api(GET=READ, DELETE=RUN)
async def response(request: HttpRequest, caller: Caller, response_id: str) -> HttpResponseBase:
    """`GET /v1/responses/{response_id}`: as it stands, or with `?stream=true` what came after
    `?starting_after=`. `DELETE`: nothing of it is kept but its numbers; a live one is cancelled."""
    row = await _row(response_id, caller)
    if request.method == "DELETE":
        return json_response(await _deleted(row))
    await reads.check_events_kept(row)
    if request.GET.get("stream") != "true":
        return json_response(await streaming.standing(row, responses))
    after = views.position(request.headers.get("Last-Event-ID"), request.GET.get("starting_after"))
    if request.method == "HEAD":
        return views.headers_of_stream()
    lease = await guards.admit(caller.user_id, row.thread_id, resumed=after > streaming.FROM_THE_START)
    return views.stream(lease, row, responses, after=after)


async def _deleted(row: RunRow) -> dict[str, Any]:
    if not await unstored.delete(row.run_id, owner_id=row.owner_id):
        raise reads.run_not_found()
    await actions.cancel_run(row.run_id)
    return {"id": shape.response_id(row.run_id), "object": "response", "deleted": True}


@api(GET=READ)
async def input_items(request: HttpRequest, caller: Caller, response_id: str) -> HttpResponseBase:
    """`GET /v1/responses/{response_id}/input_items`: what was said with it, a page at a time."""
    row = await _row(response_id, caller)
    asked = await context.asked_in(row.run_id, owner_id=caller.user_id)
    listed = [item for one in asked for item in items.shown(*one, sign=attachments.sign)]
    if request.GET.get("order") != "asc":
        listed.reverse()
    place = next((at + 1 for at, item in enumerate(listed) if item["id"] == request.GET.get("after")), 0)
    limit = read_limit(request.GET.get("limit"), default=_ITEMS)
    page = listed[place : place + limit]
    ends = {"first_id": page[0]["id"], "last_id": page[-1]["id"]} if page else {}
    more = {"has_more": place + limit < len(listed)}
    return json_response(
        {"object": "list", "data": page, "first_id": None, "last_id": None} | ends | more
    )


@api(POST=RUN)
async def cancel(request: HttpRequest, caller: Caller, response_id: str) -> HttpResponseBase:
    """`POST /v1/responses/{response_id}/cancel`: the response, cancelled if it had not ended."""
    row = await _row(response_id, caller)
    await reads.check_events_kept(row)
    if row.status not in LIVE:
        return json_response(await streaming.standing(row, responses))
    await actions.cancel_run(row.run_id)
    return json_response(await streaming.settled(row, responses, wait_s=_CANCELLED_S))


async def _where_asked(caller: Caller, asked: RunRequest) -> RunRequest:
    """The request, in the thread of the approval that it gives where it names no conversation.

    openai-agents repeats all that was said instead, of which the thread holds what came before.
    """
    if not asked.answers or asked.thread_id or asked.session or asked.parent_run_id:
        return asked
    interrupt = await interrupts.find(approvals.interrupt_id_of(asked.answers[0].interrupt_id))
    if interrupt is None or interrupt.owner_id != caller.user_id:
        raise approvals.approval_not_found()
    return replace(asked, thread_id=str(interrupt.thread_id), continues=interrupt.run_id.hex)


async def _row(response_id: str, caller: Caller) -> RunRow:
    return await reads.run_row(views.run_id_of(response_id), user_id=caller.user_id)
