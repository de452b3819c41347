"""OpenAI's Responses API, at the addresses that its SDKs use under a base URL of ours."""

from __future__ import annotations

from typing import Any, Final

from django.http import HttpRequest, HttpResponseBase

from agents.api import answering, runs, streaming
from agents.context import thread_history
from agents.dialects.openai_responses import dialect as responses
from agents.dialects.openai_responses import objects
from agents.dialects.openai_responses.input_items import to_input_items
from agents.intake import stream_slots, submit
from config.auth.bearer import Caller
from config.auth.requirements import READ, RUN
from config.errors import NotFound
from config.http import openai_absent
from config.http.async_views import api, json_response
from conversations import attachments
from conversations.models import LIVE
from conversations.runs import client_queries
from conversations.runs.client_queries import RunRow
from conversations.threads.cursors import read_limit
from conversations.upkeep import unstored_runs

_STYLE: Final = answering.AnswerStyle(accepted_status=200)
_ITEMS: Final = 20
_CANCELLED_S: Final = 5.0  # by then a run that is cancelled has ended (promise P9)


@api(POST=RUN)
async def create(request: HttpRequest, caller: Caller) -> HttpResponseBase:
    """`POST /v1/responses`: return the finished response, its stream, or its id (`background`)."""
    return await answering.answer(request, caller, responses.NAME, _STYLE)


@api(GET=READ, DELETE=RUN)
async def response(request: HttpRequest, caller: Caller, response_id: str) -> HttpResponseBase:
    """`/v1/responses/{response_id}`: return the response as it stands (GET), or delete it (DELETE).

    With `?stream=true` GET returns the events after `?starting_after=`. DELETE keeps only the numbers of
    the response, and cancels a live one.
    """
    row = await _row(response_id, caller)
    if request.method == "DELETE":
        return json_response(await _deleted(row))
    await client_queries.check_events_kept(row)
    if request.GET.get("stream") != "true":
        return json_response(await streaming.current_outcome(row, responses))
    after = runs.reader_position(request.headers.get("Last-Event-ID"), request.GET.get("starting_after"))
    if request.method == "HEAD":
        return answering.stream_head_response()
    slot = await stream_slots.admit(
        caller.user_id, row.thread_id, resumed=after > streaming.FROM_THE_START
    )
    return answering.watch(slot, row, responses, after=after)


async def _deleted(row: RunRow) -> dict[str, Any]:
    if not await unstored_runs.erase_run(row.run_id, owner_id=row.owner_id):
        raise client_queries.run_not_found()
    await submit.cancel_run(row.run_id)
    return {"id": objects.response_id(row.run_id), "object": "response", "deleted": True}


@api(GET=READ)
async def input_items(request: HttpRequest, caller: Caller, response_id: str) -> HttpResponseBase:
    """`GET /v1/responses/{response_id}/input_items`: return a page of the items of its input."""
    row = await _row(response_id, caller)
    inputs = await thread_history.messages_of_run(row.run_id, owner_id=caller.user_id)
    wire = row.wire or {}
    listed = [
        item for one in inputs for item in to_input_items(*one, wire=wire, sign=attachments.sign_url)
    ]
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
    """`POST /v1/responses/{response_id}/cancel`: cancel the response unless it has ended; return it."""
    row = await _row(response_id, caller)
    await client_queries.check_events_kept(row)
    if row.status not in LIVE:
        return json_response(await streaming.current_outcome(row, responses))
    await submit.cancel_run(row.run_id)
    return json_response(await streaming.final_outcome(row, responses, wait_s=_CANCELLED_S))


@api(POST=RUN)
async def absent(request: HttpRequest, _: Caller) -> HttpResponseBase:
    """`POST /v1/responses/input_tokens`, `/compact`: refuse them by name; they are no response's id."""
    raise openai_absent.absent(request.path) or NotFound()


async def _row(response_id: str, caller: Caller) -> RunRow:
    return await client_queries.fetch_run(runs.parse_run_id(response_id), user_id=caller.user_id)
