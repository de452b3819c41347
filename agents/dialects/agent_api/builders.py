"""Builders of responses for authors of runners and servers of the Agent API.

They have the methods of the reference's `agent_api_builder` and produce the same lines; beyond it they
take an index for a content, set audio, files and video, end a response also with an error, may be
completed twice, replace pieces by a whole text, and keep a message's contents in the order of their
index. A builder returns its live object: serialise it before the next step.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeVar, get_args
from uuid import uuid4

from agents.dialects.agent_api import entities
from agents.dialects.agent_api.entities import AgentResponse, AnyContent, Content, Error, Event, Message

T = TypeVar("T", bound=Content)
_CONTENTS: Final[dict[str, type[Content]]] = {
    made.model_fields["type"].default: made for made in get_args(AnyContent)
}


class ContentBuilder:
    """A builder of one content of a message."""

    def __init__(
        self, message_builder: MessageBuilder, content_type: str = "text", index: int = 0
    ) -> None:
        made = _CONTENTS.get(content_type)
        if made is None:
            raise ValueError(f"Unsupported content type: {content_type}")
        self.message_builder = message_builder
        self.content_type = content_type
        self.index = index
        self.text_tokens: list[str] = []
        self.data_deltas: list[dict[str, Any]] = []
        self.content: Any = made(type=content_type, index=index, msg_id=message_builder.message.id)

    def add_text_delta(self, text: str | None) -> entities.TextContent:
        """Add a piece of the text; return its event."""
        self._only("add_text_delta", entities.TextContent)
        self.text_tokens.append(text or "")
        return self._delta(entities.TextContent, text=text or "")

    add_delta = add_text_delta

    def set_text(self, text: str) -> entities.TextContent:
        """Set the whole text, in place of earlier pieces (the package would repeat it)."""
        content = self._set("set_text", entities.TextContent, text=text)
        self.text_tokens.clear()
        return content

    def set_refusal(self, text: str) -> entities.RefusalContent:
        return self._set("set_refusal", entities.RefusalContent, refusal=text)

    def set_image_url(self, image_url: str) -> entities.ImageContent:
        return self._set("set_image_url", entities.ImageContent, image_url=image_url)

    def set_audio(self, data: str, format: str | None = None) -> entities.AudioContent:  # noqa: A002
        """Set a sound as base64, and its format (`wav`, `mp3`)."""
        return self._set("set_audio", entities.AudioContent, data=data, format=format)

    def set_video_url(self, video_url: str) -> entities.VideoContent:
        return self._set("set_video_url", entities.VideoContent, video_url=video_url)

    def set_file(self, **fields: str | None) -> entities.FileContent:
        """Set any of `file_url`, `file_id`, `filename`, `file_data`."""
        unknown = fields.keys() - entities.FileContent.model_fields.keys()
        if unknown:
            raise ValueError(f"a file content has no {', '.join(sorted(unknown))}")
        return self._set("set_file", entities.FileContent, **fields)

    def set_data(self, data: dict[str, Any]) -> entities.DataContent:
        return self._set("set_data", entities.DataContent, data=data)

    def update_data(self, key: str, value: Any) -> entities.DataContent:
        """Set one field of the data."""
        self._only("update_data", entities.DataContent)
        whole = (self.content.data or {}) | {key: value}
        return self._set("update_data", entities.DataContent, data=whole)

    def add_data_delta(self, delta_data: dict[str, Any]) -> entities.DataContent:
        """Add a part of the data, to be merged in `complete`; return its event."""
        self._only("add_data_delta", entities.DataContent)
        self.data_deltas.append(delta_data)
        return self._delta(entities.DataContent, data=delta_data)

    def complete(self) -> Content:
        """Return the whole content and put it into its message; a second call returns the same."""
        if self.text_tokens:
            self.content.text = "".join([self.content.text or "", *self.text_tokens])
            self.text_tokens.clear()
        for delta in self.data_deltas:
            self.content.data = entities.merged(self.content.data or {}, delta)
        self.data_deltas.clear()
        self.content.delta = False
        self.content.completed()
        self.message_builder.add_content(self.content)
        return self.get_content_data()

    def get_content_data(self) -> Content:
        """Return the content in its present state."""
        live: Content = self.content
        return live

    def _only(self, method: str, made: type[Content]) -> None:
        if not isinstance(self.content, made):
            kind = made.model_fields["type"].default
            raise ValueError(f"{method} only supported for {kind} content")

    def _set(self, method: str, made: type[T], **fields: Any) -> T:
        self._only(method, made)
        live: T = self.content
        for name, value in fields.items():
            setattr(live, name, value)
        return live.in_progress()

    def _delta(self, made: type[T], **fields: Any) -> T:
        common = {"index": self.index, "delta": True, "msg_id": self.content.msg_id}
        return made(**common, **fields).in_progress()


class MessageBuilder:
    """A builder of one message, which is in the response's output from the beginning."""

    def __init__(self, response_builder: ResponseBuilder, role: str = "assistant") -> None:
        self.response_builder = response_builder
        self.role = role
        self.message_id = f"msg_{uuid4()}"
        self.content_builders: list[ContentBuilder] = []
        self.message = Message.model_validate({"id": self.message_id, "role": role}).in_progress()
        response_builder.add_message(self.message)

    def create_content_builder(
        self, content_type: str = "text", index: int | None = None
    ) -> ContentBuilder:
        """Return a builder of the message's next content, or of the one at `index`."""
        place = len(self.content_builders) if index is None else index
        made = ContentBuilder(self, content_type, place)
        self.content_builders.append(made)
        return made

    def add_content(self, content: AnyContent) -> None:
        """Put a content into the message, in place of the one with its index."""
        others = [other for other in self.message.content or [] if other.index != content.index]
        # contents without an index come last, in their order
        self.message.content = sorted([*others, content], key=_place)
        self.response_builder.update_message(self.message)

    def get_message_data(self) -> Message:
        """Return the message in its present state."""
        return self.message

    def complete(self) -> Message:
        """Return the completed message."""
        self.message.completed()
        self.response_builder.update_message(self.message)
        return self.message


