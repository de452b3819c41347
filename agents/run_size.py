"""How much one run may write: its answer, thoughts included, its log and its thread's state.

A run that passes one fails with a code of its own and keeps what it has said. Without limits a runaway
provider or plugin would fill the memory of whoever reads, folds or settles the run.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from django.conf import settings

from agents.runners.base import RunFailure
from conversations import events
from conversations.events import Fact
from conversations.state import put

_EVENT_BYTES: Final = 64  # what an event costs besides its text


class RunSize:
    """The sizes of one run so far, in bytes."""

    def __init__(self) -> None:
        self.log = 0
        self._answer = 0
        self._state = 0

    def add(self, fact: Fact, *, state: Any) -> None:
        """Count a fact that is about to be logged; `state` is the thread's before it.

        Raise RunFailure `answer_too_large`, `log_too_large` or `state_too_large`.
        """
        size = events.size_of(fact)
        replaces = isinstance(fact, events.MessageCompleted) and fact.replaces
        if replaces or isinstance(fact, events.MessageDelta | events.ReasoningDelta):
            self._answer += size
            _check("answer", self._answer, settings.RUN_ANSWER_KB)
        elif isinstance(fact, events.StateUpdated) and fact.scope == "thread":
            self._add_state(fact, size, state)
        self.log += size + _EVENT_BYTES
        _check("log", self.log, settings.RUN_LOG_KB)

    def _add_state(self, fact: events.StateUpdated, size: int, state: Any) -> None:
        """Measure the whole state only where what was put into it since may have passed the limit."""
        self._state += size
        if self._state > settings.STATE_LIMIT_KB * 1024:
            self._state = len(msgspec.json.encode(put(state, fact.key, fact.value)))
            _check("state", self._state, settings.STATE_LIMIT_KB)


def _check(name: str, size: int, limit_kb: int) -> None:
    if size > limit_kb * 1024:
        raise RunFailure(f"{name}_too_large", f"The run was ended: its {name} passed {limit_kb:,} KiB.")
