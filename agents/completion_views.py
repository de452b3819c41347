"""OpenAI's Chat Completions and its list of models, at the addresses where its SDKs look for them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from msgspec.structs import replace

from agents import streaming, views
from agents.dialects import chat_completions
from agents.dialects.base import Frame
from agents.dialects.completions.encoder import DONE, CompletionEncoder
from agents.guards import Lease
from agents.requests import RunRequest
from config import errors
from config.auth.access import READ, RUN
from config.auth.bearer import Caller
from config.errors import NotFound
from config.http import LateResponse, api, json_response
from conversations.reads import RunRow
from prompts import routing
from prompts.routing import Listed

_DONE: Final = b"data: [DONE]\n\n"


@api(POST=RUN)
async def create(request: HttpRequest, caller: Caller) -> HttpResponseBase:
    """`POST /v1/chat/completions`: the completion once it is there, or (`stream`) its chunks."""
    _, asked, body = await views.posted(request, chat_completions.NAME)
    lease, row, leaving = await views.begun(caller, _repeatable(request, asked))
    if chat_completions.streams(body, accept=""):
        frames = streaming.frames(row, chat_completions, after=streaming.FROM_THE_START)
        return views.sent(lease, frames, leaving, write=_written)
    head = replace(streaming.head(row), request_id=errors.current_request_id())
    encoder = chat_completions.encoder(head)
    return LateResponse(
        _completion(lease, row, encoder, leaving),
        lambda: _judged(encoder),
        headers=views.STREAM_HEADERS,
    )


def _repeatable(request: HttpRequest, asked: RunRequest) -> RunRequest:
    """A request with an `Idempotency-Key` is sent again when its connection breaks: its run goes on."""
    if not asked.client_run_id:
        return asked
    goes_on = replace(asked, on_disconnect="continue")
    return replace(asked, on_disconnect=views.on_disconnect(request, goes_on))


def _written(frame: Frame) -> bytes:
    """A chunk as OpenAI sends it: without a name and an id; after the last one its word for the end."""
    sent = streaming.sse(Frame("", frame.data))
    return sent + _DONE if frame.event == DONE else sent


async def _completion(
    lease: Lease, row: RunRow, encoder: CompletionEncoder, leaving: streaming.Leaving | None
) -> AsyncGenerator[bytes]:
    """Blanks, then the completion; a run that has not ended in its time is not waited for further."""
    wait_s = settings.RUN_DEADLINE_S
    told = streaming.outcome(row, encoder, wait_s=wait_s, on_leaving=leaving)
    async with aclosing(lease.around(told)) as pieces:
        async for piece in pieces:
            yield piece
    if lease.was_ended():
        yield encoder.answer()
    elif leaving is not None and not encoder.ended:
        await leaving()


def _judged(encoder: CompletionEncoder) -> tuple[int, dict[str, str]]:
    """The status of the answer; the SDK is told whether to ask again, since that is a new run."""
    failure = encoder.failure
    if failure is None:
        return 200, {}
    again = "true" if encoder.may_retry else "false"
    return failure.status, errors.headers(failure) | {"x-should-retry": again}


@api(GET=READ)
async def models(request: HttpRequest, caller: Caller) -> HttpResponseBase:
    """`GET /v1/models`: the models that the caller may ask for."""
    found = [_model(one) for one in await routing.listed(caller.user_id)]
    return json_response({"object": "list", "data": found})


@api(GET=READ)
async def model(request: HttpRequest, caller: Caller, model_id: str) -> HttpResponseBase:
    """`GET /v1/models/{model_id}`: one of them, by its key or its whole name."""
    found = await routing.listed(caller.user_id)
    for one in found:
        if model_id in (one.key, one.name):
            return json_response(_model(one))
    raise NotFound("There is no such model.", code="model_not_found", param="model")


def _model(listed: Listed) -> dict[str, Any]:
    return {
        "id": listed.key,
        "object": "model",
        "created": listed.updated_at,
        "owned_by": listed.provider,
    }
