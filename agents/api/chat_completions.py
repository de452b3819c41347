"""OpenAI's Chat Completions and its list of models, at the addresses that its SDKs use."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from typing import Final, Literal

from django.http import HttpRequest, HttpResponseBase
from msgspec.structs import replace

from agents.api import answering, streaming
from agents.api.streaming import Format
from agents.dialects.base import AnsweringDialect, Frame
from agents.dialects.openai_chat import dialect as chat_completions
from agents.dialects.openai_chat.encoder import DONE, CompletionEncoder
from agents.intake.start import StartedRun
from config import errors
from config.auth.bearer import Caller
from config.auth.requirements import READ, RUN
from config.errors import NotFound
from config.http.async_views import LateResponse, api, json_response
from config.http.documentation import groups
from config.http.documentation.json_types import Shown
from config.http.documentation.operations import (
    RUN_OPTIONS,
    STARTS_RUN,
    body,
    described,
    operation,
    response,
    sse,
)
from config.http.documentation.schema_builders import OPENAI_ERROR, any_of, ref
from prompts.endpoints import routing
from prompts.endpoints.routing import ServedModel

_operation: Final = partial(operation, group=groups.OPENAI, error=OPENAI_ERROR)
_QUESTION: Final = {"role": "user", "content": "Which exercises train the chest?"}
_COMPLETED: Final = {
    "description": "The completion, or its chunks with `stream: true`. A failed run is an error "
    "response, or a chunk with `error` if the stream has begun. `[DONE]` follows the last chunk of an "
    "answer.",
    "content": sse(ref("CompletionChunk"), last="[DONE]")
    | {"application/json": {"schema": any_of(ref("Completion"), OPENAI_ERROR)}},
}
_ANSWERS: Final = {
    "200": _COMPLETED,
    "409": response("The run was cancelled, or its key was used with another body.", OPENAI_ERROR),
    "410": response("The conversation was deleted.", OPENAI_ERROR),
    "500": response("The run failed; the code names the cause.", OPENAI_ERROR),
}
_DONE: Final = b"data: [DONE]\n\n"


@described(
    _operation(
        "POST /v1/chat/completions",
        "chat_completions_create",
        "Create a chat completion; /compatible-mode/v1/chat/completions is an alias",
        _ANSWERS,
        STARTS_RUN,
        parameters=RUN_OPTIONS,
        requestBody=body(ref("CompletionRequest"), question={"model": "demo", "messages": [_QUESTION]}),
    )
)
@api(POST=RUN)
async def create(request: HttpRequest, caller: Caller) -> HttpResponseBase:
    """`POST /v1/chat/completions`: return the completion when it is done, or its chunks (`stream`)."""
    return await answering.answer(request, caller, chat_completions.NAME, _STYLE)


def _written(frame: Frame) -> bytes:
    """Return a chunk as OpenAI sends it: without name and id; an end mark follows the last one."""
    sent = streaming.to_sse(Frame("", frame.data))
    return sent + _DONE if frame.event == DONE else sent


def _send_completion(started: StartedRun, _: AnsweringDialect) -> LateResponse:
    """Return the completion, with the status that it needs."""
    head = replace(streaming.run_head(started.row), request_id=errors.current_request_id())
    encoder = chat_completions.encoder(head)
    pieces = _completion(started, encoder)
    return LateResponse(pieces, lambda: _judged(encoder), headers=streaming.STREAM_HEADERS)


async def _completion(started: StartedRun, encoder: CompletionEncoder) -> AsyncGenerator[bytes]:
    """Yield blanks, then the completion; stop waiting for a run that has not ended in its time."""
    async with aclosing(answering.outcome_body(started, encoder)) as pieces:
        async for piece in pieces:
            yield piece
    if started.slot.was_ended():
        yield encoder.answer()
    elif started.on_leaving is not None and not encoder.ended:
        await started.on_leaving()


def _judged(encoder: CompletionEncoder) -> tuple[int, dict[str, str]]:
    """Return the answer's status, and a header that lets the SDK retry or not: a retry is a new run."""
    failure = encoder.failure
    if failure is None:
        return 200, {}
    again = "true" if encoder.may_retry else "false"
    return failure.status, errors.headers(failure) | {"x-should-retry": again}


_STYLE: Final = answering.AnswerStyle(form=Format(write=_written), send_outcome=_send_completion)


class OpenAIModel(Shown, frozen=True, kw_only=True):
    """A model that the caller may use."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str


class OpenAIModels(Shown, frozen=True, kw_only=True):
    """The models that the caller may use."""

    object: Literal["list"] = "list"
    data: list[OpenAIModel]


@described(
    _operation(
        "GET /v1/models",
        "openai_models",
        "List the models for completions and responses",
        {"200": response("The list of models.", ref("OpenAIModels"))},
    )
)
@api(GET=READ)
async def models(request: HttpRequest, caller: Caller) -> HttpResponseBase:
    """`GET /v1/models`: return the models that the caller may use."""
    found = [_model(one) for one in await routing.list_available(caller.user_id)]
    return json_response(OpenAIModels(data=found))


@described(
    _operation(
        "GET /v1/models/{model_id}",
        "openai_model",
        "Get a model",
        {"200": response("The model.", ref("OpenAIModel"))},
    )
)
@api(GET=READ)
async def model(request: HttpRequest, caller: Caller, model_id: str) -> HttpResponseBase:
    """`GET /v1/models/{model_id}`: return one of them, by its key or its whole name."""
    found = await routing.list_available(caller.user_id)
    for one in found:
        if model_id in (one.key, one.name):
            return json_response(_model(one))
    raise NotFound("There is no such model.", code="model_not_found", param="model")


def _model(listed: ServedModel) -> OpenAIModel:
    return OpenAIModel(id=listed.key, created=listed.updated_at, owned_by=listed.provider)
