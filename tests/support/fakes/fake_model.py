"""A scripted OpenAI-compatible model on loopback, for tests that need a provider who misbehaves.

    with FakeModel() as model:
        endpoint.base_url = model.base_url          # http://127.0.0.1:<port>/v1
        model.script(text("Hel", "lo"))             # the next request without a name of its own
        model.script(status(500), text("ok"), name="flaky")   # model "script:flaky", in this order
        ...
        assert model.requests[0].body["messages"][0]["role"] == "system"

What a request gets is chosen by its `model` field, so tests that run side by side do not race:
`script:<name>` is a script of that name (its last answer repeats), `status-<code>`, `fail-<n>` and
the keys of `CASES` are built in (`fail-2:mine` counts apart from `fail-2:yours`), anything else
takes the next queued script or, without one, `TEXT`. The wire is OpenAI's documented one: a usage
chunk comes only when `stream_options.include_usage` asks for it.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import chain, zip_longest
from types import TracebackType
from typing import Any, ClassVar, Self

import httptools

TEXT = ("Hello", ", ", "world", ". ", "你好", "，", "世界", "。")
USAGE = {"prompt_tokens": 11, "completion_tokens": 8, "total_tokens": 19}
_PREDICTED = {"accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0}
DETAILED_USAGE = USAGE | {
    "prompt_tokens_details": {"cached_tokens": 7, "audio_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 5, "audio_tokens": 0} | _PREDICTED,
}
DETAILS = {
    "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0} | _PREDICTED,
}
DONE = b"data: [DONE]\n\n"
Delta = dict[str, Any]


class End(Enum):
    """Ways to stop in the middle. As the first step of an answer: before its headers."""

    HANG = "say nothing more until the client leaves"
    CUT = "close the connection"


@dataclass(frozen=True)
class Pause:
    """Wait before the next step."""

    seconds: float


@dataclass(frozen=True)
class Finish:
    """The chunk that carries the finish reason; some providers say more in it."""

    reason: str
    delta: Delta = field(default_factory=dict)
    counts: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Usage:
    """The chunk that carries the token counts, if the request asked for it."""

    counts: Mapping[str, Any]


Step = Delta | Finish | Usage | Pause | End | bytes


@dataclass(frozen=True)
class Manner:
    """What a provider of this wire says in every chunk, and in every choice."""

    chunk: Mapping[str, Any] = field(default_factory=dict)
    choice: Mapping[str, Any] = field(default_factory=dict)
    counts_later: bool = True  # and until then says that it has none, if it was asked for them


_PRINT = {"system_fingerprint": "fp_fake"}
OPENAI = Manner(_PRINT | {"service_tier": "default", "obfuscation": "aZ09"}, {"logprobs": None})
DEEPSEEK = Manner(_PRINT, {"logprobs": None})
MISTRAL = Manner(counts_later=False)


@dataclass(frozen=True)
class Answer:
    """What goes on the wire, in order: deltas become chunks, bytes go out as they are."""

    steps: tuple[Step, ...]
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    line_end: bytes = b"\n"
    splits_characters: bool = False
    manner: Manner = OPENAI


@dataclass(frozen=True)
class Received:
    """One request as it arrived; header names are lower case, `body` is {} when it is no object."""

    method: str
    path: str
    headers: Mapping[str, str]
    raw: bytes
    body: dict[str, Any]
    request_id: str

    @property
    def model(self) -> str:
        """As the body names it, or the path of a wire that has it there."""
        return str(self.body.get("model", "")) or self.path.rpartition("/")[2].rpartition(":")[0]


# --- answers --------------------------------------------------------------------------------------


def text(*pieces: str, finish: str = "stop", usage: Mapping[str, Any] | None = USAGE) -> Answer:
    """A whole answer, one chunk a piece."""
    counted = (Usage(usage),) if usage is not None else ()
    return Answer((_role(), *map(_content, pieces), Finish(finish), *counted, DONE))


def status(code: int, *, message: str = "", headers: Mapping[str, str] | None = None) -> Answer:
    """An HTTP error with OpenAI's error body."""
    kind, name, words = _ERRORS.get(code, ("server_error", None, "The server had an error."))
    param = "messages" if code == 400 else None
    error = {"message": message or words, "type": kind, "param": param, "code": name}
    extra = {"retry-after": "1"} if code == 429 else {}
    json_type = {"content-type": "application/json"}
    return Answer((_encoded({"error": error}),), code, json_type | extra | dict(headers or {}))


