"""The canonical form of a request: every dialect's body becomes a `RunRequest`.

It is frozen and stored on the run as JSON, so that a later executor (another process, after a crash)
sees exactly the accepted request.
"""

from __future__ import annotations

from typing import Any, Final, Literal
from uuid import UUID

import msgspec
from msgspec import Struct

from conversations.blocks import Layout

ResultMode = Literal["xml_plaintext", "raw_passthrough", "auto"]
OnBusy = Literal["enqueue", "reject", "interrupt"]
OnDisconnect = Literal["continue", "cancel"]
Known = Literal["none", "same", "id", "tail", "whole"]
Effort = Literal["minimal", "low", "medium", "high"]
Search = Literal["any", "kept"]
Truncation = Literal["auto", "disabled"]
Role = Literal["user", "assistant", "system", "developer", "tool", "reasoning", "activity"]


class Attachment(Struct, frozen=True, omit_defaults=True):
    """A file that belongs to a message: a stored object of ours (seed 001).

    A document also has the `name` that its sender gave it, and its `size` in bytes.
    """

    bucket: str
    path: str
    mime_type: str
    name: str = ""
    size: int = 0

    @property
    def is_image(self) -> bool:
        return self.mime_type.startswith("image/")


class Upload(Struct, frozen=True, omit_defaults=True):
    """A file as the client names it, before `start_run` makes an `Attachment` of it.

    It has a `url`, or base64 `data`, or the `file_id` of a file that is stored here. The URL of a
    `signed` one must be a signed URL of ours (seed 000); any other URL is fetched. The bytes must be
    those of an image, or with `takes` any those of an image or a text. `place` is its path in the body,
    for error messages.
    """

    mime_type: str
    url: str = ""
    data: str = ""
    file_id: str = ""
    name: str = ""
    charset: str = ""
    takes: Literal["image", "any"] = "image"
    signed: bool = False
    place: str = ""


class AskedCall(Struct, frozen=True):
    """A tool call inside an assistant message; `arguments` is JSON text."""

    id: str
    name: str
    arguments: str


class Reference(Struct, frozen=True):
    """A stored item that the client names by its id; `place` is the path of that id in the body."""

    id: str
    place: str


class InputMessage(Struct, frozen=True, omit_defaults=True):
    """One message that the client adds to the thread (specs/run-agent-input.md §1).

    `uploads` and `refers` never reach the store: when the run is accepted, `attachments` replace the
    uploads, and the stored messages replace the reference. `layout` gives the positions of the
    attachments between the texts (`conversations.blocks`). A message that `repeats` an answer of a tool
    of ours does not count as a call: another run made it and counts it. `reasoning` is a model's
    thinking before its `tool_calls`, in its provider's form; no client sends it.
    """

    role: Role
    content: str
    client_id: str | None = None
    name: str | None = None
    attachments: tuple[Attachment, ...] = ()
    uploads: tuple[Upload, ...] = ()
    layout: Layout = ()
    tool_calls: tuple[AskedCall, ...] = ()
    tool_call_id: str | None = None
    error: str | None = None
    activity_type: str | None = None
    encrypted_value: str | None = None
    metadata: dict[str, Any] = {}
    reasoning: tuple[dict[str, Any], ...] = ()
    refers: Reference | None = None
    repeats: bool = False


class ClientTool(Struct, frozen=True, omit_defaults=True):
    """A tool that the client executes itself; `parameters` is a JSON Schema, keys as received.

    For a `strict` tool the client receives no call whose arguments do not fit.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    strict: bool = False


OWN_LABEL: Final = "parley"
"""The server label of our own tools, in dialects that name servers by labels."""


class ServerTools(Struct, frozen=True, omit_defaults=True):
    """A request's settings for the tools under one server label.

    `names` are the tools that may be called (None: all). Calls of the tools in `approve` (None: of all)
    wait for approval, even if staff do not require it.
    """

    label: str
    names: tuple[str, ...] | None = None
    approve: tuple[str, ...] | None = ()


class ToolChoice(Struct, frozen=True, omit_defaults=True):
    """The rules for the model's use of tools; the defaults leave it to the model.

    `required`: it must call a tool before it answers: the one with this `name` if it is set, one of ours
    under the label `server` if that is set. `listed_only`: of our tools only those that the request
    lists (`RunRequest.servers`) are offered. `one_by_one`: never two calls in one step. `most_calls` is
    the maximal number of calls of our tools in the whole run.
    """

    required: bool = False
    name: str = ""
    server: str = ""
    listed_only: bool = False
    one_by_one: bool = False
    most_calls: int | None = None


class ContextItem(Struct, frozen=True):
    """A fact that the client gives to the model (AG-UI `context`)."""

    description: str
    value: str


class InterruptAnswer(Struct, frozen=True):
    """A client's answer to an interrupt of an earlier run (AG-UI `resume`)."""

    interrupt_id: str
    status: Literal["resolved", "cancelled"]
    payload: Any = None


