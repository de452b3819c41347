"""The addresses of a run's files for their owner, and their form on OpenAI's wires.

OpenAI's own form of a link that belongs to an answer is the annotation `url_citation`, which clients
show as a source. It is beside the text, so it does not change the answer.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Self

from msgspec.structs import asdict

from agents.dialects.steps import Item
from config.http.documentation.json_types import Count, Shown, noted
from conversations.events import ArtifactCreated, MessageContent

TOOL_RESULT: Final = "tool_result"
"""The type of an artifact that its tool's output names."""


def artifact_url(artifact_id: str) -> str:
    """Return the address for a GET by the file's owner."""
    return f"/api/v1/agent/artifacts/{artifact_id}"


def files_of(item: Item) -> list[ArtifactCreated | MessageContent]:
    """Return the files of a message: those made for it, and those that hold its other contents."""
    return [*item.files, *(content for content in item.contents if content.artifact_id)]


class UrlCitation(Shown, frozen=True):
    """A link to a file of the run, which belongs to a place of the text."""

    url: Annotated[str, noted("The address of the file, for the owner of the run.")]
    title: Annotated[str, noted("The name of the file.")]
    start_index: Count
    end_index: Count

    @classmethod
    def of(cls, file: ArtifactCreated | MessageContent, *, at: int) -> Self:
        """Return the citation of a file, at this place of the text."""
        return cls(artifact_url(file.artifact_id), file.name or file.artifact_id, at, at)


def file_facts(artifact: ArtifactCreated) -> dict[str, Any]:
    """Return a file's facts and its address, without the event's tag, which each wire adds itself."""
    return asdict(artifact) | {"url": artifact_url(artifact.artifact_id)}
