"""The helper processes that evaluate JSON Schemas, so that no evaluation blocks an event loop.

jsonschema_rs keeps the interpreter's lock while it works, and its work can double with each level of
a schema: only a separate process can be stopped. A process of Parley has at most two helpers for all
of its event loops, each with an operating-system thread that waits for it. A helper starts when it is
needed. It is killed when a question takes too long, and after an idle minute; it ends by itself when
its stdin ends, so it never outlives its parent. It has no environment variables and a memory limit.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Final

import msgspec

from agents.json_schemas import evaluation
from agents.json_schemas.evaluation import Question, Verdict

LIMIT_S: Final = 5.0
IDLE_S: Final = 60.0
_MOST: Final = 2
_TRIES: Final = 2  # the system may kill a helper when memory is short
_decode: Final = msgspec.msgpack.Decoder(Verdict).decode


class Undecided(Exception):
    """There is no verdict; the message has the reason."""


class Helper:
    """One helper process, which answers one question at a time."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", evaluation.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={},
            start_new_session=True,  # Ctrl-C must not reach the helper
        )
        self.retirement: threading.Timer | None = None

    @property
    def pid(self) -> int:
        return self._process.pid

    def evaluate(self, question: bytes) -> bytes:
        """Return the answer; raise EOFError or OSError if the helper has ended or took too long."""
        pipes = self._process
        assert pipes.stdin is not None
        assert pipes.stdout is not None
        limit = _start_timer(LIMIT_S, pipes.kill)
        try:
            evaluation.send(pipes.stdin, question)
            return evaluation.receive(pipes.stdout)
        finally:
            limit.cancel()

    def end(self) -> None:
        """Kill the process and close its pipes."""
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                pipe and pipe.close()
        self._process.wait()


_threads: Final = ThreadPoolExecutor(_MOST, "json-schemas")
_lock: Final = threading.Lock()
_idle: Final[list[Helper]] = []


def evaluate_in_helper(question: Question) -> Future[Verdict]:
    """Let a helper answer; the future raises Undecided if none can within LIMIT_S."""
    return _threads.submit(_evaluate, msgspec.msgpack.encode(question))


def _evaluate(question: bytes) -> Verdict:
    for _ in range(_TRIES):
        started_at = time.monotonic()
        with suppress(EOFError, OSError):
            return _decode(_use_helper(question))
        if time.monotonic() - started_at >= LIMIT_S:
            raise Undecided("its schema takes too long to check")
    raise Undecided("the process that checks it has ended")


def _use_helper(question: bytes) -> bytes:
    helper = _take_idle() or Helper()
    try:
        answer = helper.evaluate(question)
    except BaseException:
        helper.end()
        raise
    _give_back(helper)
    return answer


def _take_idle() -> Helper | None:
    """Return the helper that was used last, or None; helpers that are not needed become idle."""
    with _lock:
        helper = _idle.pop() if _idle else None
    if helper and helper.retirement:
        helper.retirement.cancel()
    return helper


def _give_back(helper: Helper) -> None:
    with _lock:
        _idle.append(helper)
        helper.retirement = _start_timer(IDLE_S, _retire, helper)


def _retire(helper: Helper) -> None:
    with _lock:
        if helper not in _idle:
            return
        _idle.remove(helper)
    helper.end()


def _start_timer(seconds: float, action: object, *arguments: object) -> threading.Timer:
    timer = threading.Timer(seconds, action, arguments)  # type: ignore[arg-type]
    timer.daemon = True  # the timer must not keep the process from ending
    timer.start()
    return timer
