"""The point where a run continues, from what its client shows: AG-UI's `messages` is the conversation.

The client's messages are compared with the thread's, run by run. The comparison stops at the first run
that the client shows differently, or not whole: the new run continues the one before that, with the rest
of the shown messages as its own. So an answer that was dropped is made again, and an edited question
begins a branch. Unchanged messages stay the thread's own.

A message of ours counts as shown if it stands under its id, even cut off: clients stop reading. Answers
of tools and of people, and messages of a client without a history of its own, continue at the end.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Final
from uuid import UUID

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agents.requests import Attachment, InputMessage
from conversations.identifiers import find_hex_ids
from conversations.threads.branches import BEGINNING, LEADING, Entry, Turn, count_leading, split_leading

WINDOW: Final = 500  # messages that a snapshot of ours shows at most: more may stand before them
_BLANKS: Final = " \t\r\n"
_SYSTEM: Final = frozenset({"system", "developer"})
_SILENT: Final = frozenset({"reasoning", "activity"})
_OURS: Final = frozenset({"assistant", "tool"}) | _SILENT
_Place = tuple[int, int]


class Continuation(Struct, frozen=True):
    """A point to continue from: the run (None: the newest), and the client's own messages.

    `known_count` is the number of shown messages that stand in the thread.
    """

    continues: UUID | None
    messages: tuple[InputMessage, ...]
    known_count: int = 0


def newest_run(shown: Sequence[InputMessage]) -> UUID | None:
    """Return the newest run of ours that the ids of these messages name."""
    for message in reversed(shown):
        if message.role in _OURS and (found := _runs(message)):
            return UUID(found[0])
    return None


def find_continuation(
    turns: Sequence[Turn], shown: Sequence[InputMessage], *, complete: bool
) -> Continuation:
    """Return where the client of these messages continues in a branch of these turns.

    With `complete` they are the whole conversation (AG-UI 1.0): a missing beginning was removed, and not
    just never loaded.
    """
    count = leading_count(shown)
    leading, messages = shown[:count], shown[count:]
    compared = _Comparison(turns, messages)
    if any(map(compared.place, messages)):
        kept, position = compared.walk(complete=complete)
    elif turns and complete and _asks(messages):
        kept, position = 0, 0
    else:
        return Continuation(None, (*_led(turns, leading), *messages))
    rest = [
        compared.as_stored(one) for one in messages[position:] if not compared.is_repeated(one, kept)
    ]
    led = _led(turns[:kept], leading, removes=complete)
    return Continuation(turns[kept - 1].run_id if kept else BEGINNING, (*led, *rest), position)


def _asks(messages: Sequence[InputMessage]) -> bool:
    """Return whether a person writes something, and does not just answer a waiting agent."""
    return any(one.role == "user" for one in messages) and messages[0].role != "tool"


def leading_count(shown: Sequence[InputMessage]) -> int:
    """Return the number of system messages that lead the conversation."""
    return count_leading(shown, lambda one: one.role in _SYSTEM)


class _Turn(Struct, frozen=True):
    """A run: its input without the messages that lead the conversation, and its output."""

    number: int
    run: str
    live: bool
    inputs: tuple[Entry, ...]
    outputs: tuple[Entry, ...]


def _turn(number: int, turn: Turn) -> _Turn:
    entries = [one for one in turn.entries if one.run_message_id is None and not _mark(one)]
    if number == 0:
        entries = entries[count_leading(entries, lambda one: one.role in _SYSTEM) :]
    inputs = tuple(one for one in entries if one.role not in _SILENT)
    outputs = tuple(one for one in turn.entries if one.run_message_id is not None)
    return _Turn(number, turn.run_id.hex, turn.live, inputs, outputs)


class _Comparison:
    """The comparison of a branch with the messages that its client shows."""

    def __init__(self, turns: Sequence[Turn], shown: Sequence[InputMessage]) -> None:
        self._shown = shown
        self._turns = [_turn(number, turn) for number, turn in enumerate(turns)]
        self._numbers = {turn.run: turn.number for turn in self._turns}
        self._inputs: dict[str, _Place] = {}
        self._answered: dict[str, _Place] = {}
        self._files: dict[str, Entry] = {}
        self._calls: dict[str, list[int]] = {}
        self._clients: set[str] = set()
        for turn in self._turns:
            for place, entry in enumerate(turn.inputs):
                self._know(entry, (turn.number, place))
            for one in turn.outputs:
                self._clients.update(() if one.awaits else _made(one))
                for call in _made(one):
                    self._calls.setdefault(call, []).append(turn.number)
        self._calls_shown = _calls_in(shown)

    def _know(self, entry: Entry, place: _Place) -> None:
        if entry.role == "tool" and entry.call_id:
            self._answered.setdefault(entry.call_id, place)
        for known in filter(None, (entry.id, entry.client_id)):
            self._inputs.setdefault(known, place)
            if entry.files:
                self._files.setdefault(known, entry)

    def place(self, message: InputMessage) -> _Place | None:
        """Return a message's turn and its place in that; None for one that is new here."""
        if message.client_id in self._inputs:
            return self._inputs[message.client_id]
        if message.role == "tool" and message.tool_call_id in self._answered:
            return self._answered[message.tool_call_id]
        numbers = self._turns_of(message)
        return (numbers[0], len(self._turns[numbers[0]].inputs)) if numbers else None

    def _turns_of(self, message: InputMessage) -> list[int]:
        """Return the turns of which the message is an output, by the ids that we gave it."""
        if message.role not in _OURS or message.tool_call_id in self._clients:
            return []
        found = [self._numbers[run] for run in _runs(message) if run in self._numbers]
        for call in message.tool_calls:
            found += self._calls.get(call.id, ())
        return sorted(found)

    def walk(self, *, complete: bool) -> tuple[int, int]:
        """Return how many turns the client shows whole, and where its messages go on behind them."""
        first = next((one for one in self._shown if one.role not in _SILENT), self._shown[0])
        begins = self.place(first)
        if begins is None:
            return 0, 0
        whole = complete and len(self._shown) < WINDOW and _asks(self._shown)
        if begins != (0, 0) and whole:
            return 0, 0
        return self._walk_from(*begins)

    def _walk_from(self, number: int, place: int) -> tuple[int, int]:
        position = begun = 0
        for turn in self._turns[number:]:
            end = self._end(turn, position, turn.inputs[place if turn.number == number else 0 :])
            if end is None:
                return turn.number, position
            begun, position = position, end
        newest = self._turns[-1]
        if newest.live and self._asks_again(newest, position):
            return newest.number, begun
        return len(self._turns), position

    def _asks_again(self, newest: _Turn, position: int) -> bool:
        """Return whether a question is repeated while its answer is still being made."""
        last = self._shown[-1]
        return position == len(self._shown) and any(_is_same(last, entry) for entry in newest.inputs)

    def _end(self, turn: _Turn, position: int, inputs: Sequence[Entry]) -> int | None:
        """Return where the client's messages go on behind this turn; None if it is not shown whole."""
        shown = self._shown
        for entry in inputs:
            while position < len(shown) and self._is_passed_over(shown[position], turn):
                position += 1
            if position == len(shown) or not _is_same(shown[position], entry):
                return None
            position += 1
        end = position
        while end < len(shown) and self._is_of(turn, shown[end]):
            end += 1
        return end if self._is_covered(turn, shown[position:end]) else None

    def _is_of(self, turn: _Turn, message: InputMessage) -> bool:
        """Return whether it is an output of the run, or a silent message that the client sent before."""
        return turn.number in self._turns_of(message) or (
            message.role in _SILENT and message.client_id in self._inputs
        )

    def _is_passed_over(self, message: InputMessage, turn: _Turn) -> bool:
        """Return whether the message is no question: silent, or an earlier run's output, shown late."""
        return message.role in _SILENT or any(
            number < turn.number
            for number in self._turns_of(message)
            if message.client_id not in self._inputs
        )

    def _is_covered(self, turn: _Turn, shown: Sequence[InputMessage]) -> bool:
        """Return whether the run's output is shown to its end, and none of its texts was rewritten."""
        outputs = [entry for entry in turn.outputs if _can_be_shown(entry)]
        if not outputs:
            return True
        texts = [entry for entry in outputs if entry.role == "assistant" and entry.size]
        under = {one.client_id: one for one in shown if one.role == "assistant"}
        for entry in texts:
            found = under.get(f"{entry.run_message_id}-{turn.run}") or under.get(entry.run_message_id)
            if found is not None and not _is_text_of(found.content, entry, texts):
                return False
        if self._shows_call(outputs[-1], turn, shown):
            return True
        return bool(texts) and _is_shown(texts[-1], turn, under)

    def _shows_call(self, entry: Entry, turn: _Turn, shown: Sequence[InputMessage]) -> bool:
        """Return whether a call is shown: by our id for it anywhere, by the model's beside the run."""
        calls = _calls_of(entry)
        ours = {f"{call}-{entry.asked_in or turn.run}" for call in calls}
        return not (ours.isdisjoint(self._calls_shown) and _calls_in(shown).isdisjoint(calls))

    def is_repeated(self, message: InputMessage, kept: int) -> bool:
        """Return whether it adds nothing to so many turns: an output of theirs, or silence of ours."""
        if message.role in _SILENT:
            return bool(self.place(message)) or bool(_runs(message))
        if message.client_id in self._inputs or message.tool_call_id in self._answered:
            return False
        return any(number < kept for number in self._turns_of(message))

    def as_stored(self, message: InputMessage) -> InputMessage:
        """Return the message with its files; a repeated answer of a tool of ours is marked as such."""
        if message.role == "tool" and self._turns_of(message):
            return replace(message, repeats=True)
        return self.with_files(message)

    def with_files(self, message: InputMessage) -> InputMessage:
        """Return the message with those files that the thread has already: their URLs may be old."""
        entry = self._files.get(message.client_id or "")
        if entry is None or not message.uploads:
            return message
        files = _files(entry)
        if _is_same(message, entry):
            return replace(message, uploads=(), attachments=files)
        known = [file for file in files if any(_is_of_url(one.url, file) for one in message.uploads)]
        uploads = [
            one for one in message.uploads if not any(_is_of_url(one.url, file) for file in known)
        ]
        return replace(message, uploads=tuple(uploads), attachments=tuple(known))


