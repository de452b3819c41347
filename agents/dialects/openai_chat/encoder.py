"""A run as the chunks of OpenAI's Chat Completions stream, or as one completion.

All text of the assistant is one text here, its messages a blank line apart. Calls of the server's own
tools are not shown; a client's own are `tool_calls`. The last chunk of an answer has the name `done`,
after which OpenAI's addresses send `[DONE]`; a run that fails ends with an `error` instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from agents.dialects import steps
from agents.dialects.artifact_links import UrlCitation, files_of
from agents.dialects.base import Encoder, Frame, RunHead
from agents.dialects.openai_chat import objects
from agents.dialects.openai_chat.objects import (
    CompletionAnnotation,
    CompletionDelta,
    CompletionDeltaFunction,
    CompletionDeltaToolCall,
)
from agents.dialects.step_order import StepOrder
from agents.dialects.steps import Item
from agents.dialects.wire import encode_json, template
from config import errors
from config.errors import ParleyError, Unavailable
from conversations import events
from conversations.events import MessageDelta, RunEvent

DONE: Final = "done"
_GAP: Final = "\n\n"


class CompletionEncoder(Encoder):
    """One reader's view of one run."""

    def __init__(self, head: RunHead) -> None:
        self._head = head
        self._order = StepOrder(head.run_id.hex)
        self._text, self._thoughts = _Voice(objects.CONTENT), _Voice(objects.REASONING)
        self._calls: list[steps.ToolCalled] = []
        self._cited: list[CompletionAnnotation] = []
        self._terminal: events.Terminal | None = None
        self._usage = events.Usage()
        self._begun = False
        self._made: list[bytes] = []
        self._counts = head.wire.get("usage") is True
        self._chunk = objects.chunk(head, counts=self._counts)
        self._form = template(self._chunk, b'"delta":{}', b'"finish_reason":null')

    def feed(self, event: RunEvent) -> Sequence[Frame]:
        """Return the chunks of the next event; none after the last."""
        fact = event.fact
        if type(fact) is MessageDelta:
            item = self._order.open_message(fact.message_id)
            if item is not None:
                return (self._delta(item, fact.text, event.seq),) if fact.text else ()
        if self._terminal is None and isinstance(fact, events.RunCompleted | events.RunFailed):
            self._terminal = fact
        taken = self._order.take(fact)
        for step in taken:
            self._render(step)
        if isinstance(fact, events.MessageCompleted) and fact.replaces and not (taken or self.ended):
            self._say(self._text, f"{_GAP}{fact.message.content}")  # the streamed text stays
        made, self._made = self._made, []
        return self._frames(made, event.seq)

    @property
    def ended(self) -> bool:
        """Whether the run's last event has been fed."""
        return self._terminal is not None

    @property
    def failure(self) -> ParleyError | None:
        """The reason why there is no answer: the run failed, or it has not ended yet."""
        if isinstance(self._terminal, events.RunFailed):
            return objects.failure(self._terminal)
        return None if self.ended else Unavailable("The run has not ended yet.", retry_after=1)

    @property
    def may_retry(self) -> bool:
        """Whether the same request may succeed although this run failed."""
        return not isinstance(self._terminal, events.RunFailed) or self._terminal.retryable

    def answer(self) -> bytes:
        """Return the completion, or OpenAI's error body if there is none."""
        if self.failure is not None:
            body = errors.body(self.failure, errors.OPENAI_PATHS[0])
            return encode_json(body | {"request_id": self._head.request_id})
        refused = self._reason == "refusal"
        message = objects.message(
            self._content(), self._thoughts.whole, self._calls, self._cited, refused=refused
        )
        finished = "stop" if refused else self._finished
        return encode_json(objects.completion(self._head, message, finished, self._usage))

    def _content(self) -> str | None:
        """Return the text; if a form was requested, the last message, which was checked against it."""
        text = self._text.last if self._head.wire.get("form") else self._text.whole
        return text or (None if self._calls else "")

    @property
    def _reason(self) -> str:
        terminal = self._terminal
        return terminal.finish_reason if isinstance(terminal, events.RunCompleted) else ""

    @property
    def _finished(self) -> objects.FinishReason:
        return objects.finish_reason(self._reason, calls=bool(self._calls))

    def _delta(self, item: Item, text: str, seq: int) -> Frame:
        """Return a delta, on the hot path: templates take its text, since most frames are deltas."""
        item.add(text)
        return Frame("", self._choice(self._text.delta(text)), seq)

    def _render(self, step: steps.Step) -> None:
        match step:
            case steps.Opened(item) if item.role == "assistant":
                self._voice(item).open(item)
            case steps.TextAdded(item, text) if item.role == "assistant":
                self._say(self._voice(item), text)
            case steps.Closed(item) if files := files_of(item):
                self._cite(files)
            case steps.FileMade(artifact):
                self._cite([artifact])
            case steps.ToolCalled() as call if call.kind == "frontend":
                self._call(call)
            case steps.ApprovalRequested(asked_id, name):
                item = Item(asked_id, "assistant")
                item.add(f"[{name or 'A tool'} waits for an approval.]")  # the wire has no form for it
                self._text.open(item)
                self._say(self._text, item.text)
            case steps.Ended(_, usage):
                self._end(usage)

    def _voice(self, item: Item) -> _Voice:
        return self._thoughts if item.is_reasoning else self._text

    def _say(self, voice: _Voice, text: str) -> None:
        self._begin("" if voice is self._text else None)
        self._made.append(self._choice(voice.delta(text)))

    def _cite(self, files: Sequence[events.ArtifactCreated | events.MessageContent]) -> None:
        """Name files at the end of the text so far."""
        self._begin("")
        at = len(self._content() or "")
        cited = [CompletionAnnotation(UrlCitation.of(one, at=at)) for one in files]
        self._cited += cited
        self._put(CompletionDelta(annotations=cited))

    def _call(self, call: steps.ToolCalled) -> None:
        """Send a call in OpenAI's form: its name first, then its arguments."""
        self._begin(None)
        index = len(self._calls)
        self._calls.append(call)
        named = CompletionDeltaFunction(name=call.name, arguments="")
        begun = CompletionDeltaToolCall(index=index, id=call.call_id, type="function", function=named)
        rest = CompletionDeltaFunction(arguments=call.arguments)
        self._put(CompletionDelta(tool_calls=[begun]))
        self._put(CompletionDelta(tool_calls=[CompletionDeltaToolCall(index=index, function=rest)]))

    def _begin(self, content: str | None) -> None:
        """Send the first chunk, which names the role."""
        if not self._begun:
            self._begun = True
            self._put(CompletionDelta(role="assistant", content=content, refusal=None))

    def _end(self, usage: events.Usage) -> None:
        self._usage = usage
        if self.failure is not None:
            error = objects.CompletionError(**errors.openai_error(self.failure))
            self._made.append(encode_json(objects.CompletionFailed(error)))
            return
        self._begin("")
        self._made.append(self._choice(b"{}", finished=encode_json(self._finished)))
        if self._counts:
            counted = replace(self._chunk, choices=[], usage=objects.usage_counts(usage))
            self._made.append(encode_json(counted))

    # out

    def _put(self, delta: CompletionDelta) -> None:
        self._made.append(self._choice(encode_json(delta)))

    def _choice(self, delta: bytes, *, finished: bytes = b"null") -> bytes:
        return self._form % (delta, finished)

    def _frames(self, made: list[bytes], seq: int) -> list[Frame]:
        """Return the event's chunks; the last has its place, and the name of a complete answer."""
        if not made:
            return []
        answered = self.ended and self.failure is None
        last = Frame(DONE if answered else "", made[-1], seq)
        return [*(Frame("", data) for data in made[:-1]), last]


class _Voice:
    """The text of one field: the texts of several items, as one."""

    def __init__(self, form: bytes) -> None:
        self._form = form
        self._items: list[Item] = []
        self._gap = ""
        self._spoken = False

    def open(self, item: Item) -> None:
        self._items.append(item)
        self._gap = _GAP if self._spoken else ""

    def delta(self, text: str) -> bytes:
        """Return the delta of a text: after a blank line if a new item begins with it."""
        gap, self._gap, self._spoken = self._gap, "", True
        return self._form % encode_json(gap + text)

    @property
    def whole(self) -> str:
        return _GAP.join(text for item in self._items if (text := item.text))

    @property
    def last(self) -> str:
        return next((text for item in reversed(self._items) if (text := item.text)), "")
