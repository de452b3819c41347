"""History, search and threads over REST (specs/run-agent-input.md §4)."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, Final
from uuid import UUID

import msgspec
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from msgspec.structs import replace

from config.auth.bearer import Caller
from config.auth.requirements import READ
from config.errors import InvalidRequest
from config.http.async_views import api, json_body, json_response
from config.http.documentation import groups
from config.http.documentation.operations import BRANCH, PAGING, described, operation, query, response
from config.http.documentation.schema_builders import ref
from conversations.runs import client_queries
from conversations.threads import history, listing, names, search
from conversations.threads.listing import Changes

_operation: Final = partial(operation, group=groups.THREADS)


@described(
    _operation(
        "GET /api/v1/agent/history",
        "agent_history",
        "Get one day of a conversation, starting with the newest",
        {
            "200": response(
                "The newest day that has messages, before `before` if set.", ref("HistoryDay")
            )
        },
        (404,),
        parameters=[
            query("threadId", "A thread (its id, or the client's name for it). Default: the newest."),
            query("before", "YYYY-MM-DD: get the newest day before this one; or a `nextBefore`."),
            query("content", "`text` (default), or `blocks`: split users' messages into blocks."),
            BRANCH | {"description": f"{BRANCH['description']} Requires threadId."},
        ],
    )
)
@api(GET=READ)
async def history_day(request: HttpRequest, caller: Caller) -> HttpResponseBase:
    """Answer `GET /api/v1/agent/history`: one day of a thread, newest day first.

    Where the caller names a thread, the answer repeats that name, as the thread's runs do.
    """
    parameters = request.GET
    content = history.parse_content_form(parameters.get("content"))
    thread_id = await _read_thread(request, caller)
    day = await history.fetch_history_day(
        caller.user_id,
        thread_id=thread_id,
        before=parameters.get("before"),
        content=content,
        branch=await read_branch(request, caller, thread_id),
    )
    return json_response(replace(day, thread_id=parameters.get("threadId") or day.thread_id))


@described(
    _operation(
        "GET /api/v1/agent/history/search",
        "agent_history_search",
        "Search the messages of the last continued branches, newest first",
        {"200": response("Messages that contain every word.", ref("SearchResults"))},
        (404,),
        parameters=[
            query("q", "The words to find, 1 to 200 characters.") | {"required": True},
            query("threadId", "Search only this thread (its id, or the client's name for it)."),
            *PAGING,
        ],
    )
)
@api(GET=READ)
async def history_search(request: HttpRequest, caller: Caller) -> HttpResponseBase:
    """Answer `GET /api/v1/agent/history/search`: messages that contain every word, newest first."""
    parameters = request.GET
    found = await search.search(
        caller.user_id,
        parameters.get("q"),
        thread_id=await _read_thread(request, caller),
        limit=parameters.get("limit"),
        cursor=parameters.get("cursor"),
    )
    return json_response(found)


async def _read_thread(request: HttpRequest, caller: Caller) -> UUID | None:
    """Return the thread that `threadId` means, by its id or by the client's own name."""
    name_or_id = request.GET.get("threadId")
    return await names.thread_of(name_or_id, caller=caller) if name_or_id else None


async def read_branch(request: HttpRequest, caller: Caller, thread_id: UUID | None) -> UUID | None:
    """Return the run in `?branch=`, the last one of the branch to show. Raise NotFound if it is not in
    the thread, InvalidRequest without a thread: the newest thread is not chosen by its branches.
    """
    reference = request.GET.get("branch")
    if not reference:
        return None
    if thread_id is None:
        raise InvalidRequest("branch needs a threadId.", code="branch_needs_thread")
    row = await client_queries.fetch_run(reference, user_id=caller.user_id)
    if row.thread_id != thread_id:
        raise client_queries.run_not_found()
    return row.run_id


@described(
    _operation(
        "GET /api/v1/agent/threads",
        "agent_threads",
        "List the caller's conversations, last used first",
        {"200": response("A page of threads.", ref("Threads"))},
        parameters=[query("archived", "`false` (default), `true` or `all`."), *PAGING],
    )
)
@api(GET=READ)
async def thread_list(request: HttpRequest, caller: Caller) -> HttpResponseBase:
    """Answer `GET /api/v1/agent/threads`: the caller's threads, latest first."""
    parameters = request.GET
    page = await listing.fetch_thread_page(
        caller.user_id,
        archived=parameters.get("archived"),
        limit=parameters.get("limit"),
        cursor=parameters.get("cursor"),
    )
    return json_response(page)


async def change_thread(request: HttpRequest, caller: Caller, thread_id: str) -> HttpResponse:
    """Answer `/api/v1/agent/threads/{thread_id}`: rename and archive (PATCH), delete (DELETE)."""
    if request.method == "PATCH":
        changes = _read_changes(await json_body(request))
        return json_response(await listing.change_thread(caller.user_id, thread_id, changes))
    await asyncio.shield(listing.delete_thread(caller.user_id, thread_id))
    return HttpResponse(status=204)


def _read_changes(body: dict[str, Any]) -> Changes:
    try:
        return msgspec.convert(body, Changes)
    except msgspec.ValidationError:
        raise InvalidRequest(
            "Send title (a string), archived (true or false), or both.", code="invalid_request"
        ) from None
