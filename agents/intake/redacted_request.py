"""A request as it may be stored: its texts go through the redaction hook, if there is one.

It comes first, so that what is compared with stored messages, hashed, sent to a model and stored is the
same. Ids, names of tools and schemas stay; files are not looked into.
"""

from __future__ import annotations

from msgspec.structs import replace

from agents.requests import InputMessage, RunRequest
from conversations.log.redaction_hook import Redact, find_redact, redact_value


def redact_request(request: RunRequest) -> RunRequest:
    """Return the request with redacted texts. Raise RedactionFailed."""
    redact = find_redact()
    return request if redact is None else _redacted(redact, request)


def _redacted(redact: Redact, request: RunRequest) -> RunRequest:
    return replace(
        request,
        messages=_messages(redact, request.messages),
        shown=_messages(redact, request.shown),
        leading=_messages(redact, request.leading),
        instructions=redact(request.instructions),
        context=tuple(
            replace(item, description=redact(item.description), value=redact(item.value))
            for item in request.context
        ),
        answers=tuple(
            replace(answer, payload=redact_value(redact, answer.payload)) for answer in request.answers
        ),
        prefetch=tuple(
            replace(use, arguments=redact_value(redact, use.arguments)) for use in request.prefetch
        ),
        metadata=redact_value(redact, request.metadata),
        state=redact_value(redact, request.state),
        forwarded_props=redact_value(redact, request.forwarded_props),
        wire=redact_value(redact, request.wire),
        event=request.event and replace(request.event, data=redact_value(redact, request.event.data)),
    )


def _messages(redact: Redact, messages: tuple[InputMessage, ...]) -> tuple[InputMessage, ...]:
    return tuple(_message(redact, message) for message in messages)


def _message(redact: Redact, message: InputMessage) -> InputMessage:
    content = redact(message.content)
    return replace(
        message,
        content=content,
        # the places of files between texts are counted in characters
        layout=message.layout if len(content) == len(message.content) else (),
        error=None if message.error is None else redact(message.error),
        metadata=redact_value(redact, message.metadata),
        tool_calls=tuple(replace(call, arguments=redact(call.arguments)) for call in message.tool_calls),
    )
