"""The OpenAPI operations of OpenAI's Chat Completions and its list of models."""

from __future__ import annotations

from typing import Any, Final

from config.openapi.parts import (
    CITATION,
    COUNT,
    OPENAI_ERROR,
    STARTS_RUN,
    TEXT,
    Operation,
    Schema,
    array,
    body,
    nullable,
    operation,
    path_param,
    record,
    ref,
    response,
    sse,
)

_CALL: Final = record(
    {
        "id": TEXT,
        "type": {"const": "function"},
        "function": record({"name": TEXT, "arguments": TEXT | {"description": "A JSON text."}}),
    }
)
_MESSAGE: Final = record(
    {
        "role": {"const": "assistant"},
        "content": nullable(TEXT),
        "refusal": nullable(TEXT),
        "annotations": array(
            record({"type": {"const": "url_citation"}, "url_citation": record(CITATION)})
        ),
    },
    {
        "reasoning_content": TEXT | {"description": "The model's reasoning, if it is shown."},
        "tool_calls": array(_CALL),
    },
)
_CHOICE: Final = record(
    {
        "index": {"const": 0},
        "message": _MESSAGE,
        "logprobs": {"type": "null"},
        "finish_reason": {"enum": ["stop", "length", "content_filter", "tool_calls"]},
    }
)


def _counts(*names: str) -> Schema:
    return record(dict.fromkeys(names, COUNT))


_USAGE: Final = record(
    dict.fromkeys(("prompt_tokens", "completion_tokens", "total_tokens"), COUNT)
    | {
        "prompt_tokens_details": _counts("cached_tokens", "cache_write_tokens", "audio_tokens"),
        "completion_tokens_details": _counts(
            "reasoning_tokens",
            "audio_tokens",
            "accepted_prediction_tokens",
            "rejected_prediction_tokens",
        ),
    }
)
COMPLETION_SCHEMAS: Final[dict[str, Schema]] = {
    "Completion": record(
        {
            "id": {"type": "string", "pattern": "^chatcmpl-[0-9a-f]{32}$"},
            "object": {"const": "chat.completion"},
            "created": {"type": "integer"},
            "model": TEXT,
            "choices": {"type": "array", "minItems": 1, "maxItems": 1, "items": _CHOICE},
            "usage": _USAGE,
            "service_tier": {"const": "default"},
            "system_fingerprint": {"type": "null"},
        }
    ),
    "OpenAIModel": record(
        {
            "id": TEXT,
            "object": {"const": "model"},
            "created": {"type": "integer"},
            "owned_by": TEXT,
        }
    ),
}
_MODELS: Final = record({"object": {"const": "list"}, "data": array(ref("OpenAIModel"))})
_FAILED: Final = {
    "409": response("The run was cancelled, or its key was used with another body.", OPENAI_ERROR),
    "410": response("The conversation was deleted.", OPENAI_ERROR),
    "500": response("The run failed; the code names the cause.", OPENAI_ERROR),
}


def _create() -> Operation:
    whole = {"application/json": {"schema": {"anyOf": [ref("Completion"), OPENAI_ERROR]}}}
    return operation(
        "chat_completions_create",
        "Create a chat completion; /compatible-mode/v1/chat/completions is an alias",
        {
            "200": {
                "description": "The completion, or its chunks with `stream: true`. A failed run is an "
                "error response, or a chunk with `error` if the stream has begun.",
                "content": sse(ref("CompletionChunk")) | whole,
            },
        }
        | _FAILED,
        STARTS_RUN,
        error=OPENAI_ERROR,
        requestBody=body(ref("CompletionRequest")),
    )


def completion_operations() -> dict[str, dict[str, Operation]]:
    """Return the operations by path and method."""
    models = operation(
        "openai_models",
        "List the models for completions and responses",
        {"200": response("The list of models.", _MODELS)},
        error=OPENAI_ERROR,
    )
    model: dict[str, Any] = operation(
        "openai_model",
        "Get a model",
        {"200": response("The model.", ref("OpenAIModel"))},
        (404,),
        error=OPENAI_ERROR,
        parameters=[path_param("model_id", "The key of a model, or its name (`global:` and the key).")],
    )
    return {
        "/v1/chat/completions": {"post": _create()},
        "/v1/models": {"get": models},
        "/v1/models/{model_id}": {"get": model},
    }