def tool_calls(*calls: tuple[str, str, str]) -> Answer:
    """Calls of (id, tool name, arguments), one after the other, each in pieces of four characters.

    A single call opens in the chunk that opens the answer.
    """
    opened = _opened(*calls)
    steps = [[begun, *pieces] for begun, pieces in zip(opened, _pieces(*calls), strict=True)]
    if len(steps) == 1:
        steps[0][0] = _role(None) | steps[0][0]
    else:
        steps.insert(0, [{"role": "assistant", "content": None}])
    return Answer((*chain(*steps), Finish("tool_calls"), Usage(USAGE), DONE))


def woven_calls(*calls: tuple[str, str, str]) -> Answer:
    """Calls whose pieces take turns, as the wire allows and nobody was seen to send."""
    woven = (piece for turn in zip_longest(*_pieces(*calls)) for piece in turn if piece)
    return Answer((_role(None), *_opened(*calls), *woven, Finish("tool_calls"), Usage(USAGE), DONE))


def _opened(*calls: tuple[str, str, str]) -> list[Delta]:
    return [
        _call(i, id=key, type="function", name=name, arguments="")
        for i, (key, name, _) in enumerate(calls)
    ]


def _pieces(*calls: tuple[str, str, str]) -> list[list[Delta]]:
    return [
        [_call(i, arguments=piece) for piece in re.findall(r"(?s).{1,4}", arguments)]
        for i, (*_, arguments) in enumerate(calls)
    ]


def _role(content: str | None = "") -> Delta:
    return {"role": "assistant", "content": content, "refusal": None}


def _content(piece: str) -> Delta:
    return {"content": piece}


