"""The actions of clients on runs: start and cancel, with one statement each, then a wake-up."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID, uuid4

import msgspec
from django.conf import settings
from psycopg import AsyncConnection
from psycopg.errors import UniqueViolation

from agents import offers, requests, wakeup
from agents.intake import approvals, new_messages, request_limits
from agents.intake.redacted_request import redact_request
from agents.json_schemas import answer_format
from agents.offers import Assignment
from agents.providers.base import first_unsupported
from agents.requests import RunRequest, ToolUse
from agents.spending import budget_checks
from agents.tools import offered_tools
from agents.tools.web_search import NAME as WEB_SEARCH
from config import database
from config.coordination import notifications
from config.errors import Conflict, Gone, InvalidRequest, NotFound
from config.telemetry import tracing
from conversations.identifiers import uuid7
from conversations.runs import acceptance, recent_starts, settling
from conversations.runs.acceptance import InsertedRun
from conversations.runs.client_queries import RunRow
from conversations.runs.load_shedding import load
from conversations.runs.settling import Due
from conversations.threads import copies
from conversations.upkeep.unstored_runs import make_title
from prompts import app_settings
from prompts.allowances import budgets, quotas
from prompts.endpoints.routing import ModelNotAllowed, ServedModel, check_model, get_default_model


@dataclass(frozen=True)
class AcceptedRun:
    """A run that is durably accepted (promise P1); `created` is False for a repeated request."""

    run_id: UUID
    thread_id: UUID
    created_at_ms: int
    created: bool = True


async def start_run(
    request: RunRequest, *, owner_id: UUID, thread_id: UUID | None, copied_from: UUID | None = None
) -> AcceptedRun:
    """Accept a run: thread, messages, run and `run.queued` in one transaction, then wake a worker.

    `thread_id` is the thread that the request means, None a new one; `copied_from` the thread whose
    messages the request repeats in a new one. With a `client_run_id` the same request returns the run
    that it started before (promise P5). Raise InvalidRequest for a model that is not served, a file that
    is not the caller's or an answer's form that cannot be used, NotFound for another user's thread,
    Conflict for a `client_run_id` that was used with another request or for a busy thread (`on_busy`
    reject), Gone for a repeated request whose run was not stored and is forgotten, TooManyRequests or
    Unavailable when too much is waiting, and TooManyRequests `model_daily_quota_exceeded` when the
    account's runs of the day are used up, or `budget_exceeded` when its money, or everybody's, is.
    """
    request = redact_request(request)
    digest = _digest(request)
    starts_thread = thread_id is None
    thread_id = thread_id or uuid4()
    if request.client_run_id and (repeated := await _repeated(request, owner_id, thread_id, digest)):
        return repeated
    prepared = await prepare_run(request, owner_id=owner_id, thread_id=thread_id)
    assignment: Assignment | None = None
    try:
        with recent_starts.expecting_reader(prepared.run_id):
            if starts_thread and not (copied_from or prepared.needs_transaction):
                assignment = await offers.find_assignment(thread_id)
                row = prepared.arguments | (assignment.columns if assignment else {})
                written, in_the_way = await acceptance.insert_in_new_thread(row), list[UUID]()
            else:
                async with database.connection() as connection:
                    written, in_the_way = await _write(connection, prepared, copied_from)
    except UniqueViolation:  # a concurrent POST of the same request has just started it
        repeated = await _repeated(request, owner_id, thread_id, digest)
        if repeated is None:
            raise run_id_already_used() from None
        return repeated
    if assignment:
        assignment.deliver(prepared.arguments, written)
        wakeup.start_workers(prepared.run_id)
    else:
        wakeup.wake_workers(prepared.run_id)
    recent_starts.remember(prepared.head(written.created_at_ms), written)
    # Not while a connection is held: all requests could wait for one more.
    for live_id in in_the_way:
        await cancel_run(live_id)
    return AcceptedRun(prepared.run_id, prepared.thread_id, written.created_at_ms)


@dataclass(frozen=True)
class PreparedRun:
    """A run that may be started: every check that is possible before it is written has passed."""

    request: RunRequest
    owner_id: UUID
    thread_id: UUID
    run_id: UUID
    arguments: dict[str, Any]
    quota: str
    budgeted: bool

    @property
    def needs_transaction(self) -> bool:
        """Whether the run is written together with something else."""
        return bool(self.quota or self.budgeted or self.request.answers)

    def head(self, created_at_ms: int) -> RunRow:
        """Return the head of the run as it is stored."""
        request = self.request
        return RunRow(
            run_id=self.run_id,
            thread_id=self.thread_id,
            owner_id=self.owner_id,
            dialect=request.dialect,
            request_id=request.request_id,
            status="queued",
            model=request.model,
            result_mode=request.result_mode,
            client_run_id=request.client_run_id,
            created_at_ms=created_at_ms,
            wire=request.wire or None,
            stored=request.stored,
        )


async def prepare_run(
    request: RunRequest, *, owner_id: UUID, thread_id: UUID, counts: bool = True
) -> PreparedRun:
    """Check and complete a request; raise what `start_run` does.

    A request that only continues an interrupted run does not count towards the runs of the day, and its
    budget is checked only before its first model call.
    """
    digest = _digest(request)
    served = await _served_model(request, owner_id)
    _check_words(request, served)
    await offered_tools.check_requested(request.servers, request.needs, user_id=owner_id)
    if request.generation.json_schema is not None:
        await answer_format.check_usable(request.generation.json_schema)
    request = await _with_defaults(request, model=served.name)
    request = await new_messages.with_new_messages(request, owner_id=owner_id, thread_id=thread_id)
    arguments = _start_arguments(request, owner_id, thread_id, digest)
    quota = served.family if counts and await quotas.is_limited(served.family) else ""
    load.admit(owner_id)
    budgeted = counts and await budgets.any_exist()
    return PreparedRun(request, owner_id, thread_id, arguments["run_id"], arguments, quota, budgeted)


async def _served_model(request: RunRequest, owner_id: UUID) -> ServedModel:
    """Return the requested model, or the default one; OpenAI's clients know a missing one by its 404."""
    try:
        return await check_model(request.model or await get_default_model(), user_id=owner_id)
    except ModelNotAllowed as error:
        if request.dialect in _OPENAI:
            raise NotFound(error.detail, code="model_not_found", **error.facts) from error
        raise