class Generation(Struct, frozen=True, omit_defaults=True):
    """The sampling parameters of a client or of a mapping; None leaves a parameter to the next of these.

    `reasoning_budget` counts tokens; `json_schema` is the form that the answer must have. Not every
    provider supports `verbosity` and `reasoning_summary` (`providers.base.first_unsupported`).
    """

    temperature: float | None = None
    top_p: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    json_schema: dict[str, Any] | None = None
    reasoning: Effort | None = None
    reasoning_budget: int | None = None
    verbosity: Literal["low", "high"] | None = None
    reasoning_summary: Literal["concise", "detailed"] | None = None


class ToolUse(Struct, frozen=True):
    """A tool call that is made before the first call of the model."""

    name: str
    arguments: dict[str, Any]


class PromptUse(Struct, frozen=True, omit_defaults=True):
    """A prompt version that a run uses instead of the active one; a request needs only its id."""

    version_id: int
    kind: str = ""
    prompt_id: int = 0
    name: str = ""
    number: int = 0


TriggerSource = Literal["platform", "webui", "api", "scheduler", "system", "pipeline_adapter"]


class Actor(Struct, frozen=True, omit_defaults=True):
    """The actor of an event, according to the caller."""

    actor_type: str
    actor_id: str | None = None
    actor_name: str | None = None
    metadata: dict[str, Any] = {}


class Subject(Struct, frozen=True, omit_defaults=True):
    """The subject of an event, according to the caller."""

    subject_type: str
    subject_id: str | None = None
    data: dict[str, Any] = {}


class Happened(Struct, frozen=True, omit_defaults=True):
    """The event for which a hosted runner runs, as the caller sends it (seed 003 §4.4).

    Times are in seconds. The caller never chooses the sender of a message: then there is no actor and no
    subject.
    """

    event_type: str
    event_id: str = ""
    event_time: int | None = None
    source: str = "api"
    source_event_type: str | None = None
    data: dict[str, Any] = {}
    trigger: TriggerSource = "api"
    actor: Actor | None = None
    subject: Subject | None = None


class RunRequest(Struct, frozen=True, omit_defaults=True):
    """One run, as a client of any dialect requests it.

    An empty `model` means the installation's default. `instructions` are for this run alone; they follow
    the prompts in the system message. `session` is the client's own name for the thread if it is no
    UUID; `wire` holds what the dialect's encoder needs again later. `known` selects the messages that
    count as sent before: none, those that the thread holds with the same id and text (same), or all up
    to the last one whose id the thread holds (id). Or `shown` is the conversation as the client shows
    it, all of it (whole) or its newer part (tail), and determines where the run continues. `continues`
    is the run (32 hex digits; zeros: none) that it continues, if that need not be the newest; `leading`
    are the system messages that the client shows first. `server_tools` are the tools of ours that the
    model may call; None: those that it is granted. `servers` holds settings for them, and `needs` names
    those that must be available. With `search` kept the web search fetches no page again. With
    `truncation` disabled a conversation that is longer than the model accepts fails. The content of a
    run that is not `stored` is deleted when the run has ended. `prompts` are the versions that staff
    try: they are used and recorded instead of the active ones. `runner` is the hosted runner that staff
    choose; "" leaves it to the bindings. `event` is the cause of the run, if the caller gives more than
    a message. `schemas` is filled only in stored rows. `traceparent` and `tracestate` (W3C Trace
    Context) name the span in which the run was accepted, if traces are on.
    """

    dialect: str
    model: str
    messages: tuple[InputMessage, ...]
    request_id: str
    known: Known = "none"
    shown: tuple[InputMessage, ...] = ()
    continues: str = ""
    leading: tuple[InputMessage, ...] = ()
    thread_id: str | None = None
    session: str | None = None
    client_run_id: str | None = None
    parent_run_id: str | None = None
    metadata: dict[str, Any] = {}
    result_mode: ResultMode | None = None
    prefetch: tuple[ToolUse, ...] = ()
    server_tools: tuple[str, ...] | None = None
    servers: tuple[ServerTools, ...] = ()
    needs: tuple[str, ...] = ()
    search: Search = "any"
    tools: tuple[ClientTool, ...] = ()
    tool_choice: ToolChoice = ToolChoice()
    context: tuple[ContextItem, ...] = ()
    instructions: str = ""
    state: Any = None
    forwarded_props: Any = None
    answers: tuple[InterruptAnswer, ...] = ()
    generation: Generation = Generation()
    truncation: Truncation = "auto"
    stored: bool = True
    prompts: tuple[PromptUse, ...] = ()
    on_busy: OnBusy = "enqueue"
    on_disconnect: OnDisconnect = "continue"
    deadline_s: int | None = None
    runner: str = ""
    event: Happened | None = None
    wire: dict[str, Any] = {}
    schemas: tuple[str, ...] = ()
    traceparent: str = ""
    tracestate: str = ""


