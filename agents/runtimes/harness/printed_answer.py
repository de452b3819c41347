"""One answer of a command-line agent, composed of its output."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

from agents.runners.base import RunFailure
from agents.runtimes.harness.output_lines import (
    OutputItem,
    ProgramDone,
    ProgramFailed,
    ProgramSession,
    TextDelta,
    ToolFinished,
    ToolStarted,
    WholeText,
    parse_line,
)
from conversations import events
from conversations.events import Fact, Problem

_LONGEST: Final = 1024 * 1024
_LONGEST_RESULT: Final = 10_000
_GAP: Final = "\n\n"


class PrintedAnswer:
    """The conversion of a program's output into facts, with one ending; `code` is its exit code."""

    def __init__(self, message_id: str) -> None:
        self.session = ""
        self._message_id = message_id
        self._part = ""
        self._length = 0
        self._gap = False
        self._tools: dict[str, tuple[str, float]] = {}
        self._done: ProgramDone | None = None
        self._error: str | None = None
        self.code = 0

    def add_line(self, line: bytes, *, as_text: bool) -> Iterator[Fact]:
        """Yield the facts of one printed line."""
        if as_text:
            yield from self._add_text(line.decode(errors="replace"))
            return
        for item in parse_line(line):
            yield from self._facts(item)

    @property
    def is_lost(self) -> bool:
        """Return whether the program failed before any output."""
        return self._length == 0 and not self._tools and bool(self.code or self._error is not None)

    def finish(self) -> Iterator[Fact]:
        """Yield the rest and the last fact; raise RunFailure.

        The codes are `harness.failed` and `harness.empty_answer`.
        """
        if self._error is not None or (self.code and self._done is None):
            raise RunFailure("harness.failed", self._failure())
        done = self._done or ProgramDone()
        if self._length == 0:
            yield from self._add_text(done.text)
        if self._length == 0:
            raise RunFailure("harness.empty_answer", "The harness said nothing.")
        usage = events.Usage(input_tokens=done.input_tokens, output_tokens=done.output_tokens)
        yield events.RunCompleted("stop", usage)

    def _failure(self) -> str:
        """Return a message without the program's own words, which may contain anything."""
        return f"The harness failed with code {self.code}." if self.code else "The harness failed."

    def _facts(self, item: OutputItem) -> Iterator[Fact]:
        match item:
            case ProgramSession(session):
                self.session = session
            case TextDelta(text):
                self._part += text
                yield from self._add_text(text)
            case WholeText(text):
                rest = text[len(self._part) :] if text.startswith(self._part) else ""
                self._part = ""
                yield from self._add_text(rest)
                self._gap = True
            case ToolStarted(call, name, parameters) if call not in self._tools:
                self._tools[call] = (name, time.monotonic())
                yield events.ToolCallStarted(call, name, parameters, "plugin")
            case ToolFinished(call, ok, result) if call in self._tools:
                yield self._tool_ended(call, ok, result[:_LONGEST_RESULT])
            case ProgramDone():
                self._done = item
            case ProgramFailed(message):
                self._error = message

    def _tool_ended(self, call: str, ok: bool, result: str) -> Fact:
        name, started_at = self._tools[call]
        elapsed_ms = round((time.monotonic() - started_at) * 1000)
        problem = None if ok else Problem("tool_error", "The harness's tool failed.")
        shown = {"text": result} if ok else None
        return events.ToolCallCompleted(call, name, ok, elapsed_ms, shown, problem)

    def _add_text(self, text: str) -> Iterator[Fact]:
        text = text[: _LONGEST - self._length]
        if not text:
            return
        if self._gap and self._length:
            text = _GAP + text
        self._gap = False
        self._length += len(text)
        yield events.MessageDelta(self._message_id, text)