_OPENAI: Final = ("responses", "chat-completions")
_WORDS: Final = {
    ("responses", "verbosity"): "text.verbosity",
    ("responses", "reasoning_summary"): "reasoning.summary",
}
"""The dialects' own names for fields of Generation, where they differ."""


def _check_words(request: RunRequest, served: ServedModel) -> None:
    """Refuse a parameter that no endpoint of the model accepts: it would have no effect."""
    missing = [first_unsupported(dialect, request.generation) for dialect in served.dialects]
    if missing and all(missing):
        name = str(missing[0])
        field = _WORDS.get((request.dialect, name), name)
        raise InvalidRequest(
            f"{field}: this model cannot be asked for that.", code="unsupported_parameter", param=field
        )


async def write_run(connection: AsyncConnection[Any], prepared: PreparedRun) -> InsertedRun:
    """Write the run; raise NotFound for another user's thread or a deleted one.

    The caller wakes a worker once it is committed.
    """
    written = await acceptance.insert_run(connection, prepared.arguments)
    if written is None:
        raise NotFound("There is no such conversation.", code="conversation_not_found")
    return written


async def _write(
    connection: AsyncConnection[Any], prepared: PreparedRun, copied_from: UUID | None
) -> tuple[InsertedRun, list[UUID]]:
    """Write the run; return it, and the live runs that it interrupts."""
    answers, owner_id, thread_id = prepared.request.answers, prepared.owner_id, prepared.thread_id
    if not (prepared.needs_transaction or copied_from):
        return await _accept(connection, prepared)
    async with connection.transaction():
        if answers:
            await approvals.store_answers(connection, answers, owner_id=owner_id, thread_id=thread_id)
        accepted = await _accept(connection, prepared)
        if copied_from:
            await copies.record_copy(connection, thread_id, source=copied_from)
        if prepared.quota:
            await quotas.consume(connection, owner_id, prepared.quota)
        if prepared.budgeted:
            await budget_checks.check(connection, owner_id)
    return accepted


async def _accept(
    connection: AsyncConnection[Any], prepared: PreparedRun
) -> tuple[InsertedRun, list[UUID]]:
    """Write the run; return it, and the live runs that it interrupts.

    A run that does not wait behind a live one is written under a lock on the thread's id, so one of two
    that reject starts.
    """
    on_busy = prepared.request.on_busy
    if on_busy == "enqueue":
        return await write_run(connection, prepared), []
    async with connection.transaction():
        live = await acceptance.lock_thread(connection, prepared.thread_id, prepared.owner_id)
        if live and on_busy == "reject":
            raise Conflict("The conversation is busy with another run.", code="thread_busy")
        return await write_run(connection, prepared), live


