"""How the OpenAPI document describes OpenAI's Chat Completions and its list of models."""

from __future__ import annotations

from typing import Any, Final

from config.openapi_parts import OPENAI_ERROR, Operation, answer, operation

_REQUEST: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["messages"],
    "properties": {
        "messages": {
            "type": "array",
            "minItems": 1,
            "maxItems": 1_000,
            "items": {
                "type": "object",
                "required": ["role"],
                "properties": {
                    "role": {"enum": ["system", "developer", "user", "assistant", "tool"]},
                    "content": {"description": "A text, parts, or null beside tool calls."},
                },
            },
        },
        "model": {"type": ["string", "null"]},
        "stream": {"type": ["boolean", "null"]},
        "tools": {"type": ["array", "null"], "items": {"type": "object"}, "maxItems": 128},
        "response_format": {"type": ["object", "null"]},
    },
}
_COMPLETION: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["id", "object", "created", "model", "choices", "usage"],
    "properties": {
        "id": {"type": "string", "pattern": "^chatcmpl-[0-9a-f]{32}$"},
        "object": {"const": "chat.completion"},
        "created": {"type": "integer"},
        "model": {"type": "string"},
        "choices": {"type": "array", "minItems": 1, "maxItems": 1, "items": {"type": "object"}},
        "usage": {"type": "object"},
    },
}
_MODEL: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["id", "object", "created", "owned_by"],
    "properties": {
        "id": {"type": "string"},
        "object": {"const": "model"},
        "created": {"type": "integer"},
        "owned_by": {"type": "string"},
    },
}
_MODELS: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["object", "data"],
    "properties": {"object": {"const": "list"}, "data": {"type": "array", "items": _MODEL}},
}
_MODEL_ID: Final = {
    "name": "model_id",
    "in": "path",
    "required": True,
    "schema": {"type": "string"},
    "description": "A model's key, or its name (`global:` and the key).",
}


def _create() -> Operation:
    return operation(
        "chat_completions_create",
        "Create a chat completion; the same under /compatible-mode/v1/chat/completions",
        {
            "200": {
                "description": "The completion, or with `stream: true` its chunks. A run that fails is "
                "an error with a status of its own; after the stream has begun, a chunk with `error`.",
                "content": {
                    "text/event-stream": {},
                    "application/json": {"schema": {"anyOf": [_COMPLETION, OPENAI_ERROR]}},
                },
            },
            "503": answer("The run took too long, or the provider is away.", OPENAI_ERROR),
        },
        (401, 404, 405, 409, 413, 422, 429),
        error=OPENAI_ERROR,
        requestBody={"required": True, "content": {"application/json": {"schema": _REQUEST}}},
    )


def completion_operations() -> dict[str, dict[str, Operation]]:
    """The operations by path and method."""
    models = operation(
        "openai_models",
        "List the models that a completion or a response may ask for",
        {"200": answer("The models.", _MODELS)},
        (401, 405),
        error=OPENAI_ERROR,
    )
    model = operation(
        "openai_model",
        "One of the models",
        {"200": answer("The model.", _MODEL)},
        (401, 404, 405),
        error=OPENAI_ERROR,
        parameters=[_MODEL_ID],
    )
    return {
        "/v1/chat/completions": {"post": _create()},
        "/v1/models": {"get": models},
        "/v1/models/{model_id}": {"get": model},
    }