def _place(content: Content) -> float:
    return float("inf") if content.index is None else content.index


class ResponseBuilder:
    """A builder of a response, message by message."""

    def __init__(self, session_id: str | None = None, response_id: str | None = None) -> None:
        self.session_id = session_id
        self._begin(response_id)

    def _begin(self, response_id: str | None) -> None:
        self.response_id = response_id
        self.created_at = int(time.time())
        self.message_builders: list[MessageBuilder] = []
        self.response = AgentResponse(
            id=response_id, session_id=self.session_id, created_at=self.created_at, output=[]
        )

    def reset(self) -> None:
        """Begin a new response, under a new id, in the same session."""
        self._begin(f"response_{uuid4()}")

    def get_response_data(self) -> AgentResponse:
        """Return the response in its present state."""
        return self.response

    def created(self) -> AgentResponse:
        return self.response.created()

    def in_progress(self) -> AgentResponse:
        return self.response.in_progress()

    def completed(self) -> AgentResponse:
        return self.response.completed()

    def failed(self, code: str, message: str) -> AgentResponse:
        return self.response.failed(Error(code=code, message=message))

    def canceled(self) -> AgentResponse:
        return self.response.canceled()

    def rejected(self) -> AgentResponse:
        return self.response.rejected()

    def create_message_builder(
        self, role: str = "assistant", message_type: str = "message"
    ) -> MessageBuilder:
        """Return a builder of the response's next message."""
        made = MessageBuilder(self, role)
        made.message.type = message_type
        self.message_builders.append(made)
        return made

    def add_message(self, message: Message) -> None:
        """Put a message into the output, in place of the one with its id."""
        output = self._output
        known = next((n for n, other in enumerate(output) if other.id == message.id), None)
        if known is None:
            output.append(message)
        else:
            output[known] = message

    def update_message(self, message: Message) -> None:
        """Replace the message with this id, if there is one."""
        if any(other.id == message.id for other in self._output):
            self.add_message(message)

    @property
    def _output(self) -> list[Message]:
        if self.response.output is None:
            self.response.output = []
        return self.response.output

    def generate_streaming_response(
        self, text_tokens: Iterable[str], role: str = "assistant"
    ) -> Iterator[Event]:
        """Yield a whole text response, event by event, under a new id."""
        self.reset()
        yield self.created()
        yield self.in_progress()
        message = self.create_message_builder(role)
        yield message.get_message_data()
        content = message.create_content_builder()
        for token in text_tokens:
            yield content.add_delta(token)
        yield content.complete()
        yield message.complete()
        yield self.completed()


StreamingResponseBuilder = ResponseBuilder
