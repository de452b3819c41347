"""A run's time, as spans in lanes and as an SVG: queue, stages, model steps, reasoning, tools, answer.

A model step lasts from its request (the run's work begins, or its tools have answered) to
its last word or call. Everything comes from the run's events; nothing is guessed from our clocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from msgspec import Struct

from conversations import events
from conversations.events import RunEvent

_WIDTH: Final = 1000
_LABELS: Final = 190
_RIGHT: Final = 70
_LANE: Final = 24
_TOP: Final = 30
_MOST: Final = 60
_LONGEST: Final = 26


class Span(Struct, frozen=True):
    """A timed part, in milliseconds from the run's beginning; `kind` is its colour."""

    kind: str
    label: str
    begin: int
    end: int

    @property
    def duration_ms(self) -> int:
        return self.end - self.begin


class RunTime(Struct, frozen=True):
    """The timed parts of a run."""

    spans: tuple[Span, ...]
    total: int
    first_token: int | None = None


def measure_run(run_events: Sequence[RunEvent], *, now_ms: int | None = None) -> RunTime | None:
    """Return the run's spans in the order in which they began; of a live run up to `now_ms`."""
    if not run_events:
        return None
    begun = run_events[0].at
    ended = isinstance(run_events[-1].fact, events.TERMINAL)
    end = run_events[-1].at if ended or now_ms is None else max(now_ms, run_events[-1].at)
    spans = [
        *_queue(run_events, end),
        *_stages(run_events, end),
        *_steps(run_events, end),
        *_words(run_events),
        *_tools(run_events, end),
    ]
    shown = sorted(spans, key=lambda span: (span.begin, -span.end))
    moved = tuple(Span(s.kind, s.label, s.begin - begun, s.end - begun) for s in shown)
    words = (event.at - begun for event in run_events if isinstance(event.fact, events.MessageDelta))
    return RunTime(moved, max(1, end - begun), next(words, None))


def _queue(run_events: Sequence[RunEvent], end: int) -> Iterator[Span]:
    started = next((event.at for event in run_events if isinstance(event.fact, events.RunStarted)), end)
    yield Span("queue", "queue wait", run_events[0].at, started)


def _stages(run_events: Sequence[RunEvent], end: int) -> Iterator[Span]:
    begun: dict[str, int] = {}
    for event in run_events:
        match event.fact:
            case events.StageStarted(stage):
                begun[stage] = event.at
            case events.StageCompleted(stage) if stage in begun:
                yield Span("stage", f"stage {stage}", begun.pop(stage), event.at)
    for stage, at in begun.items():
        yield Span("stage", f"stage {stage}", at, end)


def _steps(run_events: Sequence[RunEvent], end: int) -> Iterator[Span]:
    """Return spans from a model's request to its last word or call before a tool answers or the end."""
    requested_at: int | None = None
    last: int | None = None
    number, routed = 0, False
    for event in run_events:
        match event.fact:
            case events.ModelRouted() if not routed:
                routed, requested_at = True, event.at
            case events.MessageDelta() | events.ReasoningDelta() | events.ToolCallStarted():
                last = event.at if requested_at is not None else None
            case events.ModelCompleted():
                if requested_at is not None:
                    number += 1
                    yield Span("model", f"model step {number}", requested_at, event.at)
                requested_at, last = None, None
            case events.ToolCallCompleted():
                if requested_at is not None and last is not None and last > requested_at:
                    number += 1
                    yield Span("model", f"model step {number}", requested_at, last)
                requested_at, last = (event.at, None) if routed else (None, None)
    if requested_at is not None:
        yield Span("model", f"model step {number + 1}", requested_at, end if last is None else last)


def _words(run_events: Sequence[RunEvent]) -> Iterator[Span]:
    """Return reasoning and answers, each from its first word to its last in one go."""
    current: Span | None = None
    for event in run_events:
        kind = _WORDS.get(type(event.fact))
        if current and kind == current.kind:
            current = Span(kind, kind, current.begin, event.at)
            continue
        if current and (kind or isinstance(event.fact, events.ToolCallStarted)):
            yield current
            current = None
        if kind:
            current = Span(kind, kind, event.at, event.at)
    if current:
        yield current


_WORDS: Final[dict[type, str]] = {events.ReasoningDelta: "reasoning", events.MessageDelta: "answer"}


def _tools(run_events: Sequence[RunEvent], end: int) -> Iterator[Span]:
    begun: dict[str, tuple[str, int]] = {}
    for event in run_events:
        match event.fact:
            case events.ToolCallStarted(call_id, name):
                begun[call_id] = (name, event.at)
            case events.ToolCallCompleted(call_id, name, ok, elapsed_ms):
                _, at = begun.pop(call_id, (name, event.at - elapsed_ms))
                yield Span("tool" if ok else "failed", name, at, event.at)
    for name, at in begun.values():
        yield Span("tool", f"{name} (waits)", at, end)


# --- drawn --------------------------------------------------------------------------------------


def render_svg(time: RunTime | None) -> SafeString | None:
    """Return the spans as bars under each other, each with its time; dashed line at the first token."""
    if time is None:
        return None
    lanes = time.spans[:_MOST]
    quarters = [time.total * quarter // 4 for quarter in range(5)]
    first = time.first_token
    context = {
        "width": _WIDTH,
        "height": _TOP + _LANE * len(lanes) + 8,
        "top": _TOP - 6,
        "axis": [(_x(at, time), format_duration(at)) for at in quarters],
        "bars": [_bar(span, _TOP + _LANE * place, time) for place, span in enumerate(lanes)],
        "first": None if first is None else (_x(first, time), format_duration(first)),
    }
    return render_to_string("admin/conversations/run/timeline.svg", context)


def _x(at: int, time: RunTime) -> float:
    return round(_LABELS + (_WIDTH - _LABELS - _RIGHT) * at / time.total, 1)


def _bar(span: Span, y: int, time: RunTime) -> dict[str, Any]:
    begin, end = _x(span.begin, time), _x(span.end, time)
    return {
        "span": span,
        "label": span.label if len(span.label) <= _LONGEST else span.label[: _LONGEST - 1] + "…",
        "from": format_duration(span.begin),
        "duration": format_duration(span.duration_ms),
        "x": begin,
        "y": y + 1,
        "width": max(2, round(end - begin, 1)),
        "text_x": round(max(end, begin + 2) + 5, 1),
        "text_y": y + 12,
    }


def format_duration(ms: int) -> str:
    """Return milliseconds in a readable unit."""
    if ms < 1_000:
        return f"{ms} ms"
    return f"{ms / 1_000:.2f} s" if ms < 100_000 else f"{ms / 1_000:.0f} s"
