"""The ids that an AG-UI client sees, made from the log's.

A client keeps one list of messages for a whole thread and finds a message or a tool call by its id
alone, so an id must not come again in another run. A runner's ids are unique only within its run;
therefore every id that we choose contains the run. The calls of frontend tools keep theirs: the
client's answer names it, and the model must recognise it.
"""

from __future__ import annotations

import re
from typing import Final

from agents.dialects.base import RunHead, id_in_run
from conversations.events import ToolCallStarted

_RUN: Final = re.compile(r"(?<![0-9a-f])[0-9a-f]{12}7[0-9a-f]{3}[89ab][0-9a-f]{15}(?![0-9a-f])")


def run_ids(head: RunHead) -> tuple[str, str]:
    """Return the ids of the thread and the run as their client knows them."""
    thread_id = head.wire.get("threadId") or str(head.thread_id)
    return thread_id, head.client_run_id or head.run_id.hex


def is_ours(wire_id: str) -> bool:
    """Return whether a message id is one of those made here: it contains a run of ours."""
    return _RUN.search(wire_id) is not None


def reasoning_id(own_id: str, run: str) -> str:
    """Return the wire id of reasoning; runners use one id for it and for the answer, a client cannot."""
    return f"reasoning-{id_in_run(own_id, run)}"


def call_id(started: ToolCallStarted, run: str) -> str:
    """Return the wire id of a tool call; the client's own tools keep theirs."""
    is_clients = started.kind == "frontend"
    return started.tool_call_id if is_clients else id_in_run(started.tool_call_id, run)


def artifact_message_id(artifact_id: str, run: str) -> str:
    """Return the id of the activity message that shows an artifact."""
    return f"artifact-{run}-{artifact_id}"
