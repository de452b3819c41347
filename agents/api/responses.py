"""OpenAI's Responses API, at the addresses that its SDKs use under a base URL of ours."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Final, Literal

from django.http import HttpRequest, HttpResponseBase
from msgspec import Meta

from agents.api import answering, runs, streaming
from agents.context import thread_history
from agents.dialects.openai_responses import dialect as responses
from agents.dialects.openai_responses import objects
from agents.dialects.openai_responses.input_items import to_input_items
from agents.dialects.openai_responses.items import AnyInputItem
from agents.intake import stream_slots, submit
from config.auth.bearer import Caller
from config.auth.requirements import READ, RUN
from config.errors import NotFound
from config.http import openai_absent
from config.http.async_views import api, json_response
from config.http.documentation import groups, headers, operations
from config.http.documentation.json_types import Shown
from config.http.documentation.operations import (
    RUN_OPTIONS,
    STARTS_RUN,
    Route,
    body,
    described,
    operation,
    query,
    streamed,
)
from config.http.documentation.schema_builders import OPENAI_ERROR, ref
from conversations import attachments
from conversations.models import LIVE
from conversations.runs import client_queries
from conversations.runs.client_queries import RunRow
from conversations.threads.cursors import read_limit
from conversations.upkeep import unstored_runs

_operation: Final = partial(operation, group=groups.OPENAI, error=OPENAI_ERROR)
_streamed: Final = partial(streamed, frame=ref("ResponsesEvent"), whole=ref("Response"))
_STYLE: Final = answering.AnswerStyle(accepted_status=200)
_ITEMS: Final = 20
_CANCELLED_S: Final = 5.0  # by then a run that is cancelled has ended (promise P9)


@described(
    _operation(
        "POST /v1/responses",
        "responses_create",
        "Create a response; /compatible-mode/v1/responses is an alias",
        _streamed("The response, or its events with `stream: true`."),
        STARTS_RUN,
        parameters=RUN_OPTIONS,
        requestBody=body(
            ref("ResponsesRequest"),
            question={"model": "demo", "input": "Which exercises train the chest?"},
        ),
    )
)
@api(POST=RUN)
async def create(request: HttpRequest, caller: Caller) -> HttpResponseBase:
    """`POST /v1/responses`: return the finished response, its stream, or its id (`background`)."""
    return await answering.answer(request, caller, responses.NAME, _STYLE)


@described(
    _operation(
        "GET /v1/responses/{response_id}",
        "responses_retrieve",
        "Get a response in its present state, or its events",
        _streamed("The response, or its events with `stream=true`."),
        (410,),
        parameters=[
            query("stream", "`true`: stream the events."),
            query("starting_after", "The same as the header Last-Event-ID.", type="integer"),
            *headers.sends("Last-Event-ID"),
        ],
    ),
    _operation(
        "DELETE /v1/responses/{response_id}",
        "responses_delete",
        "Delete a response and cancel it if it is live; only its metrics are kept",
        {"200": operations.response("The response is deleted.", ref("ResponseDeleted"))},
    ),
)
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


class ResponseDeleted(Shown, frozen=True):
    """A response that is deleted."""

    id: str
    object: Literal["response"] = "response"
    deleted: Annotated[bool, Meta(extra_json_schema={"const": True})] = True


async def _deleted(row: RunRow) -> ResponseDeleted:
    if not await unstored_runs.erase_run(row.run_id, owner_id=row.owner_id):
        raise client_queries.run_not_found()
    await submit.cancel_run(row.run_id)
    return ResponseDeleted(objects.response_id(row.run_id))


class ResponseItems(Shown, frozen=True, kw_only=True):
    """A page of the items of a response's input."""

    object: Literal["list"] = "list"
    data: list[AnyInputItem]
    first_id: str | None
    last_id: str | None
    has_more: bool


@described(
    _operation(
        "GET /v1/responses/{response_id}/input_items",
        "responses_input_items",
        "List the input items of a response",
        {"200": operations.response("A page of input items.", ref("ResponseItems"))},
        parameters=[
            query("limit", "The page size, 1 to 100. Default: 20.", type="integer"),
            query("order", "`asc` or `desc` (default)."),
            query("after", "The id of the last item received."),
        ],
    )
)
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
    place = next((at + 1 for at, item in enumerate(listed) if item.id == request.GET.get("after")), 0)
    limit = read_limit(request.GET.get("limit"), default=_ITEMS)
    page = listed[place : place + limit]
    first, last = (page[0].id, page[-1].id) if page else (None, None)
    has_more = place + limit < len(listed)
    return json_response(ResponseItems(data=page, first_id=first, last_id=last, has_more=has_more))


@described(
    _operation(
        "POST /v1/responses/{response_id}/cancel",
        "responses_cancel",
        "Cancel a response; a finished one does not change",
        {"200": operations.response("The response in its present state.", ref("Response"))},
        (410,),
    )
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


def _unsupported(name: str, what: str) -> Route:
    return _operation(
        f"POST /v1/responses/{name}", f"responses_{name}", f"Not supported: {what}", {}, (404,)
    )


@described(
    _unsupported("input_tokens", "counting tokens before a run"),
    _unsupported("compact", "compacting a response"),
)
@api(POST=RUN)
async def absent(request: HttpRequest, _: Caller) -> HttpResponseBase:
    """`POST /v1/responses/input_tokens`, `/compact`: refuse them by name; they are no response's id."""
    raise openai_absent.absent(request.path) or NotFound()


async def _row(response_id: str, caller: Caller) -> RunRow:
    return await client_queries.fetch_run(runs.parse_run_id(response_id), user_id=caller.user_id)