def _thinking(piece: str) -> Delta:
    return {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": piece}]}]}


def _call(index: int, *, arguments: str, name: str = "", **opening: str) -> Delta:
    function = {"name": name, "arguments": arguments} if name else {"arguments": arguments}
    return {"tool_calls": [{"index": index, **opening, "function": function}]}


def _data(payload: Any) -> bytes:
    return b"data: " + _encoded(payload) + b"\n\n"


def _encoded(payload: Any) -> bytes:
    return json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode()


_ERRORS: dict[int, tuple[str, str | None, str]] = {
    400: ("invalid_request_error", None, "The request is not valid."),
    401: ("invalid_request_error", "invalid_api_key", "Incorrect API key provided: sk-secret."),
    403: ("invalid_request_error", "unsupported_country_region_territory", "Not supported here."),
    404: ("invalid_request_error", "model_not_found", "The model does not exist."),
    429: ("requests", "rate_limit_exceeded", "Rate limit reached for requests."),
    503: ("server_error", None, "The engine is currently overloaded."),
}

_HELLO = text(*TEXT)
_OPENED: tuple[Step, ...] = (_role(), _content("Hel"), _content("lo"))
_STREAM_ERROR = {"error": {"message": "The server had an error.", "type": "server_error", "code": None}}

_CALLS = (
    ("call_a", "search", '{"query": "卧推", "top_k": 3}'),
    ("call_b", "weather", '{"city": "São Paulo"}'),
)
_DEEPSEEKS = USAGE | {
    "prompt_tokens_details": {"cached_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 5},
    "prompt_cache_hit_tokens": 0,
    "prompt_cache_miss_tokens": 11,
}

CASES: dict[str, Answer] = {
    "hello": _HELLO,
    "hang": Answer((End.HANG,)),
    "hang-midway": Answer((*_OPENED, End.HANG)),
    "cut-first": Answer((End.CUT,)),
    "cut": Answer((*_OPENED, End.CUT)),
    "truncated": Answer(_OPENED),
    "error-in-stream": Answer((*_OPENED, b"data: " + _encoded(_STREAM_ERROR) + b"\n\n", DONE)),
    "overloaded-in-stream": Answer((*_OPENED, _data({"error": {"code": "server_is_overloaded"}}))),
    "unknown-error-in-stream": Answer((*_OPENED, _data({"error": {"type": "strange", "code": 418}}))),
    "refusal": Answer((_role(None), {"refusal": "I can't."}, Finish("stop"), Usage(USAGE), DONE)),
    "strange": Answer((_data({"some_new": [1]}), _data({"choices": None}), *_HELLO.steps)),
    "rubbish": Answer(
        (b"<html><body>Bad gateway</body></html>",), headers={"content-type": "text/html"}
    ),
    "bad-chunk": Answer((*_OPENED, b'data: {"choices":[{"delta":\n\n', *_HELLO.steps)),
    "comments": Answer((b": keep-alive\n\n", *_OPENED, b": keep-alive\n\n", Finish("stop"), DONE)),
    "crlf": replace(_HELLO, line_end=b"\r\n"),
    "split": replace(_HELLO, splits_characters=True),
    "no-usage": text(*TEXT, usage=None),
    "usage": text(*TEXT, usage=DETAILED_USAGE),
    "length": text("Hel", "lo", finish="length"),
    "content-filter": text("Hel", finish="content_filter"),
    "empty": Answer((DONE,)),
    "silent": text(),
    "huge": text("x" * 100_000),
    "flood": text(*["x" * 100_000] * 60),
    "endless": Answer((_role(), *(_content("tick "), Pause(0.02)) * 1500, Finish("stop"), DONE)),
    "reasoning": Answer(  # as DeepSeek says it
        (
            {"role": "assistant", "content": None, "reasoning_content": ""},
            {"content": None, "reasoning_content": "Let me "},
            {"content": None, "reasoning_content": "think."},
            *({"content": piece, "reasoning_content": None} for piece in TEXT),
            Finish("stop", {"content": "", "reasoning_content": None}, _DEEPSEEKS),
            DONE,
        ),
        manner=DEEPSEEK,
    ),
    "parts": Answer(  # as Mistral's reasoning models say it
        (
            _content("") | {"role": "assistant"},
            _content(""),
            *map(_thinking, ("Let me ", "think.")),
            {"content": [{"type": "thinking", "thinking": []}]},
            _content("Hel"),
            _content("lo"),
            Finish("stop", _content(""), USAGE),
            DONE,
        ),
        manner=MISTRAL,
    ),
    "tools": tool_calls(*_CALLS),
    "one-tool": tool_calls(_CALLS[0]),
    "woven": woven_calls(*_CALLS),
}


# --- the server -----------------------------------------------------------------------------------


class FakeModel:
    """The server, on a loop and thread of its own between `__enter__` and `__exit__`.

    Another wire is a subclass with answers, refusals and paths of its own.
    """

    root: ClassVar[str] = "/v1"
    cases: ClassVar[Mapping[str, Answer]] = CASES

    def __init__(self, *, key: str = "") -> None:
        self.key = key
        self.base_url = ""
        self.requests: list[Received] = []
        self.refusals: list[str] = []
        self.disconnects = 0
        self._queue: deque[Answer] = deque()
        self._named: dict[str, deque[Answer]] = {}
        self._failed: Counter[str] = Counter()
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._connections: set[_Connection] = set()

    def __enter__(self) -> Self:
        self._thread.start()
        self._wait(lambda: bool(self.base_url), 5, "the fake model to listen")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join(5)

    def script(self, *answers: Answer, name: str = "") -> None:
        """Queue answers for the next requests, or keep them for the model `script:<name>`."""
        if name:
            self._named[name] = deque(answers)
        else:
            self._queue.extend(answers)

    def answers_left(self, name: str) -> int:
        """How many answers of the script are still to be given, with the last one, which repeats."""
        return len(self._named[name])

    def requests_for(self, model: str) -> list[Received]:
        """What arrived for one model name."""
        return [request for request in self.requests if request.model == model]

    def wait_for_requests(self, count: int, *, timeout: float = 5) -> None:
        """Return when so many requests have arrived in all."""
        self._wait(lambda: len(self.requests) >= count, timeout, f"{count} requests")

    def wait_for_disconnects(self, count: int, *, timeout: float = 5) -> None:
        """Return when so many clients have left before the end of their answer."""
        self._wait(lambda: self.disconnects >= count, timeout, f"{count} disconnects")

    def _wait(self, ready: Callable[[], bool], timeout: float, what: str) -> None:
        with self._changed:
            if not self._changed.wait_for(ready, timeout):
                raise TimeoutError(f"waited {timeout:g} s for {what}")

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopped = asyncio.Event()
        server = await self._loop.create_server(lambda: _Connection(self), "127.0.0.1", 0)
        with self._changed:
            self.base_url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}{self.root}"
            self._changed.notify_all()
        await self._stopped.wait()
        server.close()
        for connection in list(self._connections):
            connection.close()
        await server.wait_closed()

    def opened(self, connection: _Connection) -> None:
        self._connections.add(connection)

    def closed(self, connection: _Connection, *, midway: bool) -> None:
        with self._changed:
            self._connections.discard(connection)
            self.disconnects += midway
            self._changed.notify_all()

    def receive(self, method: str, path: str, headers: Mapping[str, str], raw: bytes) -> Received:
        with self._changed:
            name = f"req_fake_{len(self.requests) + 1}"
            request = Received(method, path, headers, raw, _json_object(raw), name)
            self.requests.append(request)
            self._changed.notify_all()
        return request

    def answer(self, request: Received) -> Answer:
        """The answer to a request: a refusal if OpenAI would refuse it, else what was scripted."""
        refused = self.refusal(request)
        if refused is not None:
            self.refusals.append(f"{request.method} {request.path}: {_message(refused)}")
            return refused
        if request.path == "/v1/models":
            listed = [
                {"id": name, "object": "model", "created": 0, "owned_by": "fake"} for name in CASES
            ]
            body = _encoded({"object": "list", "data": listed})
            return Answer((body,), headers={"content-type": "application/json"})
        return self._scripted(request)

    @staticmethod
    def error(code: int) -> Answer:
        """An error as this wire writes it."""
        return status(code)

    def refusal(self, request: Received) -> Answer | None:
        """What the provider answers to a request that it does not take."""
        match request.method, request.path:
            case "GET", "/v1/models":
                return self._key_refusal(request)
            case "POST", "/v1/chat/completions":
                return self._key_refusal(request) or _body_refusal(request)
            case _, "/v1/models" | "/v1/chat/completions":
                return status(405, message=f"Not allowed to {request.method} on {request.path}.")
            case _:
                return status(404, message=f"Invalid URL ({request.method} {request.path})")

    def _key_refusal(self, request: Received) -> Answer | None:
        scheme, _, key = request.headers.get("authorization", "").partition(" ")
        if scheme != "Bearer" or not key:
            return status(401, message="You didn't provide an API key.")
        return status(401) if self.key and key != self.key else None

    def _scripted(self, request: Received) -> Answer:
        if request.model.startswith("script:"):
            return self._next_named(request.model.removeprefix("script:"))
        case = request.model.partition(":")[0]
        if (
            case == "tools"
            and "messages" in request.body
            and request.body["messages"][-1]["role"] == "tool"
        ):
            return self.cases["hello"]
        if case in self.cases:
            return self.cases[case]
        if found := re.fullmatch(r"status-(\d{3})", case):
            return self.error(int(found[1]))
        if found := re.fullmatch(r"fail-(\d+)", case):
            self._failed[request.model] += 1
            failing = self._failed[request.model] <= int(found[1])
            return self.error(500) if failing else self.cases["hello"]
        return self._queue.popleft() if self._queue else self.cases["hello"]

    def _next_named(self, name: str) -> Answer:
        answers = self._named.get(name)
        if not answers:
            return self.error(404)
        return answers.popleft() if len(answers) > 1 else answers[0]


def _body_refusal(request: Received) -> Answer | None:
    body = request.body
    messages = body.get("messages")
    names = [tool["function"]["name"] for tool in body.get("tools", ())]
    if not all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in names):
        return status(400, message=f"Invalid 'tools[0].function.name' in {names!r}.")
    match body:
        case {"model": str(), "stream": True} if isinstance(messages, list) and messages:
            wrong = next((m for m in messages if not _is_message(m)), None)
            if wrong is not None:
                return status(400, message=f"Invalid message: {wrong!r}")
            return _pairing_refusal(messages)
        case {"model": str(), "stream": True}:
            return status(400, message="Missing required parameter: 'messages'.")
        case {"model": str()}:
            return status(400, message="This fake only streams: send stream=true.")
        case {}:
            return status(400, message="We could not parse the JSON body of your request.")


