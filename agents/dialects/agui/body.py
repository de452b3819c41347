"""The body of an AG-UI run as clients of both generations write it (specs/ag-ui.md §1.1, §1.5).

A member that we do not know must not stop a run, nor a part that we cannot use: `tidied` leaves such
things out and says which. Keys may be camelCase or snake_case, an optional member may be null.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel

from agents.dialects.base import LONGEST_DESCRIPTION, MOST_CONTEXT, MOST_TOOLS

LONGEST_RUN_ID: Final = 128
LONGEST_ID: Final = 200
MOST_MESSAGES: Final = 10_000
LONGEST_DATA: Final = 14 * 1024 * 1024  # characters of base64, of a file of 10 MiB
_ROLES: Final = frozenset({"user", "assistant", "system", "developer", "tool", "reasoning", "activity"})
_FILES: Final = frozenset({"image", "binary"})

_Id = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_ID)]


class _Shape(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        hide_input_in_errors=True,
        alias_generator=to_camel,
        populate_by_name=True,
    )


class TextPart(_Shape):
    type: Literal["text"]
    text: str


class Source(_Shape):
    type: Literal["data", "url"]
    value: Annotated[str, StringConstraints(max_length=LONGEST_DATA)]
    mime_type: str | None = None


class ImagePart(_Shape):
    type: Literal["image"]
    source: Source


class BinaryPart(_Shape):
    """What 0.0.59 sends in place of an image; `data` is base64."""

    type: Literal["binary"]
    mime_type: str
    url: str | None = None
    data: Annotated[str, StringConstraints(max_length=LONGEST_DATA)] | None = None


Part = Annotated[TextPart | ImagePart | BinaryPart, Field(discriminator="type")]


class _Function(_Shape):
    name: str
    arguments: str = ""


class ToolCall(_Shape):
    id: _Id
    function: _Function


class Message(_Shape):
    """A message of any role; what a role needs beyond the rest is checked where it is used."""

    id: _Id
    role: Literal["user", "assistant", "system", "developer", "tool", "reasoning", "activity"]
    content: str | list[Part] | dict[str, Any] | None = None
    name: str | None = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: _Id | None = None
    error: str | None = None
    encrypted_value: str | None = None
    activity_type: Annotated[str, StringConstraints(max_length=200)] | None = None


class Tool(_Shape):
    name: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    description: Annotated[str, StringConstraints(max_length=LONGEST_DESCRIPTION)] | None = None
    parameters: Any = None


class Context(_Shape):
    description: str
    value: Any = ""


class Resume(_Shape):
    interrupt_id: str
    status: Literal["resolved", "cancelled"]
    payload: Any = None


class Body(_Shape):
    """RunAgentInput: only the two ids and the messages must be there."""

    thread_id: _Id
    run_id: Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_RUN_ID)]
    messages: Annotated[list[Message], Field(max_length=MOST_MESSAGES)]
    protocol_version: Annotated[str, StringConstraints(max_length=32)] | None = None
    parent_run_id: Annotated[str, StringConstraints(max_length=LONGEST_RUN_ID)] | None = None
    state: Any = None
    tools: Annotated[list[Tool], Field(max_length=MOST_TOOLS)] | None = None
    context: Annotated[list[Context], Field(max_length=MOST_CONTEXT)] | None = None
    forwarded_props: Any = None
    resume: Annotated[list[Resume], Field(max_length=100)] | None = None


def tidied(messages: Any) -> tuple[Any, list[str]]:
    """The messages without roles and parts that we do not know, and what was left out."""
    if not isinstance(messages, list):
        return messages, []
    left_out: list[str] = []
    kept = [_tidy(message, left_out) for message in messages if _is_known(message, left_out)]
    return kept, left_out


def _is_known(message: Any, left_out: list[str]) -> bool:
    role = message.get("role") if isinstance(message, dict) else None
    if not isinstance(role, str) or role in _ROLES:
        return True
    left_out.append("a message of an unknown role")
    return False


def _tidy(message: Any, left_out: list[str]) -> Any:
    content = message.get("content") if isinstance(message, dict) else None
    if not isinstance(content, list):
        return message
    return message | {"content": [part for part in content if _is_usable(part, left_out)]}


def _is_usable(part: Any, left_out: list[str]) -> bool:
    """Text and images; whatever else a client may send cannot be shown to a model, and is said to be."""
    kind = part.get("type") if isinstance(part, dict) else None
    if not isinstance(kind, str) or kind == "text":
        return True
    if kind in _FILES and _mime_type(part).startswith("image/") and _kind_of_source(part) != "file":
        return True
    named = kind if kind in {"audio", "video", "document", "image", "binary"} else "unknown"
    left_out.append(f"a part of type {named}")
    return False


def _mime_type(part: dict[str, Any]) -> str:
    """The part's type; an image that does not say is looked at when it is stored."""
    source = part.get("source")
    told = source if part.get("type") == "image" and isinstance(source, dict) else part
    found = told.get("mimeType", told.get("mime_type"))
    if isinstance(found, str) and found:
        return found.lower()
    return "image/" if part.get("type") == "image" else ""


def _kind_of_source(part: dict[str, Any]) -> Any:
    source = part.get("source")
    return source.get("type") if isinstance(source, dict) else None
