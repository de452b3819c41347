"""What a provider sends, in the words of each of the four wires: pieces that attacks are made of."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final, Protocol

Raw = bytes
"""JSON as it goes out: so a text may be what no JSON text is."""


def text(value: str) -> Raw:
    """A JSON string in ASCII: half a surrogate stays what it is."""
    return json.dumps(value).encode()


def event(raw: Raw) -> bytes:
    return b"data: " + raw + b"\n\n"


class Dialect(Protocol):
    """One wire's events. Each argument is JSON that is put in as it is."""

    @property
    def name(self) -> str: ...

    def begin(self) -> bytes: ...

    def said(self, words: Raw) -> bytes: ...

    def thought(self, words: Raw) -> bytes: ...

    def called(self, place: Raw, name: Raw, arguments: Raw) -> bytes: ...

    def end(self, reason: Raw, count: Raw) -> bytes: ...

    def failed(self, message: Raw) -> bytes: ...


@dataclass(frozen=True)
class Chat:
    """openai.chat_completions."""

    name: str = "openai.chat_completions"

    def begin(self) -> bytes:
        return b""

    def said(self, words: Raw) -> bytes:
        return event(b'{"choices":[{"delta":{"content":%b}}]}' % words)

    def thought(self, words: Raw) -> bytes:
        return event(b'{"choices":[{"delta":{"reasoning_content":%b}}]}' % words)

    def called(self, place: Raw, name: Raw, arguments: Raw) -> bytes:
        function = b'{"name":%b,"arguments":%b}' % (name, arguments)
        call = b'{"index":%b,"id":"c%b","function":%b}' % (place, place[:20], function)
        return event(b'{"choices":[{"delta":{"tool_calls":[%b]}}]}' % call)

    def end(self, reason: Raw, count: Raw) -> bytes:
        usage = b'{"prompt_tokens":%b,"completion_tokens":%b,"total_tokens":%b}' % (count, count, count)
        told = b'{"choices":[{"delta":{},"finish_reason":%b}],"usage":%b}' % (reason, usage)
        return event(told) + event(b"[DONE]")

    def failed(self, message: Raw) -> bytes:
        return event(b'{"error":{"message":%b,"type":%b,"code":%b}}' % (message, message, message))


@dataclass(frozen=True)
class Responses:
    """openai.responses."""

    name: str = "openai.responses"

    def begin(self) -> bytes:
        return event(b'{"type":"response.created","response":{"status":"in_progress"}}')

    def said(self, words: Raw) -> bytes:
        return event(b'{"type":"response.output_text.delta","delta":%b,"output_index":0}' % words)

    def thought(self, words: Raw) -> bytes:
        return event(
            b'{"type":"response.reasoning_summary_text.delta","delta":%b,"output_index":0}' % words
        )

    def called(self, place: Raw, name: Raw, arguments: Raw) -> bytes:
        item = b'{"type":"function_call","id":"f%b","call_id":"c%b","name":%b,"arguments":""}' % (
            place[:20],
            place[:20],
            name,
        )
        added = b'{"type":"response.output_item.added","output_index":%b,"item":%b}' % (place, item)
        more = b'{"type":"response.function_call_arguments.delta","output_index":%b,"delta":%b}'
        return event(added) + event(more % (place, arguments))

    def end(self, reason: Raw, count: Raw) -> bytes:
        usage = b'{"input_tokens":%b,"output_tokens":%b,"total_tokens":%b}' % (count, count, count)
        response = b'{"status":"completed","incomplete_details":{"reason":%b},"usage":%b}'
        return event(b'{"type":"response.completed","response":%b}' % (response % (reason, usage)))

    def failed(self, message: Raw) -> bytes:
        error = b'{"status":"failed","error":{"code":%b,"message":%b}}' % (message, message)
        return event(b'{"type":"response.failed","response":%b}' % error)


@dataclass(frozen=True)
class Messages:
    """anthropic.messages."""

    name: str = "anthropic.messages"

    def begin(self) -> bytes:
        return event(b'{"type":"message_start","message":{"usage":{"input_tokens":1}}}')

    def said(self, words: Raw) -> bytes:
        return self._delta(b"0", b"text", words)

    def thought(self, words: Raw) -> bytes:
        return self._delta(b"1", b"thinking", words)

    def called(self, place: Raw, name: Raw, arguments: Raw) -> bytes:
        block = b'{"type":"tool_use","id":"c%b","name":%b,"input":{}}' % (place[:20], name)
        start = b'{"type":"content_block_start","index":%b,"content_block":%b}' % (place, block)
        return event(start) + self._delta(place, b"partial_json", arguments)

    def end(self, reason: Raw, count: Raw) -> bytes:
        told = b'{"type":"message_delta","delta":{"stop_reason":%b},"usage":{"output_tokens":%b}}'
        return event(told % (reason, count)) + event(b'{"type":"message_stop"}')

    def failed(self, message: Raw) -> bytes:
        return event(b'{"type":"error","error":{"type":%b,"message":%b}}' % (message, message))

    def _delta(self, place: Raw, field: bytes, words: Raw) -> bytes:
        delta = b'{"type":"%b_delta","%b":%b}' % (field, field, words)
        return event(b'{"type":"content_block_delta","index":%b,"delta":%b}' % (place, delta))


@dataclass(frozen=True)
class Gemini:
    """gemini.generate_content."""

    name: str = "gemini.generate_content"

    def begin(self) -> bytes:
        return b""

    def said(self, words: Raw) -> bytes:
        return self._part(b'{"text":%b}' % words)

    def thought(self, words: Raw) -> bytes:
        return self._part(b'{"text":%b,"thought":true}' % words)

    def called(self, place: Raw, name: Raw, arguments: Raw) -> bytes:
        """Arguments of this wire are an object: a text stands in one."""
        return self._part(
            b'{"functionCall":{"id":"c%b","name":%b,"args":{"a":%b}}}' % (place[:20], name, arguments)
        )

    def end(self, reason: Raw, count: Raw) -> bytes:
        usage = b'{"promptTokenCount":%b,"candidatesTokenCount":%b,"totalTokenCount":%b}' % (
            count,
            count,
            count,
        )
        candidate = b'{"content":{"parts":[]},"finishReason":%b}' % reason
        return event(b'{"candidates":[%b],"usageMetadata":%b}' % (candidate, usage))

    def failed(self, message: Raw) -> bytes:
        return event(b'{"error":{"code":418,"message":%b,"status":%b}}' % (message, message))

    def _part(self, part: Raw) -> bytes:
        return event(b'{"candidates":[{"content":{"role":"model","parts":[%b]}}]}' % part)


DIALECTS: Final[dict[str, Any]] = {
    "chat": Chat(),
    "responses": Responses(),
    "anthropic": Messages(),
    "gemini": Gemini(),
}
"""By a short name that stands in a model's."""
REASONS: Final = {"chat": "stop", "responses": "", "anthropic": "end_turn", "gemini": "STOP"}