def _pairing_refusal(messages: list[dict[str, Any]]) -> Answer | None:
    """What OpenAI says of an answer without its call, and of a call without its answer."""
    waiting: set[str] = set()
    answers = False
    for place, message in enumerate(messages):
        if message["role"] == "tool":
            if not answers or message["tool_call_id"] not in waiting:
                words = "messages with role 'tool' must be a response to a preceeding message with"
                return status(400, message=f"Invalid parameter: {words} 'tool_calls' ({place}).")
            waiting.discard(message["tool_call_id"])
            continue
        if waiting:
            break
        calls = message.get("tool_calls") or []
        waiting, answers = {call["id"] for call in calls}, bool(calls)
    if waiting:
        words = "An assistant message with 'tool_calls' must be followed by tool messages responding to"
        return status(400, message=f"{words} each 'tool_call_id': {', '.join(sorted(waiting))}.")
    return None


def _is_message(message: object) -> bool:
    match message:
        case {"role": "tool", "tool_call_id": str(), "content": str() | list()}:
            return True
        case {"role": "assistant", "tool_calls": [*_]}:
            return True
        case {"role": "system" | "developer" | "user" | "assistant", "content": str() | list()}:
            return True
        case _:
            return False


def _json_object(raw: bytes) -> dict[str, Any]:
    try:
        found = json.loads(raw or b"{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _message(refusal: Answer) -> str:
    (body,) = refusal.steps
    assert isinstance(body, bytes)
    return str(json.loads(body)["error"]["message"])


class _Connection(asyncio.Protocol):
    """One keep-alive HTTP/1.1 connection: a request, its answer, the next request."""

    def __init__(self, model: FakeModel) -> None:
        self.model = model
        self.parser = httptools.HttpRequestParser(self)
        self.task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.model.opened(self)

    def data_received(self, data: bytes) -> None:
        self.parser.feed_data(data)

    def connection_lost(self, exc: Exception | None) -> None:
        midway = self.task is not None and not self.task.done()
        if self.task is not None:
            self.task.cancel()
        self.model.closed(self, midway=midway)

    def close(self) -> None:
        self.transport.abort()

    # httptools calls these
    def on_message_begin(self) -> None:
        self.url, self.headers, self.body = b"", dict[str, str](), b""

    def on_url(self, url: bytes) -> None:
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        method = self.parser.get_method().decode()
        request = self.model.receive(method, self.url.decode(), self.headers, self.body)
        stays = self.parser.should_keep_alive()
        self.task = asyncio.ensure_future(self._send(request, self.model.answer(request), stays))

    async def _send(self, request: Received, answer: Answer, stays: bool) -> None:
        head = _head(request, answer)
        for step in answer.steps:
            match step:
                case Pause(seconds):
                    await asyncio.sleep(seconds)
                case End.HANG:
                    await asyncio.Event().wait()  # until connection_lost cancels it
                case End.CUT:
                    return self._cut()
                case _:
                    for part in _parts(wire(step, request, answer), answer):
                        self.transport.write(head + b"%x\r\n%b\r\n" % (len(part), part))
                        head = b""
                        await asyncio.sleep(0.001 if answer.splits_characters else 0)
        self.transport.write(head + b"0\r\n\r\n")
        if not stays:
            self.transport.close()
        return None

    def _cut(self) -> None:
        self.task = None  # it was we who left
        self.transport.close()


def _head(request: Received, answer: Answer) -> bytes:
    headers = {
        "content-type": "text/event-stream; charset=utf-8",
        "x-request-id": request.request_id,
        "transfer-encoding": "chunked",
    } | dict(answer.headers)
    lines = [f"HTTP/1.1 {answer.status} Scripted", *(f"{k}: {v}" for k, v in headers.items()), "", ""]
    return "\r\n".join(lines).encode()


def wire(step: Step, request: Received, answer: Answer) -> bytes:
    """A step as bytes of the body; nothing for a usage chunk that was not asked for."""
    counted = bool((request.body.get("stream_options") or {}).get("include_usage"))
    none_yet: dict[str, Any] = {"usage": None} if counted and answer.manner.counts_later else {}
    match step:
        case bytes():
            plain = step
        case Usage(counts):
            told = {"choices": [], "usage": DETAILS | dict(counts)}
            plain = _event(request, answer, told) if counted else b""
        case Finish(reason, delta, counts):
            told = none_yet if counts is None else {"usage": counts}
            plain = _event(request, answer, told, delta, reason)
        case dict():
            plain = _event(request, answer, none_yet, step)
        case _:
            raise TypeError(step)
    return plain.replace(b"\n", answer.line_end)


def _event(
    request: Received,
    answer: Answer,
    fields: Mapping[str, Any],
    delta: Delta | None = None,
    reason: str | None = None,
) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": reason} | dict(answer.manner.choice)
    chunk = {
        "id": f"chatcmpl-{request.request_id}",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": request.model,
        **answer.manner.chunk,
        **({"choices": [choice]} if delta is not None else {}),
        **fields,
    }
    return b"data: " + _encoded(chunk) + b"\n\n"


def _parts(wire: bytes, answer: Answer) -> Iterator[bytes]:
    """The pieces to write one by one: all of it, or cut inside every character of several bytes."""
    start = 0
    if answer.splits_characters:
        for place, byte in enumerate(wire):
            if byte & 0xC0 == 0x80:  # a continuation byte: its character began before
                yield wire[start:place]
                start = place
    if start < len(wire):
        yield wire[start:]
