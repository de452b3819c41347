"""Schemas of the frames of event streams, by protocol.

Frames of text runs and of runners are Parley's own, and their schemas are complete. For AG-UI and
OpenAI only the discriminating members are listed: their own documents describe the rest.
"""

from __future__ import annotations

from typing import Final

from config.openapi.builders import COUNT, FLAG, TEXT, Schema, any_of, array, record, ref


def _foreign(description: str, /, **required: Schema) -> Schema:
    """Return the schema of an object of a foreign protocol: these members and any others."""
    return {
        "type": "object",
        "required": list(required),
        "properties": required,
        "additionalProperties": True,
        "description": description,
    }


_CHOICE: Final = _foreign(
    "The next part of a choice.",
    index=COUNT,
    delta=_foreign("The new part of the message."),
    finish_reason={"type": ["string", "null"]},
)
FRAMES: Final[dict[str, Schema]] = {
    "AgUiEvent": _foreign(
        "An event of AG-UI: https://docs.ag-ui.com/concepts/events.",
        type={"type": "string", "pattern": "^[A-Z_]+$"},
    ),
    "ResponsesEvent": _foreign(
        "An event of OpenAI's Responses API.",
        type={"type": "string", "pattern": r"^(response\.[a-z_.]+|error)$"},
        sequence_number=COUNT,
    ),
    "CompletionChunk": any_of(
        _foreign(
            "A chunk of OpenAI's Chat Completions; `[DONE]` follows the last one.",
            id=TEXT,
            object={"const": "chat.completion.chunk"},
            created=COUNT,
            model=TEXT,
            choices=array(_CHOICE),
        ),
        _foreign(
            "The run failed after the stream had begun.",
            error=_foreign("The error.", message=TEXT, type=TEXT, code=TEXT),
        ),
    ),
    "AgentApiObject": _foreign(
        "An AgentResponse, one of its messages or contents, possibly incomplete.",
        object={"enum": ["response", "message", "content"]},
    ),
    "RunFrame": any_of(
        ref("TextRunFrame"),
        ref("AgUiEvent"),
        ref("AgentApiObject"),
        ref("ResponsesEvent"),
        ref("CompletionChunk"),
        ref("RunResult"),
    )
    | {"description": "A frame in the run's dialect, or in the requested one."},
    "RunFrames": record(
        events=array(record(event=TEXT, data=ref("RunFrame"), optional={"id": {"type": "integer"}})),
        last_event_id=COUNT | {"description": "The `after` of the next request, until `done`."},
        done=FLAG,
    ),
}
