"""A thread as an AG-UI client sees it, and the capabilities of this agent (specs/ag-ui.md §7)."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from functools import partial
from typing import Annotated, Any, Final
from uuid import UUID

from django.http import HttpRequest, HttpResponseBase
from msgspec import UNSET, UnsetType
from msgspec.structs import asdict, replace

from agents.api import answering
from agents.dialects.ag_ui import snapshots
from agents.dialects.ag_ui.capabilities import CAPABILITIES
from agents.dialects.ag_ui.message_types import AgUiMessage
from agents.dialects.ag_ui.messages import to_messages as ag_ui_messages
from agents.dialects.ag_ui.reasoning import outline, with_thoughts
from agents.dialects.base import Frame
from agents.intake import stream_slots
from config.auth.bearer import Caller
from config.auth.requirements import READ, RUN
from config.http.async_views import api, json_response
from config.http.documentation import groups
from config.http.documentation.json_types import component, noted
from config.http.documentation.operations import (
    BRANCH,
    body,
    described,
    operation,
    query,
    response,
    streamed,
)
from config.http.documentation.schema_builders import ref
from conversations import attachments
from conversations.api.threads import change_thread, read_branch
from conversations.events import RunEvent
from conversations.runs import client_queries
from conversations.runs.client_queries import RunRow
from conversations.threads import feedback, listing, names, newest_messages, reasoning_events
from conversations.threads.feedback import Feedback
from conversations.threads.listing import Branch, Thread
from conversations.threads.newest_messages import ThreadHead

_operation: Final = partial(operation, group=groups.THREADS)
_BRANCHES: Final = noted("The last run of each branch, newest first; only if there are several.")
_ag_ui_operation: Final = partial(operation, group=groups.AG_UI)


class ThreadDetail(Thread, frozen=True, rename="camel"):
    """A thread with its contents."""

    state: Annotated[Any, noted("The shared state of the thread: any JSON.")]
    messages: list[Annotated[Any, component("AgUiMessage")]]
    feedback: list[Feedback]
    branch: Annotated[str | UnsetType, noted("The last run of the shown branch.")] = UNSET
    branches: Annotated[list[Branch] | UnsetType, _BRANCHES] = UNSET


@described(
    _operation(
        "GET /api/v1/agent/threads/{thread_id}",
        "agent_thread_retrieve",
        "Get a conversation",
        {"200": response("The thread with state, messages of AG-UI and feedback.", ref("ThreadDetail"))},
        parameters=[
            query("reasoning", "`true`: include the models' reasoning, as long as it is kept."),
            BRANCH,
        ],
    ),
    _operation(
        "PATCH /api/v1/agent/threads/{thread_id}",
        "agent_thread_change",
        "Rename or archive a conversation",
        {"200": response("The thread.", ref("Thread"))},
        requestBody=body(
            ref("ThreadChanges"), rename={"title": "Chest day"}, archive={"archived": True}
        ),
    ),
    _operation(
        "DELETE /api/v1/agent/threads/{thread_id}",
        "agent_thread_delete",
        "Delete a conversation and end its live run",
        {"204": {"description": "The thread and all its data are deleted."}},
    ),
)
@api(GET=READ, PATCH=RUN, DELETE=RUN)
async def thread(request: HttpRequest, caller: Caller, thread_id: str) -> HttpResponseBase:
    """`/api/v1/agent/threads/{thread_id}`: return the thread, its state, its newest messages.

    `?reasoning=true` adds what models thought, as far as the events of those runs are kept. Of a thread
    with branches it returns the one last continued, or the one that ends with the run of `?branch=`.
    """
    found = await names.thread_of(thread_id, caller=caller)
    if request.method in ("PATCH", "DELETE"):
        return await change_thread(request, caller, str(found))
    shown = await listing.fetch_thread(caller.user_id, str(found))
    branch = await read_branch(request, caller, found)
    head = await newest_messages.fetch_thread_head(found, owner_id=caller.user_id, branch=branch)
    reasoned: dict[str, list[RunEvent]] = {}
    if request.GET.get("reasoning") == "true":
        reasoned = await reasoning_events.fetch_reasoning_events(
            found, owner_id=caller.user_id, branch=head.branch
        )
    thoughts = {run: outline(run, some) for run, some in reasoned.items()}
    messages = with_thoughts(await _messages(found, caller.user_id, head.branch), thoughts)
    opinions = await feedback.list_feedback_of_thread(found, user_id=caller.user_id)
    detail = ThreadDetail(**asdict(shown), state=head.state, messages=messages, feedback=opinions)
    if head.branch is not None:
        branches = await listing.list_branches(found)
        detail = replace(detail, branch=head.branch.hex, branches=branches)
    return json_response(detail)


@described(
    _ag_ui_operation(
        "GET /api/v1/agent/threads/{thread_id}/connect",
        "agent_thread_connect",
        "Read a thread as AG-UI snapshots, then follow its live run, if any",
        streamed("A stream of AG-UI events.", ref("AgUiEvent")),
        parameters=[
            query(
                "protocolVersion",
                "The client's AG-UI version: 1.0, or 0 for an older client. Default: the version of the "
                "run.",
            ),
            BRANCH,
        ],
    )
)
@api(GET=READ)
async def connect(request: HttpRequest, caller: Caller, thread_id: str) -> HttpResponseBase:
    """`GET …/threads/{id}/connect`: return the thread as AG-UI snapshots, then its live run if any.

    `?protocolVersion=` is the reader's generation; by default that of the run. `?branch=` names the last
    run of the branch to show, if that is not the one last continued.
    """
    found = await names.thread_of(thread_id, caller=caller)
    branch = await read_branch(request, caller, found)
    head = await newest_messages.fetch_thread_head(found, owner_id=caller.user_id, branch=branch)
    if request.method == "HEAD":
        return answering.stream_head_response()
    row = (
        await client_queries.fetch_run(head.run_id.hex, user_id=caller.user_id) if head.run_id else None
    )
    lists = _at_rest(found, caller.user_id, thread_id, head)
    if row is not None and await client_queries.has_events(row):
        lists = answering.missed_frames(_as_spoken_by(row, request.GET.get("protocolVersion")), {})
    return answering.send(await stream_slots.admit(caller.user_id, found, resumed=True), lists)


def _as_spoken_by(row: RunRow, version: str | None) -> RunRow:
    """Return the run for a reader of this version's generation; without a version as it was begun."""
    if version is None:
        return row
    modern = version if version[:1].isdigit() and not version.startswith("0") else None
    return replace(row, wire=(row.wire or {}) | {"protocolVersion": modern})


