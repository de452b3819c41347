"""Schemas of the frames of event streams, by protocol: what each `data:` line may hold.

The test suite compares every frame that is sent with them, and with the protocols' own packages.
"""

from __future__ import annotations

from typing import Any, Final

from agents.dialects.openai_responses.stream_events import EVENTS
from config.http.documentation.schema_builders import (
    COUNT,
    FLAG,
    TEXT,
    Schema,
    any_of,
    array,
    record,
    ref,
)


def _one_of(description: str, *schemas: Schema) -> Schema:
    return {"oneOf": list(schemas), "description": description}


_FRAME: Final = any_of(
    *(
        ref(name)
        for name in (
            "TextRunFrame",
            "AgUiEvent",
            "AgentApiObject",
            "ResponsesEvent",
            "CompletionChunk",
            "RunResult",
        )
    )
)
FRAMES: Final[dict[str, Any]] = {
    "ResponsesEvent": _one_of(
        "An event of OpenAI's Responses API.", *(ref(event.__name__) for event in EVENTS)
    ),
    "CompletionChunk": _one_of(
        "A chunk of OpenAI's Chat Completions.", ref("ChatCompletionChunk"), ref("CompletionFailed")
    ),
    "RunFrame": _FRAME | {"description": "A frame in the run's dialect, or in the requested one."},
    "RunFrames": record(
        events=array(record(event=TEXT, data=ref("RunFrame"), optional={"id": {"type": "integer"}})),
        last_event_id=COUNT | {"description": "The `after` of the next request, until `done`."},
        done=FLAG,
    ),
}