def _is_same(message: InputMessage, entry: Entry) -> bool:
    """Return whether a message of the client is the one that it sent before."""
    if message.role != entry.role or message.content.strip(_BLANKS) != entry.text.strip(_BLANKS):
        return False
    if message.role == "tool":
        return message.tool_call_id == entry.call_id
    if message.role in _SYSTEM:
        return True
    files = len(message.uploads) + len(message.attachments)
    return message.client_id in (entry.id, entry.client_id) and files == len(_files(entry))


def _can_be_shown(entry: Entry) -> bool:
    return entry.role == "tool" or (entry.role == "assistant" and bool(_made(entry) or entry.size))


def _made(entry: Entry) -> list[str]:
    """Return the ids of the calls that wait for an answer."""
    calls = entry.calls if isinstance(entry.calls, list) else []
    return [call["id"] for call in calls if isinstance(call, dict) and isinstance(call.get("id"), str)]


def _calls_of(entry: Entry) -> list[str]:
    return [*_made(entry), entry.call_id] if entry.call_id else _made(entry)


def _calls_in(shown: Sequence[InputMessage]) -> set[str]:
    """Return the ids of all calls that are made or answered in these messages."""
    made = (call.id for one in shown for call in one.tool_calls)
    return {*made, *(one.tool_call_id for one in shown if one.tool_call_id)}


