"""The text run (seed 002; specs/text-run.md §1–§3): `{model, text}` in, named SSE events out.

`run_id == message_id` on this wire: both are the run's 32 hex digits. A delta longer than 256
characters is cut into several frames; only the last has the event's id, so a reader whose connection
broke between them gets the event again from its first piece.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from agents.dialects.artifact_links import TOOL_RESULT, file_facts
from agents.dialects.base import Frame, RunHead, wants_stream
from agents.dialects.field_errors import validate_body
from agents.dialects.generation import GenerationBody, Whole, parse_generation
from agents.dialects.wire import encode_json, optional_text
from agents.json_schemas.answer_format import invalid_form
from agents.requests import InputMessage, ResultMode, RunRequest, ToolUse
from config.errors import InvalidRequest
from conversations import events
from conversations.events import RunEvent
from conversations.identifiers import uuid_of
from conversations.usage import usd

NAME: Final = "text"
OPENING: Final = b":" + b" " * 2048 + b"\n\n"
EXERCISE_SEARCH: Final = "gymbro.exercise.search"
WEB_SEARCH: Final = "web_search.exa"
LONGEST_DELTA: Final = 256
_PIECE: Final = 128
_NAMELESS: Final = "unknown"
_SEPARATORS: Final = "\n 。？！.?!\t"


_TopK = Annotated[Whole, Field(ge=1, le=10)]


class TextRunBody(BaseModel):
    """The body of `POST /api/v1/agent/runs` in this dialect; a closed object."""

    model_config = ConfigDict(extra="forbid", strict=True, hide_input_in_errors=True)

    model: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    text: Annotated[str, StringConstraints(min_length=1)]
    conversation_id: Any = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    result_mode: Literal["xml_plaintext", "raw_passthrough", "auto"] | None = None
    enable_exercise_search: bool = True
    exercise_top_k: _TopK = 5
    enable_web_search: bool | None = None
    web_search_top_k: _TopK = 5
    generation: GenerationBody | None = None
    response_format: dict[str, Any] | None = None


def parse(body: dict[str, Any], *, request_id: str) -> RunRequest:
    """Return the request; raise InvalidRequest `model_required`, `text_required` or field errors."""
    if _blank(body.get("model")):
        raise InvalidRequest(
            "model is required: take a name from GET /api/v1/llm/models.", code="model_required"
        )
    if _blank(body.get("text")):
        raise InvalidRequest("text is required: it is what the user says.", code="text_required")
    parsed = validate_body(TextRunBody, _without_nulls(body), "text run")
    thread_id = uuid_of(optional_text(body, "conversation_id"))
    return RunRequest(
        dialect=NAME,
        model=parsed.model,
        messages=(InputMessage("user", parsed.text),),
        request_id=request_id,
        thread_id=str(thread_id) if thread_id else None,  # a malformed id makes a new conversation
        metadata=parsed.metadata,
        result_mode=_mode(parsed),
        prefetch=tuple(_tools(parsed)),
        server_tools=(),
        generation=parse_generation(parsed.generation, parsed.response_format),
    )


def _mode(parsed: TextRunBody) -> ResultMode | None:
    """Return the mode; an answer that must be JSON is delivered unchanged."""
    if parsed.response_format is None or parsed.response_format == {"type": "text"}:
        return parsed.result_mode
    if parsed.result_mode not in (None, "raw_passthrough"):
        raise invalid_form("response_format needs the result_mode raw_passthrough.")
    return "raw_passthrough"


def _tools(parsed: TextRunBody) -> Iterator[ToolUse]:
    """Yield the calls before the model's; staff may have switched the web search off for everybody."""
    if parsed.enable_exercise_search:
        yield ToolUse(EXERCISE_SEARCH, {"query": parsed.text, "top_k": parsed.exercise_top_k})
    if parsed.enable_web_search is not False:
        yield ToolUse(WEB_SEARCH, {"query": parsed.text, "top_k": parsed.web_search_top_k})


def _blank(value: object) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _without_nulls(body: dict[str, Any]) -> dict[str, Any]:
    """Return the body without optional members that are null, as in the seed's own example."""
    optional = TextRunBody.model_fields
    return {key: value for key, value in body.items() if value is not None or key not in optional}


def streams(body: dict[str, Any], *, accept: str) -> bool:
    """Return whether the client asks for it; this protocol's clients read the stream by another GET."""
    return wants_stream(accept)


def accepted(head: RunHead) -> dict[str, Any]:
    """Return the body of the 202 (agent_run_create_response.schema.json)."""
    run_id = head.run_id.hex
    return {"run_id": run_id, "message_id": run_id, "conversation_id": str(head.thread_id)}


