"""A watchdog of event loops: it reports code that blocks a loop.

A beat on the loop records the time, and an operating-system thread checks the age of the last beat.
After HELD_S the thread samples the loop's stack until the next beat, which writes one log line. Lines
contain names of code and the ids of run and request, never values (promise P12).

C code may keep the interpreter's lock (regular expressions do), which blocks the watchdog's thread.
Then a timer of processor time interrupts the main thread, whose handler samples first. If the whole
process is stopped, no samples are taken and no processor time passes, and no run is blamed.
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
_REPORT_EVERY_S: Final = 5.0
_STOP_S: Final = 1.0
_OURS: Final = frozenset({"agents", "config", "conversations", "prompts"})
_LOOPS: Final = frozenset({"asyncio.runners", "asyncio.base_events", "asyncio.events"})
_IDS: Final = ("run_id", "request_id")


class Listener(Protocol):
    """The owner of work on a watched loop."""

    def froze(self, run_id: UUID | None, seconds: float) -> None:
        """Handle the end of a hold, on the loop; `run_id` is None if no single run is to blame."""


@dataclass(slots=True)
class Totals:
    """The number and duration of holds of this process's loops since its start."""

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
    """The position of the loop's thread at one moment; a frame is `module:function:line`."""

    frame: str
    innermost: str
    coroutine: str
    ids: tuple[tuple[str, str], ...]

    @property
    def task(self) -> tuple[object, ...]:
        """The identity of the task, equal in all its samples."""
        return self.coroutine, self.ids


@dataclass(frozen=True, slots=True)
class Hold:
    """A period in which a loop was blocked, with the processor time and the samples."""

    seconds: float
    cpu_s: float
    unseen_s: float
    samples: tuple[Sample, ...]

    @property
    def stood_still(self) -> bool:
        """Whether the process was stopped or got no processor time for most of the period."""
        return 2 * self.unseen_s > self.seconds and self.cpu_s < HELD_S

    @property
    def culprit(self) -> Sample | None:
        """The first sample of the task that more than half of the samples show."""
        found = Counter(sample.task for sample in self.samples).most_common(1)
        if not found or found[0][1] * 2 <= len(self.samples):
            return None
        return next(sample for sample in self.samples if sample.task == found[0][0])

    @property
    def run_id(self) -> UUID | None:
        """The run that blocked the loop, if any."""
        culprit = None if self.stood_still else self.culprit
        found = dict(culprit.ids).get("run_id") if culprit else None
        return UUID(found) if found else None

    def report(self, event: str) -> None:
        """Write the log line; without a culprit it contains the number of tasks."""
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
    """A beat of the loop, and the samples until the next one."""

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
        """Return the period between this beat and another one."""
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

    def restart(self) -> None:
        """Restart the measurement, as after a beat."""
        self._last = _Beat()

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
        """Sample and report until the loop beats again."""
        report_s = _REPORT_EVERY_S
        beat.seen_after_s = beat.age_s
        is_late = beat.seen_after_s > 2 * HELD_S
        while self._last is beat:
            held_s = beat.age_s
            if not (is_late and beat.samples):  # the loop may be executing other code by now
                beat.add(_sample(self._loop, sys._current_frames().get(self._thread_id)))
            if held_s >= report_s:
                report_s = held_s + _REPORT_EVERY_S
                beat.hold(_Beat()).report("loop is held")
            if self._stopping.wait(_SAMPLE_S):
                return


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
    """Yield the frames of the loop's thread, innermost first, without this module and the loop's own."""
    while frame is not None and _module(frame) not in _LOOPS:
        if _module(frame) != __name__:
            yield frame
        frame = frame.f_back


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _place(frame: FrameType | None) -> str:
    return f"{_module(frame)}:{frame.f_code.co_qualname}:{frame.f_lineno}" if frame else ""


def _ids(task: asyncio.Task[Any]) -> tuple[tuple[str, str], ...]:
    """Return the ids in the log context of the task."""
    context = _context(task)
    bound = context.copy().run(structlog.contextvars.get_contextvars) if context else {}
    return tuple((name, str(bound[name])) for name in _IDS if name in bound)


def _context(task: asyncio.Task[Any]) -> Context | None:
    """Return the context of a task; in Python 3.11 only the garbage collector exposes it."""
    if sys.version_info >= (3, 12):
        return task.get_context()
    return next((part for part in gc.get_referents(task) if isinstance(part, Context)), None)


_watchdogs: Final[dict[asyncio.AbstractEventLoop, Watchdog]] = {}


@contextmanager
def watch(listener: Listener | None = None) -> Iterator[None]:
    """Watch the running loop inside the block; one watchdog per loop serves all callers."""
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


@contextmanager
def exclude_block() -> Iterator[None]:
    """Do not report that the block holds the running loop."""
    yield
    if found := _watchdogs.get(asyncio.get_running_loop()):
        found.restart()