_decoder: Final = msgspec.json.Decoder(RunRequest)


def dump(request: RunRequest) -> bytes:
    """Return the request as JSON, for the run's row.

    A row sorts the keys of its objects, but models read a JSON Schema in its order (seed 000: keys as
    received; an answer is written in the order of its properties). So schemas are stored as text: those
    of the tools, then that of the answer.
    """
    if not request.tools and request.generation.json_schema is None:
        return msgspec.json.encode(request)
    schemas = [tool.parameters for tool in request.tools]
    if request.generation.json_schema is not None:
        schemas.append(request.generation.json_schema)
    texts = tuple(msgspec.json.encode(schema).decode() for schema in schemas)
    return msgspec.json.encode(_with(request, [{} for _ in schemas], schemas=texts))


def load(stored: bytes | str) -> RunRequest:
    """Return the request of a run's row."""
    request = _decoder.decode(stored)
    if not request.schemas:
        return request
    return _with(request, [msgspec.json.decode(text) for text in request.schemas], schemas=())


def _with(request: RunRequest, objects: list[dict[str, Any]], *, schemas: tuple[str, ...]) -> RunRequest:
    """Return the request with these schemas of its tools, and then of its answer if it has one."""
    replace = msgspec.structs.replace
    tools = tuple(
        replace(tool, parameters=schema) for tool, schema in zip(request.tools, objects, strict=False)
    )
    generation = request.generation
    if generation.json_schema is not None:
        generation = replace(generation, json_schema=objects[-1])
    return replace(request, tools=tools, generation=generation, schemas=schemas)


def identity(request: RunRequest) -> bytes:
    """Return the bytes that distinguish a repeated request from another one.

    They leave out the request's id and its handling, and of a signed URL all but the file that it names:
    the same body an hour later is the same request. A client that repeats its whole history also sends
    its present state and context, which the run itself may have changed, so they are left out too.
    """
    if request.known in ("id", "tail", "whole"):
        request = msgspec.structs.replace(request, known="id", state=None, context=())
    messages = tuple(
        msgspec.structs.replace(message, uploads=tuple(map(_without_token, message.uploads)))
        for message in request.messages
    )
    return msgspec.json.encode(
        msgspec.structs.replace(
            request,
            messages=messages,
            shown=(),
            continues="",
            request_id="",
            traceparent="",
            tracestate="",
            on_busy="enqueue",
            on_disconnect="continue",
            deadline_s=None,
        )
    )


def _without_token(upload: Upload) -> Upload:
    url = upload.url.partition("?")[0] if _SIGNED in upload.url else upload.url
    return msgspec.structs.replace(upload, url=url, place="")


_SIGNED: Final = "/storage/v1/object/sign/"


class Claim(Struct, frozen=True):
    """A run that this worker executes until its lease ends."""

    run_id: UUID
    thread_id: UUID
    user_id: UUID
    thread_seq: int
    attempt: int
    fence: int
    last_seq: int
    deadline_at_ms: int
    left_s: float
    request: RunRequest
