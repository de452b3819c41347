"""Where the owner of a run's files gets them, and how OpenAI's wires name them.

OpenAI's own word for a link that belongs to an answer is the annotation `url_citation`, which clients
show as a source. It stands beside the text, so the answer is not another for it.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from agents.dialects.steps import Item
from conversations.events import ArtifactCreated, MessageContent

TOOL_RESULT: Final = "tool_result"
"""The type of an artifact that its tool's output names."""
_ARTIFACTS: Final = "/api/v1/agent/artifacts/"


def address(artifact_id: str) -> str:
    """Where its owner can GET it."""
    return f"{_ARTIFACTS}{artifact_id}"


def files_of(item: Item) -> list[ArtifactCreated | MessageContent]:
    """The files that a message shows: those made for it, and those that hold its other contents."""
    return [*item.files, *(content for content in item.contents if content.artifact_id)]


def cited(file: ArtifactCreated | MessageContent, *, at: int) -> dict[str, Any]:
    """What a citation says of a file, at this place of the text."""
    title = file.name or file.artifact_id
    return {"url": address(file.artifact_id), "title": title, "start_index": at, "end_index": at}


def described(made: ArtifactCreated) -> dict[str, Any]:
    """A file's facts, and its address; the event's own tag is the wire's to say."""
    told: dict[str, Any] = msgspec.to_builtins(made)
    told.pop("type", None)
    return told | {"url": address(made.artifact_id)}
