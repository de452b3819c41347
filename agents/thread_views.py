"""A thread as an AG-UI client sees it, and what this agent can do (specs/ag-ui.md §7)."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponseBase
from msgspec.structs import replace

from agents import guards, returning
from agents.dialects.agui.capabilities import CAPABILITIES
from agents.views import headers_of_stream, sent
from config.auth.access import READ, RUN
from config.auth.bearer import Caller
from config.http import api, json_response
from conversations import feedback, naming, reads, said, threads
from conversations.reads import RunRow
from conversations.views import branch_of, change_thread


@api(GET=READ, PATCH=RUN, DELETE=RUN)
async def thread(request: HttpRequest, caller: Caller, thread_id: str) -> HttpResponseBase:
    """`/api/v1/agent/threads/{thread_id}`: the thread, its state, its newest messages.

    With `?reasoning=true` also what models thought, as far as the events of those runs are kept. Where
    it has branches the one last continued is shown, or that which ends with the run of `?branch=`.
    """
    found = await naming.thread_of(thread_id, caller=caller)
    if request.method in ("PATCH", "DELETE"):
        return await change_thread(request, caller, str(found))
    detail = await threads.thread_detail(caller.user_id, str(found))
    branch = await branch_of(request, caller, found)
    head = await said.thread_head(found, owner_id=caller.user_id, branch=branch)
    told = returning.thread_messages
    if request.GET.get("reasoning") == "true":
        told = returning.thread_with_thoughts
    messages = await told(found, caller.user_id, head.branch)
    given = await feedback.of_thread(found, user_id=caller.user_id)
    detail |= {"state": head.state, "messages": messages, "feedback": given}
    if head.branch is not None:
        detail |= {"branch": head.branch.hex, "branches": await threads.branches_of(found)}
    return json_response(detail)


@api(GET=READ)
async def connect(request: HttpRequest, caller: Caller, thread_id: str) -> HttpResponseBase:
    """`GET …/threads/{id}/connect`: the thread as AG-UI snapshots, then its live run if there is one.

    `?protocolVersion=` says which generation reads; by default the one that began the run. `?branch=`
    names the last run of the branch to show, where it is not the one last continued.
    """
    found = await naming.thread_of(thread_id, caller=caller)
    branch = await branch_of(request, caller, found)
    head = await said.thread_head(found, owner_id=caller.user_id, branch=branch)
    if request.method == "HEAD":
        return headers_of_stream()
    row = await reads.run_row(head.run_id.hex, user_id=caller.user_id) if head.run_id else None
    lists = returning.thread_at_rest(found, caller.user_id, thread_id, head)
    if row is not None and await reads.events_kept(row):
        lists = returning.run_again(_as_spoken_by(row, request.GET.get("protocolVersion")), [])
    return sent(await guards.admit(caller.user_id, found, resumed=True), lists)


def _as_spoken_by(row: RunRow, version: str | None) -> RunRow:
    """The run for a reader of the generation that this version names; without one as it was begun."""
    if version is None:
        return row
    modern = version if version[:1].isdigit() and not version.startswith("0") else None
    return replace(row, wire=(row.wire or {}) | {"protocolVersion": modern})


@api(GET=READ)
async def capabilities(request: HttpRequest, caller: Caller) -> HttpResponseBase:
    """`GET /api/v1/agent/capabilities`: what this agent can do, in AG-UI's words."""
    return json_response(CAPABILITIES)
