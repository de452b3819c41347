"""Limits on what one run may write: its answer with its thoughts, its log and its thread's state.

A run that exceeds one fails with a code of its own and keeps what it has written. Without limits a
runaway provider or plugin would fill the memory of whoever reads, folds or settles the run.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from django.conf import settings

from agents.runners.base import RunFailure
from conversations import events
from conversations.events import Fact
from conversations.log.deltas import Deltas
from conversations.thread_state import set_value

_EVENT_BYTES: Final = 64  # the size of an event without its text


class RunSize:
    """The sizes of one run so far, in bytes."""

    __slots__ = ("_answer", "_answer_limit", "_log_limit", "_state", "_state_limit", "log")

    def __init__(self) -> None:
        self.log = 0
        self._answer = 0
        self._state = 0
        # Read once: a look-up in Django's settings for every delta is slow.
        self._log_limit = settings.RUN_LOG_KB * 1024
        self._answer_limit = settings.RUN_ANSWER_KB * 1024
        self._state_limit = settings.STATE_LIMIT_KB * 1024

    def add(self, fact: Fact, *, state: Any) -> None:
        """Count a fact that is about to be logged; `state` is the thread's before it.

        Raise RunFailure `answer_too_large`, `log_too_large` or `state_too_large`.
        """
        if isinstance(fact, events.DELTAS):
            size = _utf8_size(fact.text)
            self._add_answer(size)
        else:
            size = len(msgspec.json.encode(fact))
            if isinstance(fact, events.MessageCompleted) and fact.replaces:
                self._add_answer(size)
            elif isinstance(fact, events.StateUpdated) and fact.scope == "thread":
                self._add_state(fact, size, state)
        self.log += size + _EVENT_BYTES
        if self.log > self._log_limit:
            raise _too_large("log", self._log_limit)

    def add_deltas(self, deltas: Deltas) -> bool:
        """Count deltas that are about to be logged, and return whether they fit; if not, count none."""
        size = _utf8_size(deltas.text)
        answer, log = self._answer + size, self.log + size + len(deltas.texts) * _EVENT_BYTES
        if answer > self._answer_limit or log > self._log_limit:
            return False
        self._answer, self.log = answer, log
        return True

    def _add_answer(self, size: int) -> None:
        self._answer += size
        if self._answer > self._answer_limit:
            raise _too_large("answer", self._answer_limit)

    def _add_state(self, fact: events.StateUpdated, size: int, state: Any) -> None:
        """Measure the whole state only if the additions since the last measurement may exceed it."""
        self._state += size
        if self._state > self._state_limit:
            self._state = len(msgspec.json.encode(set_value(state, fact.key, fact.value)))
            if self._state > self._state_limit:
                raise _too_large("state", self._state_limit)


def _utf8_size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _too_large(name: str, limit: int) -> RunFailure:
    return RunFailure(
        f"{name}_too_large", f"The run was ended: its {name} passed {limit // 1024:,} KiB."
    )
