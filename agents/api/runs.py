"""The endpoints of runs: start, watch, read, cancel (specs/text-run.md §1–§2, DESIGN §9)."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Final

from django.http import HttpRequest, HttpResponseBase

from agents.api import answering, streaming
from agents.dialects.ag_ui import dialect as ag_ui
from agents.dialects.base import prefers_json
from agents.dialects.recognition import DIALECTS, dialect_named
from agents.intake import submit
from config.auth.bearer import Caller
from config.auth.requirements import READ, RUN
from config.errors import InvalidRequest, NotFound
from config.http.async_views import api, json_response
from config.http.documentation import groups, headers
from config.http.documentation.json_types import Hex, Shown, one_of
from config.http.documentation.operations import (
    RUN_OPTIONS,
    STARTS_RUN,
    Route,
    body,
    described,
    operation,
    query,
    response,
    streamed,
)
from config.http.documentation.schema_builders import any_of, ref
from conversations.identifiers import uuid_of
from conversations.models import RunStatus
from conversations.runs import client_queries, recent_starts
from conversations.runs.client_queries import RunRow

_QUESTION: Final = "Which exercises train the chest?"
_TEXT_RUN: Final = {"model": "demo", "text": _QUESTION, "enable_web_search": False}
_INPUT: Final = {
    "runId": "run-1",
    "messages": [{"id": "message-1", "role": "user", "content": _QUESTION}],
    "tools": [],
    "context": [],
    "state": {},
    "forwardedProps": {"model": "demo"},
}
_MESSAGES: Final = [{"role": "user", "content": [{"type": "text", "text": _QUESTION}]}]
_AGENT_REQUEST: Final = {"model": "demo", "session_id": "chest-day", "input": _MESSAGES}
_operation: Final = partial(operation, group=groups.RUNS)


def _start(address: str, operation_id: str, run_agent_input: str, thread_id: str) -> Route:
    accepted = ("TextRunAccepted", "TaskAccepted", "AgUiAccepted", "AgentTask")
    return _operation(
        address,
        operation_id,
        "Start a run from a text run, a RunAgentInput or a request of the Agent API",
        streamed(
            "The run's stream if the client accepts one, or the whole response.",
            ref("RunFrame"),
            any_of(ref("AgentResponse"), ref("Response")),
        )
        | {"202": response("The run is accepted and stored.", any_of(*map(ref, accepted)))},
        STARTS_RUN,
        parameters=[
            query(
                "dialect", "The dialect of the body. Default: detected from the body.", enum=[*DIALECTS]
            ),
            *RUN_OPTIONS,
        ],
        requestBody=body(
            any_of(ref("TextRun"), ref(run_agent_input), ref("AgentRequest")),
            text_run=_TEXT_RUN,
            run_agent_input={"threadId": thread_id} | _INPUT,
            agent_request=_AGENT_REQUEST,
        ),
    )


def _watch(address: str, operation_id: str) -> Route:
    return operation(
        address,
        operation_id,
        "Follow a run by server-sent events, or by long polling with Accept: application/json",
        streamed(
            "Frames until `completed` or `error`; Last-Event-ID or `after` resume.",
            ref("RunFrame"),
            ref("RunFrames"),
        ),
        (410,),
        group=groups.STREAMS,
        parameters=[
            *headers.sends("Last-Event-ID"),
            query("after", "The same as the header Last-Event-ID.", type="integer"),
            query("wait", "For long polling: seconds to wait for the first new event.", type="number"),
            query(
                "conversation_id",
                "The run's thread. The id of another thread is an error; other values are ignored.",
            ),
            query("dialect", "The dialect of the frames. Default: the run's own.", enum=[*DIALECTS]),
        ],
    )


_LONGEST_WAIT_S: Final = 55.0


@described(
    _start(
        "POST /api/v1/agent/runs",
        "agent_runs_create",
        "RunAgentInput",
        "0b0dc2a3-6c40-4c5f-9f3c-6f3d6f0a1c57",
    )
)
@api(POST=RUN)
async def runs(request: HttpRequest, caller: Caller) -> HttpResponseBase:
    """`POST /api/v1/agent/runs`: accept a run in the dialect of its body.

    Answer 202, with the run's own stream if the client accepts one, or with its outcome if the dialect
    answers so.
    """
    return await answering.answer(request, caller, request.GET.get("dialect"))


@described(_start("POST /api/v1/agent/run", "agent_run_create_alias", "NamedRunAgentInput", "chest-day"))
@api(POST=RUN)
async def run_of_named_thread(request: HttpRequest, caller: Caller) -> HttpResponseBase:
    """`POST /api/v1/agent/run`, seed 001's spelling: accept a run, on a thread of any name."""
    return await answering.answer(request, caller, request.GET.get("dialect"), named_threads=True)