class TextEncoder:
    """An encoder of one run's events into the frames of `agent_run_sse_frame.schema.json`."""

    def __init__(self, head: RunHead) -> None:
        self._head = head
        self._ids = {"message_id": head.run_id.hex, "request_id": head.request_id}
        self._delta_head = encode_json(self._ids)[:-1] + b',"seq":'
        self._delta_seq = 0
        self._raw_seq = 0
        self._reply_length = 0
        self._decided: ResultMode | None = None
        self._routed: dict[str, Any] = {"provider": None, "resolved_model": None, "endpoint_id": None}
        self._upstream_request_id: str | None = None
        self._files: list[events.ArtifactCreated] = []

    def feed(self, event: RunEvent) -> Sequence[Frame]:
        """Return the frames of the next event."""
        fact = event.fact
        if type(fact) is events.MessageDelta:  # most facts are, and a pattern costs three times as much
            return self._deltas(event.seq, fact.text)
        match fact:
            case events.MessageCompleted(body, replaces=True):
                return self._deltas(event.seq, f"\n\n{body.content}")  # the streamed text stays
            case events.RunQueued():
                return self._frame(event, "status", {"state": "queued"})
            case events.RunStarted():
                return self._frame(event, "status", {"state": "working"})
            case events.ModelRouted() as routed:
                return self._frame(event, "status", {"state": "routed"} | self._route(routed))
            case events.ToolCallStarted(_, tool_name, parameters):
                return self._frame(
                    event, "tool_start", {"tool_name": tool_name or _NAMELESS, "args": parameters}
                )
            case events.ToolCallCompleted() as call:
                return self._frame(event, "tool_result", _tool_result(call))
            case events.ArtifactCreated() as made if made.artifact_type != TOOL_RESULT:
                self._files.append(made)  # a tool's result names its own
            case events.UpstreamRaw() as piece if piece.raw:
                return self._frame(event, "upstream_raw", self._upstream_raw(piece))
            case events.RunCompleted() as completed:
                return self._frame(event, "completed", self._completed(completed))
            case events.RunFailed() as failed:
                return self._frame(event, "error", self._failed(failed))
        return ()

    def heartbeat(self, at_ms: int) -> Frame:
        """Return the heartbeat event that fills silence."""
        return Frame("heartbeat", encode_json(self._ids | {"ts": at_ms}))

    def _frame(self, event: RunEvent, name: str, more: dict[str, Any]) -> tuple[Frame]:
        return (Frame(name, encode_json(self._ids | more), event.seq),)

    def _deltas(self, seq: int, text: str) -> list[Frame]:
        self._reply_length += len(text)
        self._decided = self._decided or ("xml_plaintext" if text else None)
        if 0 < len(text) <= LONGEST_DELTA:
            return [self._delta(text, seq)]
        pieces = list(split_text(text))
        return [
            self._delta(piece, seq if number == len(pieces) else None)
            for number, piece in enumerate(pieces, 1)
        ]

    def _delta(self, text: str, seq: int | None) -> Frame:
        self._delta_seq += 1
        data = b'%b%d,"delta":%b}' % (self._delta_head, self._delta_seq, encode_json(text))
        return Frame("content_delta", data, seq)

    def _route(self, routed: events.ModelRouted) -> dict[str, Any]:
        self._routed = {
            "provider": routed.provider,
            "resolved_model": routed.model,
            "endpoint_id": routed.endpoint_id,
        }
        self._upstream_request_id = routed.upstream_request_id
        return self._routed | {"upstream_request_id": routed.upstream_request_id}

    def _upstream_raw(self, piece: events.UpstreamRaw) -> dict[str, Any]:
        self._decided = self._decided or "raw_passthrough"
        self._raw_seq += 1
        return {
            "seq": self._raw_seq,
            "raw": piece.raw,
            "dialect": piece.dialect,
            "upstream_event": piece.upstream_event,
            "raw_truncated": piece.truncated,
        }

    def _modes(self) -> dict[str, Any]:
        """Return the modes; in `auto` the first text or raw piece decides; null if there was none."""
        mode = self._head.result_mode or "raw_passthrough"
        return {
            "result_mode": mode,
            "result_mode_effective": self._decided if mode == "auto" else mode,
        }

    def _completed(self, completed: events.RunCompleted) -> dict[str, Any]:
        return (
            {"reply_len": self._reply_length, "reply_snapshot_included": False}
            | self._routed
            | {"upstream_request_id": self._upstream_request_id}
            | self._modes()
            | {"metadata": _summary(completed) | self._made() | completed.metadata}
        )

    def _made(self) -> dict[str, Any]:
        """Return the files that the run made: this wire has no event for them, and none may be added."""
        if not self._files:
            return {}
        return {"artifacts": [file_facts(made) for made in self._files]}

    def _failed(self, failed: events.RunFailed) -> dict[str, Any]:
        message = failed.message or "The run failed."
        problem = {"code": failed.code or "unknown_error", "message": message, "error": message}
        return problem | self._routed | self._modes()


def _tool_result(call: events.ToolCallCompleted) -> dict[str, Any]:
    outcome: dict[str, Any] = {
        "tool_name": call.tool_name or _NAMELESS,
        "ok": call.ok,
        "elapsed_ms": max(0, call.elapsed_ms),
    }
    if call.error is not None:
        code, message = call.error.code or "tool_error", call.error.message or "The tool failed."
        return outcome | {"error": {"code": code, "message": message}}
    return outcome | {"result": call.result}


def _summary(completed: events.RunCompleted) -> dict[str, Any]:
    usage = completed.usage
    counted: dict[str, Any] = {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
    }
    if usage.cost_usd is not None:
        counted["cost_usd"] = usd(usage.cost_usd)
    return {"finish_reason": completed.finish_reason, "usage": counted}


def split_text(text: str) -> Iterator[str]:
    """Yield a long text in pieces of at most 128 characters, cut after a separator if there is one."""
    start = 0
    while start < len(text):
        end = min(start + _PIECE, len(text))
        if end < len(text):
            last = max(text.rfind(separator, start, end) for separator in _SEPARATORS)
            end = last + 1 if last >= start else end
        yield text[start:end]
        start = end


encoder: Final = TextEncoder
