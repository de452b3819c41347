"""Values that the fold of a run gives to its thread: finished messages and pending approvals."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True)
class StoredMessage:
    """A finished message on its way to the thread; a stage's note has no place in the conversation."""

    role: str
    content: str
    metadata: str
    client_id: str | None = None
    placed: bool = True


@dataclass(frozen=True)
class StoredInterrupt:
    """A tool call that waits for approval, on its way to the thread; the arguments are JSON text."""

    id: UUID
    tool_call_id: str
    tool_name: str
    arguments: str
    message: str
    expires_at: str
