"""Watch event loops: name what holds one for long, and let its owner act while it is held.

A beat on the loop notes the time; a thread looks how old the last beat is. From HELD_S on the thread
samples what the loop's thread executes, until the loop beats again and writes one line of it. Lines hold
names of code and the ids of run and request, never a value (promise P12).

Code in C may keep the interpreter's lock (a regular expression does), so that the thread cannot look.
Then a timer of processor time interrupts the main thread, where the handler samples before anything else
is executed. A process that is stopped stops its watchdog too: nobody looks and no processor time passes,
and no run is to blame.
"""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import Context
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Final, Protocol
from uuid import UUID

import structlog

logger = structlog.get_logger(__name__)

HELD_S: Final = 0.25
_BEAT_S: Final = 0.1
_SAMPLE_S: Final = 0.05
_SAMPLES: Final = 100
_ACT_FROM_S: Final = 2.0
_ACT_EVERY_S: Final = 1.0
_REPORT_EVERY_S: Final = 5.0
_STOP_S: Final = 1.0
_OURS: Final = frozenset({"agents", "config", "conversations", "prompts"})
_LOOPS: Final = frozenset({"asyncio.runners", "asyncio.base_events", "asyncio.events"})
_IDS: Final = ("run_id", "request_id")


class Listener(Protocol):
    """The owner of work on a watched loop."""

    def on_held(self, seconds: float) -> None:
        """Act in the loop's stead; called by the watchdog's thread every second of a long hold."""

    def froze(self, run_id: UUID | None, seconds: float) -> None:
        """Take note of a hold when it is over; called on the loop. None if no one run is to blame."""


@dataclass(slots=True)
class Totals:
    """How often and how long this process's loops were held since it started."""

    times: int = 0
    seconds: float = 0.0
    longest: float = 0.0

    def add(self, seconds: float) -> None:
        self.times += 1
        self.seconds += seconds
        self.longest = max(self.longest, seconds)


totals: Final = Totals()


@dataclass(frozen=True, slots=True)
class Sample:
    """What the loop's thread executed at one moment; a frame is `module:function:line`."""

    frame: str
    innermost: str
    coroutine: str
    ids: tuple[tuple[str, str], ...]

    @property
    def task(self) -> tuple[object, ...]:
        """What samples of one task have in common."""
        return self.coroutine, self.ids


@dataclass(frozen=True, slots=True)
class Hold:
    """A time in which a loop did not move: what the process computed and what the thread saw."""

    seconds: float
    cpu_s: float
    unseen_s: float
    samples: tuple[Sample, ...]

    @property
    def stood_still(self) -> bool:
        """Whether the process was stopped, or got no processor, most of the time."""
        return 2 * self.unseen_s > self.seconds and self.cpu_s < HELD_S

    @property
    def culprit(self) -> Sample | None:
        """The first sample of the task that more than half of the samples found."""
        found = Counter(sample.task for sample in self.samples).most_common(1)
        if not found or found[0][1] * 2 <= len(self.samples):
            return None
        return next(sample for sample in self.samples if sample.task == found[0][0])

    @property
    def run_id(self) -> UUID | None:
        """The run that held the loop, if one did."""
        culprit = None if self.stood_still else self.culprit
        found = dict(culprit.ids).get("run_id") if culprit else None
        return UUID(found) if found else None

    def report(self, event: str) -> None:
        """Write the log line; without a culprit it has the number of tasks that were seen."""
        culprit = self.culprit
        seen: dict[str, object] = {"tasks": len({sample.task for sample in self.samples})}
        if culprit is not None:
            seen = {name: getattr(culprit, name) for name in ("frame", "innermost", "coroutine")}
            seen |= culprit.ids
        logger.warning(
            "process stood still" if self.stood_still else event,
            seconds=round(self.seconds, 3),
            cpu_seconds=round(self.cpu_s, 3),
            **seen,
        )


@dataclass(slots=True)
class _Beat:
    """A sign of life of the loop, and what the thread sees from then until the next one."""

    at: float = field(default_factory=time.monotonic)
    cpu_s: float = field(default_factory=time.process_time)
    seen_after_s: float | None = None
    samples: list[Sample] = field(default_factory=list)

    @property
    def age_s(self) -> float:
        return time.monotonic() - self.at

    def add(self, sample: Sample) -> None:
        if len(self.samples) < _SAMPLES:
            self.samples.append(sample)

    def hold(self, until: _Beat) -> Hold:
        """What there was between this beat and another one."""
        seconds = until.at - self.at
        unseen_s = seconds if self.seen_after_s is None else self.seen_after_s - HELD_S
        return Hold(seconds, until.cpu_s - self.cpu_s, unseen_s, tuple(self.samples))


