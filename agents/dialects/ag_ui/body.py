"""The body of an AG-UI run as clients of both generations write it (specs/ag-ui.md §1.1, §1.5).

An unknown member must not stop a run: `drop_unknown` leaves such members out and reports them. In the
newest question an unusable file is refused; in older messages it is left out, because clients go on
showing refused files. Keys may be camelCase or snake_case, an optional member may be null.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel

from agents.dialects import client_inputs
from agents.dialects.base import LONGEST_DESCRIPTION, MOST_CONTEXT, MOST_TOOLS
from agents.media_types import is_textual

LONGEST_RUN_ID: Final = 128
LONGEST_ID: Final = 200
MOST_MESSAGES: Final = 10_000
LONGEST_DATA: Final = 14 * 1024 * 1024  # characters of base64, of a file of 10 MiB
_ROLES: Final = frozenset({"user", "assistant", "system", "developer", "tool", "reasoning", "activity"})
_MEDIA: Final = {"image": "an image", "document": "a document", "binary": "a file"}
_MEDIA_NEVER: Final = {"audio": "audio", "video": "a video"}
_SHOWING: Final = frozenset({"user", "tool"})

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


class DocumentPart(_Shape):
    type: Literal["document"]
    source: Source
    metadata: Any = None


class BinaryPart(_Shape):
    """What 0.0.59 sends in place of an image or a document; `data` is base64."""

    type: Literal["binary"]
    mime_type: str
    id: str | None = None
    filename: str | None = None
    url: str | None = None
    data: Annotated[str, StringConstraints(max_length=LONGEST_DATA)] | None = None


Part = Annotated[TextPart | ImagePart | DocumentPart | BinaryPart, Field(discriminator="type")]


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
    """RunAgentInput; only the two ids and the messages are required."""

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


def drop_unknown(messages: Any) -> tuple[Any, list[str]]:
    """Return the messages without unknown roles and parts, and the list of those.

    Raise InvalidRequest `unsupported_file` for a file of the newest question that no model can see.
    """
    if not isinstance(messages, list):
        return messages, []
    left_out: list[str] = []
    newest = _newest_question(messages)
    kept = []
    for place, message in enumerate(messages):
        role = _member(message, "role")
        if isinstance(role, str) and role not in _ROLES:
            left_out.append("a message of an unknown role")
        else:
            where = f"messages[{place}].content" if place == newest else ""
            kept.append(_tidy(message, left_out, where))
    return kept, left_out


def _newest_question(messages: list[Any]) -> int | None:
    places = reversed(range(len(messages)))
    return next((place for place in places if _member(messages[place], "role") == "user"), None)


def _member(value: Any, key: str) -> Any:
    """Return a member of an object; None if the value is no object."""
    return value.get(key) if isinstance(value, dict) else None


def _tidy(message: Any, left_out: list[str], where: str) -> Any:
    content = _member(message, "content")
    if not isinstance(content, list):
        return message
    kept = []
    for place, part in enumerate(content):
        what = _unfit(part, shows=_member(message, "role") in _SHOWING)
        if what is None:
            kept.append(part)
            continue
        if where and what:
            raise client_inputs.unsupported_kind(f"{where}[{place}]", what)
        left_out.append(f"a part of type {_kind(part)}")
    return message | {"content": kept}


def _kind(part: Any) -> str:
    kind = _member(part, "type")
    return str(kind) if kind in _MEDIA.keys() | _MEDIA_NEVER.keys() else "unknown"


def _unfit(part: Any, *, shows: bool) -> str | None:
    """Return the kind of a part that no model can see; "" if it is unknown, None if it is accepted."""
    kind = _member(part, "type")
    if not isinstance(kind, str) or kind == "text":
        return None
    if kind in _MEDIA_NEVER:
        return _MEDIA_NEVER[kind]
    if kind not in _MEDIA:
        return ""
    mime_type = _mime_type(part)
    is_image = mime_type.startswith("image/")
    fits = is_image if kind == "image" else is_image or is_textual(mime_type)
    if fits and shows and _member(part.get("source"), "type") != "file":
        return None
    return f"{_MEDIA[kind]} of the type {mime_type}"[:200] if mime_type else _MEDIA[kind]


def _mime_type(part: dict[str, Any]) -> str:
    """Return the part's type; an image without one is examined when it is stored."""
    source = part.get("source")
    holder = source if part.get("type") != "binary" and isinstance(source, dict) else part
    found = holder.get("mimeType", holder.get("mime_type"))
    if isinstance(found, str) and found:
        return found.lower()
    return "image/" if part.get("type") == "image" else ""
