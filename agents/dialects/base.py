"""What a dialect is: a pure pair of `parse` (body → RunRequest) and `encoder` (events → frames)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol
from uuid import UUID

from msgspec import Struct

from agents.requests import RunRequest
from conversations.events import RunEvent


class RunHead(Struct, frozen=True):
    """What an encoder must know of a run beside its events."""

    run_id: UUID
    thread_id: UUID
    request_id: str
    result_mode: str | None = None


class Frame(Struct, frozen=True):
    """One message on the wire: its name, its JSON, and the log position it completes (if it does)."""

    event: str
    data: bytes
    id: int | None = None


class Encoder(Protocol):
    """Turns a run's events, in order from the first, into frames."""

    def feed(self, event: RunEvent) -> Sequence[Frame]:
        """The frames of the next event; the last of them carries its seq as `id`."""
        ...

    def heartbeat(self, at_ms: int) -> Frame | None:
        """What to send into silence; it has no `id`, for it is not in the log."""
        ...


class Dialect(Protocol):
    """A client's protocol."""

    def parse(self, body: dict[str, Any], *, request_id: str) -> RunRequest:
        """The canonical request. InvalidRequest, with the dialect's own codes, for a wrong body."""
        ...

    def encoder(self, head: RunHead) -> Encoder:
        """A fresh encoder for one reader of one run."""
        ...
