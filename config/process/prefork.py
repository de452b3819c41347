"""Processes that are forked from one that has loaded everything, and replaced when they end.

Until a process changes a page of memory it shares it with the others, and none loads anything again: so
they need less memory together, and a process that died has a successor within a moment.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import connection, get_context
from multiprocessing.context import ForkProcess
from typing import Final

import structlog

from config.process import memory

log = structlog.get_logger(__name__)

_END: Final = (signal.SIGTERM, signal.SIGINT)
_SHORTEST_PAUSE_S: Final = 0.1
_LONGEST_PAUSE_S: Final = 30.0
_STEADY_S: Final = 60.0  # a process that has run for this long is replaced without a pause
_PR_SET_PDEATHSIG: Final = 1  # of <sys/prctl.h>


@dataclass(frozen=True, slots=True)
class Part:
    """What one process does until SIGTERM ends it, and its name in the log."""

    name: str
    run: Callable[[], None]


@dataclass(slots=True)
class _Place:
    """A part with its process, or with the time at which it has one again."""

    part: Part
    process: ForkProcess | None = None
    since: float = 0.0
    due: float = 0.0
    pause: float = _SHORTEST_PAUSE_S

    def start(self) -> None:
        """Fork. A signal that comes meanwhile waits until the process obeys it."""
        self.since = time.monotonic()
        self.process = get_context("fork").Process(
            target=_enter, args=(self.part, os.getpid()), name=self.part.name
        )
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _END)
        self.process.start()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        log.info("process started", part=self.part.name, part_pid=self.process.pid)

    def end(self, *, replaced: bool) -> None:
        """Forget the process, which has ended, and set the time of the next one."""
        assert self.process is not None
        self.process.join()
        code, now = self.process.exitcode, time.monotonic()
        self.process = None
        if not replaced:
            return
        steady = now - self.since >= _STEADY_S
        self.pause = _SHORTEST_PAUSE_S if steady else min(2 * self.pause, _LONGEST_PAUSE_S)
        self.due = now if steady else now + self.pause
        log.warning("process ended, starting it again", part=self.part.name, exit_code=code)


def keep_running(parts: Sequence[Part]) -> None:
    """Keep a process of each part running until SIGTERM or SIGINT, then wait for all of them.

    Every such signal is sent on. The caller has loaded what the parts need, and has no thread, loop or
    connection: none works in a child.
    """
    memory.freeze_heap()
    places = [_Place(part) for part in parts]
    with _end_signals() as asked:
        try:
            while not _look(places, asked):
                pass
            while any(place.process for place in places):
                _look(places, asked, stopping=True)
        finally:
            _end_all(places)


def _look(places: Sequence[_Place], asked: socket.socket, *, stopping: bool = False) -> bool:
    """Wait for an end or a signal, and act on it; return whether the signal came."""
    if not stopping:
        for place in places:
            if place.process is None and place.due <= time.monotonic():
                place.start()
    running = {place.process.sentinel: place for place in places if place.process}
    due = [place.due for place in places if place.process is None and not stopping]
    ready = connection.wait([asked, *running], max(0.0, min(due) - time.monotonic()) if due else None)
    signalled = asked in ready
    if signalled:
        asked.recv(1)
        _end_all(places)
    for sentinel in ready:
        if isinstance(sentinel, int):
            running[sentinel].end(replaced=not (stopping or signalled))
    return signalled


def _end_all(places: Sequence[_Place]) -> None:
    for place in places:
        if place.process is not None:
            place.process.terminate()


@contextmanager
def _end_signals() -> Iterator[socket.socket]:
    """Inside the block SIGTERM and SIGINT do nothing but make the socket readable."""
    asked, told = socket.socketpair()
    told.setblocking(False)
    before = {number: signal.signal(number, lambda *_: None) for number in _END}
    wakeup = signal.set_wakeup_fd(told.fileno())
    try:
        yield asked
    finally:
        signal.set_wakeup_fd(wakeup)
        for number, handler in before.items():
            signal.signal(number, handler)
        asked.close()
        told.close()


def _enter(part: Part, parent: int) -> None:
    """Make the forked process one of its own, and run the part."""
    signal.set_wakeup_fd(-1)
    for number in _END:
        signal.signal(number, signal.SIG_DFL)
    os.setsid()  # Ctrl-C reaches the parent alone, which sends it on once
    _end_with(parent)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _END)
    part.run()


def _end_with(parent: int) -> None:
    """Let Linux send SIGTERM when the parent dies."""
    with suppress(AttributeError, OSError):  # other systems lack it
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        sys.exit("the process that starts the others has died")
