"""What was asked, in canonical form: every dialect's body becomes a `RunRequest`.

It is frozen and stored on the run as JSON, so that whatever executes the run later (another
process, after a crash) sees exactly what was accepted.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

ResultMode = Literal["xml_plaintext", "raw_passthrough", "auto"]
OnBusy = Literal["enqueue", "reject", "interrupt"]


class InputMessage(Struct, frozen=True, omit_defaults=True):
    """One message the client adds to the thread."""

    role: Literal["user", "assistant", "system", "developer", "tool", "reasoning", "activity"]
    content: str
    client_id: str | None = None


class ToolUse(Struct, frozen=True):
    """A tool to be called before the model is."""

    name: str
    arguments: dict[str, Any]


class RunRequest(Struct, frozen=True, omit_defaults=True):
    """One run, as asked for by a client of any dialect."""

    dialect: str
    model: str
    messages: tuple[InputMessage, ...]
    request_id: str
    thread_id: str | None = None
    client_run_id: str | None = None
    metadata: dict[str, Any] = {}
    result_mode: ResultMode | None = None
    prefetch: tuple[ToolUse, ...] = ()
    on_busy: OnBusy = "enqueue"
    deadline_s: int | None = None


_decoder: Final = msgspec.json.Decoder(RunRequest)


def dump(request: RunRequest) -> bytes:
    """The request as JSON, for the run's row."""
    return msgspec.json.encode(request)


def load(stored: bytes | str) -> RunRequest:
    """The request of a run's row."""
    return _decoder.decode(stored)


def without_request_id(request: RunRequest) -> RunRequest:
    """The request without what differs between two sendings of the same."""
    return msgspec.structs.replace(request, request_id="")
