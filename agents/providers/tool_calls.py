"""Tool calls, put together from their pieces, which may interleave."""

from __future__ import annotations

from secrets import token_hex
from typing import Final

from msgspec import Struct

from agents.providers.base import ToolCall
from agents.providers.refusals import invalid_response_error
from agents.providers.tool_names import ToolNames

MADE: Final = "call_made_"  # the beginning of our own ids, for providers that send none
_MOST_CALLS: Final = 256
_LONGEST_NAME: Final = 128
_MOST_CHARACTERS: Final = 8 * 1024 * 1024


class _Call(Struct):
    """A tool call so far."""

    id: str
    name: str
    pieces: list[str]


class CallAssembler:
    """The calls of one answer, by their place on the wire."""

    def __init__(self, names: ToolNames) -> None:
        self.mark = token_hex(8)  # our own ids must differ from step to step of a run
        self._names = names
        self._all: list[_Call] = []
        self._open: dict[int, _Call] = {}
        self._characters = 0

    def begin(self, place: int, *, id: str | None, name: str | None = None) -> None:  # noqa: A002
        """Begin a call, unless the call open at this place has this id: some wires repeat it."""
        call = self._open.get(place)
        if call is None or (id and id != call.id):
            if len(self._all) == _MOST_CALLS:
                raise invalid_response_error()
            call = self._open[place] = _Call(id or f"{MADE}{self.mark}_{len(self._all)}", "", [])
            self._all.append(call)
        if name:
            call.name = self._names.from_provider(name[:_LONGEST_NAME])

    def add(self, place: int, arguments: str) -> None:
        """Add a piece to the arguments of the call open at this place."""
        self._characters += len(arguments)
        if self._characters > _MOST_CHARACTERS:
            raise invalid_response_error()
        if call := self._open.get(place):
            call.pieces.append(arguments)

    def set_arguments(self, place: int, arguments: str) -> None:
        """Set the whole arguments of the call open at this place."""
        if (call := self._open.get(place)) and arguments:
            call.pieces = []
            self.add(place, arguments)

    def id_at(self, place: int) -> str:
        """Return the id of the call open at this place."""
        return self._open[place].id

    def assembled(self) -> tuple[ToolCall, ...]:
        """Return all calls that have a name."""
        return tuple(
            ToolCall(call.id, call.name, "".join(call.pieces) or "{}") for call in self._all if call.name
        )