def _is_shown(entry: Entry, turn: _Turn, under: dict[str | None, InputMessage]) -> bool:
    """Return whether a text is shown, by its id or within another: some clients join a run's texts."""
    if f"{entry.run_message_id}-{turn.run}" in under or entry.run_message_id in under:
        return True
    return any((entry.tail or "") in one.content for one in under.values())


def _is_text_of(content: str, entry: Entry, texts: Sequence[Entry]) -> bool:
    """Return whether the client's text is ours.

    It is the whole text or its beginning; or the texts of the run in one; or the whole behind the pieces
    that it replaced, as a stream can only add.
    """
    text, size = content.strip(_BLANKS), entry.size
    if len(text) < size:
        return text.startswith((entry.head or "")[: len(text)])
    if len(texts) > 1 and len(text) > size:
        return all((one.tail or "") in text for one in texts)
    before = text[: len(text) - size]
    return (not before or before.endswith("\n\n")) and _md5(text[len(before) :]) == entry.hash


def _md5(text: str) -> str:
    return hashlib.md5(text.encode(errors="replace"), usedforsecurity=False).hexdigest()


def _runs(message: InputMessage) -> list[str]:
    """Return the runs of ours in a message's ids."""
    ids = (
        message.client_id or "",
        message.tool_call_id or "",
        *(call.id for call in message.tool_calls),
    )
    return [run for one in ids for run in find_hex_ids(one)]


def _files(entry: Entry) -> tuple[Attachment, ...]:
    files = [entry.files] if isinstance(entry.files, dict) else entry.files or []
    return tuple(msgspec.convert(file, Attachment) for file in files)


def _is_of_url(url: str, file: Attachment) -> bool:
    return url.partition("?")[0].endswith(f"/{file.bucket}/{file.path}")


def _led(
    kept: Sequence[Turn], leading: Sequence[InputMessage], *, removes: bool = False
) -> Iterator[InputMessage]:
    """Yield the messages that lead from now on, unless they did before; their marks give their place."""
    now = [(message.role, message.content.strip(_BLANKS)) for message in leading]
    if now == [(entry.role, entry.text.strip(_BLANKS)) for entry in _leading(kept)]:
        return
    if not leading and removes:
        yield InputMessage("system", "", metadata={LEADING: 1})
    for number, message in enumerate(leading, 1):
        yield replace(message, metadata=message.metadata | {LEADING: number})


def _leading(kept: Sequence[Turn]) -> list[Entry]:
    """Return the entries that lead after these turns."""
    entries = [entry for turn in kept for entry in turn.entries if entry.run_message_id is None]
    led, rest = split_leading(entries, _mark, lambda entry: entry.role in _SYSTEM)
    first = [] if led else rest[: count_leading(rest, lambda entry: entry.role in _SYSTEM)]
    return [entry for entry in (led or first) if entry.text]


def _mark(entry: Entry) -> int:
    return entry.leading if isinstance(entry.leading, int) else 0
