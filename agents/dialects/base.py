"""The contract of a dialect: a pure pair of `parse` (body → RunRequest), `encoder` (events → frames)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol
from uuid import UUID

from msgspec import Struct

from agents.requests import RunRequest
from conversations.events import RunEvent


class RunHead(Struct, frozen=True):
    """The facts of a run that an encoder needs beside its events; `wire` is set by `parse`."""

    run_id: UUID
    thread_id: UUID
    request_id: str
    model: str = ""
    result_mode: str | None = None
    client_run_id: str | None = None
    created_at_ms: int = 0
    wire: dict[str, Any] = {}


class Frame(Struct, frozen=True, gc=False):
    """One message on the wire: its name, its JSON, and the place that a reader has reached with it.

    A dialect without named events leaves `event` empty. `id` is the value of a later `Last-Event-ID`:
    the log position that the frame completes, or a number of the dialect's own for every frame.
    """

    event: str
    data: bytes
    id: int | None = None


class Encoder(Protocol):
    """An encoder of a run's events, in order from the first, into frames."""

    def feed(self, event: RunEvent) -> Sequence[Frame]:
        """Return the frames of the next event; the last of them has an `id`."""

    def heartbeat(self, at_ms: int) -> Frame | None:
        """Return a frame for a silence, without an `id`, since the log has none; None: a comment."""
        return None


class Dialect(Protocol):
    """A client's protocol."""

    @property
    def OPENING(self) -> bytes:  # noqa: N802
        """The first bytes of an SSE response."""

    def parse(self, body: dict[str, Any], *, request_id: str) -> RunRequest:
        """Return the canonical request. Raise InvalidRequest, with the dialect's own codes."""

    def streams(self, body: dict[str, Any], *, accept: str) -> bool:
        """Return whether the answer to the POST is the run's stream itself."""

    def accepted(self, head: RunHead) -> Struct | dict[str, Any]:
        """Return the body of the 202."""

    def encoder(self, head: RunHead) -> Encoder:
        """Return a new encoder for one reader of one run."""


class AnsweringEncoder(Encoder, Protocol):
    """An encoder that can also return the whole outcome at once."""

    def answer(self) -> bytes:
        """Return the run as one JSON object, as far as the encoder has been fed."""


class AnsweringDialect(Dialect, Protocol):
    """A protocol whose POST may be answered with the run's outcome itself."""

    def waits(self, body: dict[str, Any]) -> bool:
        """Return whether a POST that does not stream waits for the run's end."""

    def encoder(self, head: RunHead) -> AnsweringEncoder:
        """Return a new encoder for one reader of one run."""


class StoredRow(Protocol):
    """The columns of a message's row that a dialect reads."""

    @property
    def id(self) -> str: ...
    @property
    def role(self) -> str: ...
    @property
    def content(self) -> str: ...
    @property
    def metadata(self) -> dict[str, Any]: ...
    @property
    def client_id(self) -> str | None: ...


def id_in_run(own_id: str, run: str) -> str:
    """Return an id of a run (32 hex digits) on a wire: it contains the run, so no other run has it."""
    return own_id if run in own_id else f"{own_id}-{run}"


Sign = Callable[[str, str], str]
"""A function that returns a fresh URL for a stored file (bucket, path)."""
STREAM: Final = "text/event-stream"
MOST_TOOLS: Final = 1_000
MOST_CONTEXT: Final = 1_000
LONGEST_DESCRIPTION: Final = 100_000


def wants_stream(accept: str) -> bool:
    """Return whether an `Accept` header asks for server-sent events."""
    return _accepts(accept, STREAM)


def prefers_json(accept: str) -> bool:
    """Return whether an `Accept` header allows JSON but no server-sent events, or excludes these."""
    if wants_stream(accept):
        return False
    return _accepts(accept, "application/json") or STREAM in accept.lower()


def _accepts(accept: str, media_type: str) -> bool:
    """Return whether an `Accept` header names this type, with a weight above 0 (RFC 9110 §12.5.1)."""
    if media_type not in accept.lower():
        return False
    ranges = (part.replace(" ", "").split(";") for part in accept.lower().split(","))
    return any(kind == media_type and not _is_nothing(more) for kind, *more in ranges)


def _is_nothing(parameters: list[str]) -> bool:
    weights = [
        value.strip("0") for name, _, value in (p.partition("=") for p in parameters) if name == "q"
    ]
    return bool(weights) and weights[-1] in ("", ".")