@described(
    operation(
        "POST /api/v1/agent/ag-ui",
        "agent_ag_ui",
        "Start a run from the whole history of an AG-UI client and stream its events",
        streamed(
            "The run's AG-UI events. The same runId attaches to a run that exists.", ref("AgUiEvent")
        )
        | {"202": response("The run is accepted (Accept: application/json).", ref("AgUiAccepted"))},
        STARTS_RUN,
        group=groups.AG_UI,
        parameters=RUN_OPTIONS,
        requestBody=body(ref("AgUiInput"), question={"threadId": "chest-day"} | _INPUT),
    )
)
@api(POST=RUN)
async def ag_ui_runs(request: HttpRequest, caller: Caller) -> HttpResponseBase:
    """`POST /api/v1/agent/ag-ui`: accept a run of a client that speaks AG-UI and sets no headers."""
    return await answering.answer(request, caller, ag_ui.NAME)


@described(
    _operation(
        "GET /api/v1/agent/runs/{run_id}",
        "agent_run_retrieve",
        "Get the status, timings, usage and error of a run",
        {"200": response("The run.", ref("RunDetail"))},
    )
)
@api(GET=READ)
async def run(request: HttpRequest, caller: Caller, run_id: str) -> HttpResponseBase:
    """`GET /api/v1/agent/runs/{run_id}`: return its status, timings, usage and error."""
    return json_response(
        await client_queries.fetch_run_detail(parse_run_id(run_id), user_id=caller.user_id)
    )


class PresentStatus(Shown, frozen=True):
    run_id: Hex
    status: Annotated[str, one_of(*RunStatus.values)]


@described(
    _operation(
        "POST /api/v1/agent/runs/{run_id}/cancel",
        "agent_run_cancel",
        "Cancel a run; a finished one does not change",
        {"202": response("The present status of the run.", ref("RunStatus"))},
    )
)
@api(POST=RUN)
async def cancel(request: HttpRequest, caller: Caller, run_id: str) -> HttpResponseBase:
    """`POST …/cancel`: request the run's end; return 202 with its status, also after its end."""
    row = await client_queries.fetch_run(parse_run_id(run_id), user_id=caller.user_id)
    await submit.cancel_run(row.run_id)
    after = await client_queries.fetch_started_run(row.run_id.hex, user_id=caller.user_id)
    location = {"Location": answering.run_address(row.run_id)}
    return json_response(PresentStatus(row.run_id.hex, after.status), 202, location)


@described(
    _watch("GET /api/v1/agent/runs/{run_id}/events", "agent_run_events"),
    _watch("GET /api/v1/messages/{run_id}/events", "message_events"),
)
@api(GET=READ)
async def events(request: HttpRequest, caller: Caller, run_id: str) -> HttpResponseBase:
    """`GET …/events`: return the run's frames as SSE, or by long-poll (`Accept: application/json`)."""
    row = await recent_starts.fetch_run(parse_run_id(run_id), user_id=caller.user_id)
    check_conversation(row, request.GET.get("conversation_id"))
    dialect = dialect_named(request.GET.get("dialect") or row.dialect)
    after = reader_position(request.headers.get("Last-Event-ID"), request.GET.get("after"))
    await client_queries.check_events_kept(row)
    wants_json = prefers_json(request.headers.get("Accept", ""))
    if request.method == "HEAD":
        return json_response(b"") if wants_json else answering.stream_head_response()
    if wants_json:
        wait_s = min(_seconds(request.GET.get("wait")), _LONGEST_WAIT_S)
        return json_response(
            await streaming.long_poll(row, dialect, after=after, wait_s=wait_s),
            headers={"Cache-Control": "no-store"},
        )
    slot = await answering.admit(caller.user_id, row, after=after)
    return answering.watch(slot, row, dialect, after=after)


def parse_run_id(text: str) -> str:
    """Return the id of a run; ids of responses and completions contain it."""
    return text.removeprefix("response_").removeprefix("resp_").removeprefix("chatcmpl-")


def check_conversation(row: RunRow, conversation_id: str | None) -> None:
    """Raise NotFound if the id is that of another thread; ignore a malformed one.

    A client that created the run with a malformed `conversation_id` watches with the same one (seed
    002).
    """
    if uuid_of(conversation_id) not in (None, row.thread_id):
        raise NotFound("There is no such run in this conversation.", code="run_not_found")


def reader_position(last_event_id: str | None, after: str | None) -> int:
    """Return the reader's position: `Last-Event-ID`, else `?after=`, else before the beginning.

    Raise InvalidRequest if it is no whole number: a silent new start would repeat everything.
    """
    text = (last_event_id or after or "").strip()
    if not text:
        return streaming.FROM_THE_START
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise InvalidRequest(
            "Last-Event-ID and after must be the id of an event of this run, a whole number.",
            code="invalid_last_event_id",
        )
    return int(text)


def _seconds(value: str | None) -> float:
    if not value:
        return 0.0
    try:
        seconds = float(value)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 3600:
        raise InvalidRequest("wait must be a number of seconds.", code="invalid_wait")
    return seconds