async def _at_rest(
    thread_id: UUID, owner_id: UUID, client_thread_id: str, head: ThreadHead
) -> AsyncGenerator[list[Frame]]:
    """Yield a thread whose newest run can no longer be replayed, or that never had one."""
    shown = await _messages(thread_id, owner_id, head.branch)
    yield snapshots.idle_thread_frames(client_thread_id, shown, head.state)


async def _messages(thread_id: UUID, owner_id: UUID, branch: UUID | None) -> list[AgUiMessage]:
    """Return the newest messages of the thread, or of its branch that ends with this run, for AG-UI.

    Files have fresh URLs.
    """
    rows = await newest_messages.fetch_messages(thread_id, owner_id=owner_id, branch=branch)
    return ag_ui_messages(rows, sign=attachments.sign_url)


@described(
    _ag_ui_operation(
        "GET /api/v1/agent/capabilities",
        "agent_capabilities",
        "Get the agent's capabilities as AgentCapabilities of AG-UI",
        {"200": response("The agent's capabilities.", ref("AgUiCapabilities"))},
    )
)
@api(GET=READ)
async def capabilities(request: HttpRequest, caller: Caller) -> HttpResponseBase:
    """`GET /api/v1/agent/capabilities`: return what this agent can do, in AG-UI's form."""
    return json_response(CAPABILITIES)
