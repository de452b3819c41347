"""The schemas of OpenAI's Responses API, Chat Completions and list of models, and of their streams."""

from __future__ import annotations

from typing import Final, get_args

from agents.api.chat_completions import OpenAIModels
from agents.api.responses import ResponseDeleted, ResponseItems
from agents.dialects.openai_chat.objects import ChatCompletionChunk, Completion, CompletionFailed
from agents.dialects.openai_responses.items import InputItem, OutputItem
from agents.dialects.openai_responses.objects import Response
from agents.dialects.openai_responses.stream_events import EVENTS
from config.http.documentation.schema_builders import Schema, any_of, ref
from config.openapi.derived_schemas import derive_rendered

_OBJECTS: Final = (Response, ResponseItems, ResponseDeleted, Completion, OpenAIModels)
_FRAMES: Final = (*EVENTS, ChatCompletionChunk, CompletionFailed)
_ITEMS: Final = {"ResponseOutputItem": get_args(OutputItem), "ResponseItem": get_args(InputItem)}
SCHEMAS: Final[dict[str, Schema]] = derive_rendered(
    *_OBJECTS, *_FRAMES, *(item for union in _ITEMS.values() for item in union)
) | {name: any_of(*(ref(item.__name__) for item in union)) for name, union in _ITEMS.items()}
