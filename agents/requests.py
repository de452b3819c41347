"""What was asked, in canonical form: every dialect's body becomes a `RunRequest`.

It is frozen and stored on the run as JSON, so that whatever executes the run later (another
process, after a crash) sees exactly what was accepted.
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
    """A file as the client names it, before `start_run` has made an `Attachment` of it.

    It has a `url`, or base64 `data`, or the `file_id` of a file that is stored here. A `signed` one must
    be a signed URL of ours (seed 000); any other URL is fetched. An image must be one by its bytes; of
    `any` kind it may be a text too. `place` is where it stands in the body, for refusals.
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
    """A stored item that the client names instead of sending it; `place` is where its body does."""

    id: str
    place: str


class InputMessage(Struct, frozen=True, omit_defaults=True):
    """One message the client adds to the thread (specs/run-agent-input.md §1).

    `uploads` and what it `refers` to never reach the store: they become `attachments`, and the messages
    that are meant, when the run is accepted. `layout` says how the attachments stood between the texts
    (`conversations.blocks`). What `repeats` an answer of a tool of ours was made in another run, which
    counts it. `reasoning` is what a model thought before its `tool_calls`, in its provider's form; no
    client sends it.
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

    Of a `strict` one the client is given no call whose arguments do not fit.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    strict: bool = False


OWN_LABEL: Final = "parley"
"""The server label of our own tools, on wires that know servers by labels."""


class ServerTools(Struct, frozen=True, omit_defaults=True):
    """What a request says of the tools that it knows under a server's label.

    `names` are those that may be called (None: all). Calls of those in `approve` (None: of all) wait
    for approval, also where staff do not ask for it.
    """

    label: str
    names: tuple[str, ...] | None = None
    approve: tuple[str, ...] | None = ()


class ToolChoice(Struct, frozen=True, omit_defaults=True):
    """How the model must use its tools; the defaults leave that to the model.

    `required`: it must call one before it answers: `name` where that is said, a tool of ours under the
    label `server` where that is. `listed_only`: of ours only those are offered that the request lists
    (`RunRequest.servers`). `one_by_one`: never two calls in one step. `most_calls` counts calls of tools
    of ours in the whole run.
    """

    required: bool = False
    name: str = ""
    server: str = ""
    listed_only: bool = False
    one_by_one: bool = False
    most_calls: int | None = None


class ContextItem(Struct, frozen=True):
    """Something the client wants the model to know (AG-UI `context`)."""

    description: str
    value: str


class InterruptAnswer(Struct, frozen=True):
    """A client's answer to an interrupt of an earlier run (AG-UI `resume`)."""

    interrupt_id: str
    status: Literal["resolved", "cancelled"]
    payload: Any = None


class Generation(Struct, frozen=True, omit_defaults=True):
    """What is asked of the sampling, by a client or by a mapping; None leaves it to the next.

    `reasoning_budget` counts tokens; `json_schema` is the form that the answer must have. For
    `verbosity` and `reasoning_summary` not every provider has a word (`providers.base.unsaid`).
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
    """A tool to be called before the model is."""

    name: str
    arguments: dict[str, Any]


class PromptUse(Struct, frozen=True, omit_defaults=True):
    """A prompt version that a run is to use instead of the active one; asked for by its id alone."""

    version_id: int
    kind: str = ""
    prompt_id: int = 0
    name: str = ""
    number: int = 0


TriggerSource = Literal["platform", "webui", "api", "scheduler", "system", "pipeline_adapter"]


class Actor(Struct, frozen=True, omit_defaults=True):
    """Who did it, as the caller says."""

    actor_type: str
    actor_id: str | None = None
    actor_name: str | None = None
    metadata: dict[str, Any] = {}


class Subject(Struct, frozen=True, omit_defaults=True):
    """What it is about, as the caller says."""

    subject_type: str
    subject_id: str | None = None
    data: dict[str, Any] = {}


class Happened(Struct, frozen=True, omit_defaults=True):
    """The event that a hosted runner is run for, as the caller says (seed 003 §4.4); times in seconds.

    Who a message is from is never the caller's to say: then there is no actor and no subject.
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
    """One run, as asked for by a client of any dialect.

    An empty `model` means the installation's default. `instructions` are for this run alone: part of the
    system message, after the prompts. `session` is a client's own name for the thread where that is no
    UUID; `wire` is what the dialect's encoder must know again later. `known` says which messages count
    as said before: none, those that stand in the thread with the same id and text, or all up to the last
    one that stands there with its id; or `shown` is what its client shows of the conversation, all of it
    (whole) or its newer part (tail), and says where the run goes on. `continues` is the run (32 hex
    digits; zeros: none) that it goes on from, where that need not be the newest; `leading` are the
    system messages that the client shows first. `server_tools` are the tools of ours that the model may
    call; None: those that it is granted. `servers` says more of them, and `needs` which of them must be
    there. With `search` kept the web search fetches no page anew. With `truncation` disabled a
    conversation that is longer than the model takes fails. What is not `stored` is gone when the run has
    ended. `prompts` are set where staff try a version: then those are used, and recorded, and not the
    active ones. `runner` is the hosted runner that staff asked for; "" leaves it to the bindings.
    `event` is what it is run for where the caller says more of that than a message. `schemas` is filled
    in rows only.
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


_decoder: Final = msgspec.json.Decoder(RunRequest)


def dump(request: RunRequest) -> bytes:
    """The request as JSON, for the run's row.

    A row sorts the keys of its objects, and models read a JSON Schema in its order (seed 000: keys as
    received; an answer is written in the order of its properties). So schemas go as text: those of
    the tools, then that of the answer.
    """
    if not request.tools and request.generation.json_schema is None:
        return msgspec.json.encode(request)
    given = [tool.parameters for tool in request.tools]
    if request.generation.json_schema is not None:
        given.append(request.generation.json_schema)
    texts = tuple(msgspec.json.encode(schema).decode() for schema in given)
    return msgspec.json.encode(_with(request, [{} for _ in given], schemas=texts))


def load(stored: bytes | str) -> RunRequest:
    """The request of a run's row."""
    request = _decoder.decode(stored)
    if not request.schemas:
        return request
    return _with(request, [msgspec.json.decode(text) for text in request.schemas], schemas=())


def _with(request: RunRequest, given: list[dict[str, Any]], *, schemas: tuple[str, ...]) -> RunRequest:
    """The request with these schemas of its tools, and then of its answer if it has one."""
    replace = msgspec.structs.replace
    tools = tuple(
        replace(tool, parameters=schema) for tool, schema in zip(request.tools, given, strict=False)
    )
    generation = request.generation
    if generation.json_schema is not None:
        generation = replace(generation, json_schema=given[-1])
    return replace(request, tools=tools, generation=generation, schemas=schemas)


def identity(request: RunRequest) -> bytes:
    """What tells a repeated request from another one.

    Not the request's id nor how to treat it, and of a signed URL only which file it names: the same
    body sent again an hour later is the same request. A client that repeats its whole history also
    sends its state and context as they are now, which the run itself may have changed.
    """
    if request.known in ("id", "tail", "whole"):
        request = msgspec.structs.replace(request, known="id", state=None, context=())
    messages = tuple(
        msgspec.structs.replace(said, uploads=tuple(map(_without_token, said.uploads)))
        for said in request.messages
    )
    return msgspec.json.encode(
        msgspec.structs.replace(
            request,
            messages=messages,
            shown=(),
            continues="",
            request_id="",
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
    """A run that is this worker's to execute, until its lease ends; the event `started` says so."""

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
    started: str
