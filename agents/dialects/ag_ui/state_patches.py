"""The thread's shared state as a client keeps it, and its patches (RFC 6902)."""

from __future__ import annotations

from typing import Any, Final

from agents.dialects.ag_ui.event_types import AgUiStateDelta, AgUiStatePatch, AgUiStateSnapshot
from agents.dialects.ag_ui.message_types import AgUiMetadata
from conversations.events import StateUpdated
from conversations.thread_state import set_value_with_op, split_pointer, to_pointer

_FORBIDDEN: Final = frozenset({"__proto__", "constructor", "prototype"})


class SharedState:
    """The thread's state as this run's client has it."""

    def __init__(self) -> None:
        self.value: Any = {}
        self.changed = False

    def update(
        self, updated: StateUpdated, metadata: AgUiMetadata
    ) -> AgUiStateDelta | AgUiStateSnapshot:
        """Return the event that brings the client's state up to date: a patch if it can apply one.

        It cannot if the parent of the value is missing, or its library refuses the name.
        """
        self.value, operation = set_value_with_op(self.value, updated.key, updated.value)
        self.changed = True
        pointer = to_pointer(updated.key) if updated.key else ""
        if operation is None or _FORBIDDEN.intersection(split_pointer(pointer)):
            return AgUiStateSnapshot(metadata, self.value)
        return AgUiStateDelta(metadata, [AgUiStatePatch(operation, pointer, updated.value)])