async def _with_defaults(request: RunRequest, *, model: str) -> RunRequest:
    """Return the request with the model's canonical name and the defaults that staff set."""
    mode: Any = request.result_mode
    if mode is None and request.dialect == "text":  # the only dialect with modes
        mode = await app_settings.aget("default_result_mode")
    web_search = await app_settings.aget("web_search_enabled") is True
    prefetch = allowed_prefetch(request, web_search=web_search)
    return msgspec.structs.replace(
        request, model=model, prefetch=prefetch, result_mode=mode, **_trace_of(request)
    )


def _trace_of(request: RunRequest) -> dict[str, str]:
    """Return the trace of the HTTP request; without one a continued run stays in its own trace."""
    carried = tracing.carry()
    if carried.traceparent or not tracing.is_on():
        return carried._asdict()
    return {"traceparent": request.traceparent, "tracestate": request.tracestate}


def allowed_prefetch(request: RunRequest, *, web_search: bool) -> tuple[ToolUse, ...]:
    """Return the tools to call before the model, as far as staff allow them.

    A dialect requests the web search unless its client declined, so staff can only switch it off.
    """
    return tuple(use for use in request.prefetch if web_search or use.name != WEB_SEARCH)


async def _repeated(
    request: RunRequest, owner_id: UUID, thread_id: UUID, digest: str
) -> AcceptedRun | None:
    """Return the run that the same request started before; raise Conflict for another request's."""
    async with database.connection() as connection:
        earlier = await acceptance.find_earlier_run(
            connection, owner_id=owner_id, thread_id=thread_id, client_run_id=request.client_run_id
        )
    if earlier is None:
        return None
    if earlier.digest != digest:
        raise run_id_already_used()
    if earlier.is_forgotten:
        raise Gone(
            "This request was made before; what its run said was not to be stored, and is gone.",
            code="run_not_stored",
        )
    return AcceptedRun(earlier.run_id, thread_id, earlier.created_at_ms, created=False)


def run_id_already_used() -> Conflict:
    """Return the error for a `client_run_id` that was used with another request."""
    return Conflict("runId already used", code="run_id_already_used")


def _start_arguments(
    request: RunRequest, owner_id: UUID, thread_id: UUID, digest: str
) -> dict[str, Any]:
    run_id, dumped = uuid7(), requests.dump(request).decode()
    request_limits.check_stored(dumped)
    # A run that is not stored adds nothing to the thread: only the request holds its messages.
    messages = request.messages if request.stored else ()
    metadata = new_messages.message_metadata(request, run_id) if request.stored else []
    first = next((message.content for message in messages if message.role == "user"), "")
    return {
        "thread_id": thread_id,
        "owner_id": owner_id,
        "title": make_title(first),
        "count": len(messages),
        "run_id": run_id,
        "continues": UUID(request.continues) if request.continues else None,
        "client_run_id": request.client_run_id,
        "digest": digest,
        "request_id": request.request_id,
        "dialect": request.dialect,
        "model": request.model,
        "request": dumped,
        "stored": request.stored,
        "queue_limit_s": settings.RUN_QUEUE_LIMIT_S,
        "deadline_s": min(request.deadline_s or settings.RUN_DEADLINE_S, settings.RUN_DEADLINE_S),
        "messages": [
            {
                "id": uuid7(),
                "owner_id": owner_id,
                "thread_id": thread_id,
                "run_id": run_id,
                "seq": place,
                "role": message.role,
                "content": message.content,
                "client_id": message.client_id,
                "metadata": msgspec.Raw(told.encode()),
            }
            for place, (message, told) in enumerate(zip(messages, metadata, strict=True), 1)
        ],
    }


def _digest(request: RunRequest) -> str:
    """Return the hash that identifies a repeated request; later settings of staff are no part of it."""
    return hashlib.sha256(requests.identity(request)).hexdigest()


async def cancel_run(run_id: UUID) -> None:
    """Request a run's end: a waiting one ends now, a running one within two seconds (promise P9).

    The caller has checked whose run it is. A run that has ended stays as it is.
    """
    found = await acceptance.request_cancel(run_id)
    if found is None:
        return
    status, fence = found
    if status == "queued":
        await settling.settle(Due(run_id, fence, "cancelled"))
    else:
        notifications.notify(wakeup.WORKERS, {"cancel": run_id.bytes})