class Watchdog:
    """Watches the running loop until `stop`."""

    def __init__(self) -> None:
        self.listeners: list[Listener | None] = []
        self._loop = asyncio.get_running_loop()
        self._thread_id = threading.get_ident()
        self._last = _Beat()
        self._timer = self._loop.call_later(_BEAT_S, self._beat)
        self._interrupts = threading.current_thread() is threading.main_thread()
        if self._interrupts:
            signal.signal(signal.SIGVTALRM, self._interrupt)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True, name="watchdog")
        self._thread.start()

    def stop(self) -> None:
        self._timer.cancel()
        if self._interrupts:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            signal.signal(signal.SIGVTALRM, signal.SIG_DFL)
        self._stopping.set()
        self._thread.join(_STOP_S)

    def _beat(self) -> None:
        if self._interrupts:
            signal.setitimer(signal.ITIMER_VIRTUAL, HELD_S, _SAMPLE_S)
        before, self._last = self._last, _Beat()
        self._timer = self._loop.call_later(_BEAT_S, self._beat)
        if self._last.at - before.at >= HELD_S:
            self._end(before.hold(self._last))

    def _end(self, hold: Hold) -> None:
        totals.add(hold.seconds)
        hold.report("loop held")
        for listener in self.listeners:
            if listener is not None:
                listener.froze(hold.run_id, hold.seconds)

    def _interrupt(self, _signal: int, frame: FrameType | None) -> None:
        if self._last.age_s >= HELD_S:
            self._last.add(_sample(self._loop, frame))

    def _watch(self) -> None:
        while not self._stopping.wait(HELD_S - self._last.age_s):
            beat = self._last
            if beat.age_s >= HELD_S:
                self._observe(beat)

    def _observe(self, beat: _Beat) -> None:
        """Sample, act and report until the loop beats again."""
        act_s, report_s = _ACT_FROM_S, _REPORT_EVERY_S
        beat.seen_after_s = beat.age_s
        is_late = beat.seen_after_s > 2 * HELD_S
        while self._last is beat:
            held_s = beat.age_s
            if not (is_late and beat.samples):  # by now the loop may be at something else
                beat.add(_sample(self._loop, sys._current_frames().get(self._thread_id)))
            if held_s >= act_s:
                act_s = held_s + _ACT_EVERY_S
                self._act(held_s)
            if held_s >= report_s:
                report_s = held_s + _REPORT_EVERY_S
                beat.hold(_Beat()).report("loop is held")
            if self._stopping.wait(_SAMPLE_S):
                return

    def _act(self, held_s: float) -> None:
        for listener in tuple(self.listeners):
            try:
                if listener is not None:
                    listener.on_held(held_s)
            except Exception as error:  # the next second brings the next try
                logger.warning("acting for a held loop failed", error=type(error).__name__)


def _sample(loop: asyncio.AbstractEventLoop, innermost: FrameType | None) -> Sample:
    frames = list(_frames(innermost))
    task = asyncio.current_task(loop)
    ours = next((frame for frame in frames if _module(frame).partition(".")[0] in _OURS), None)
    return Sample(
        frame=_place(ours),
        innermost=_place(frames[0] if frames else None),
        coroutine=getattr(task.get_coro(), "__qualname__", "") if task else "",
        ids=_ids(task) if task else (),
    )


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    """What the loop executes, innermost first, without this module and what runs the loop itself."""
    while frame is not None and _module(frame) not in _LOOPS:
        if _module(frame) != __name__:
            yield frame
        frame = frame.f_back


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _place(frame: FrameType | None) -> str:
    return f"{_module(frame)}:{frame.f_code.co_qualname}:{frame.f_lineno}" if frame else ""


def _ids(task: asyncio.Task[Any]) -> tuple[tuple[str, str], ...]:
    """The ids that the task's own log lines have."""
    context = _context(task)
    bound = context.copy().run(structlog.contextvars.get_contextvars) if context else {}
    return tuple((name, str(bound[name])) for name in _IDS if name in bound)


def _context(task: asyncio.Task[Any]) -> Context | None:
    """The context of a task; Python 3.11 shows it to the garbage collector only, as its first part."""
    if sys.version_info >= (3, 12):
        return task.get_context()
    return next((part for part in gc.get_referents(task) if isinstance(part, Context)), None)


_watchdogs: Final[dict[asyncio.AbstractEventLoop, Watchdog]] = {}


@contextmanager
def watching(listener: Listener | None = None) -> Iterator[None]:
    """Watch the running loop inside the block; one watchdog serves all who ask for it."""
    loop = asyncio.get_running_loop()
    found = _watchdogs.get(loop)
    if found is None:
        found = _watchdogs[loop] = Watchdog()
    found.listeners.append(listener)
    try:
        yield
    finally:
        found.listeners.remove(listener)
        if not found.listeners:
            del _watchdogs[loop]
            found.stop()
