"""The Agent API as a dialect (seed 004; specs/agent-api.md): a body with `input`, a stream back."""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import TypeAdapter

from agents.dialects.agent_api.encoder import AgentApiEncoder
from agents.dialects.agent_api.request import NAME as NAME
from agents.dialects.agent_api.request import parse as parse
from agents.dialects.base import RunHead
from config.http.documentation.json_types import Hex, Shown

OPENING: Final = b""
encoder: Final = AgentApiEncoder
QUEUE: Final = "runs"
_flag: Final = TypeAdapter(bool)


def streams(body: dict[str, Any], *, accept: str) -> bool:
    """Return true unless `stream` is false, whatever the client accepts, as the original does."""
    return _flag.validate_python(body.get("stream", True))


def waits(body: dict[str, Any]) -> bool:
    """Return true: a client that does not want to wait starts a task."""
    return True


class AgentTask(Shown, frozen=True):
    """The response to a background task."""

    task_id: Hex
    status: Literal["submitted"]
    queue: str
    message: str


def accepted(head: RunHead) -> AgentTask:
    text = "The run is accepted; ask for it by its task_id."
    return AgentTask(head.run_id.hex, "submitted", QUEUE, text)
