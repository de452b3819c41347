"""Where a run goes on, from what its client shows: AG-UI's `messages` is the conversation as it is.

The client's messages are compared with the thread's, a run at a time. The first run that it shows
otherwise, or not whole, is left: the new run goes on from the one before that, with the rest of what is
shown as its own messages. So an answer that was dropped is made anew, and an edited question begins a
branch. What has not changed stays the thread's own.

What we said counts as shown where it stands under its id, though cut off: clients stop reading. Answers
of tools and of people, and what a client sends that keeps no history of its own, go on at the end.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import Final
from uuid import UUID

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agents.requests import Attachment, InputMessage
from conversations.threads.branches import BEGINNING, LEADING, Entry, Turn, count_leading, leading_first

WINDOW: Final = 500  # messages that a snapshot of ours shows at most: more may stand before them
_RUN: Final = re.compile(r"(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])")
_BLANKS: Final = " \t\r\n"
_SYSTEM: Final = frozenset({"system", "developer"})
_SILENT: Final = frozenset({"reasoning", "activity"})
_OURS: Final = frozenset({"assistant", "tool"}) | _SILENT
_Place = tuple[int, int]


class Going(Struct, frozen=True):
    """How a run goes on: after which run (None: the newest), with which of the client's messages.

    `told` is how many of those that are shown stand in the thread.
    """

    continues: UUID | None
    messages: tuple[InputMessage, ...]
    told: int = 0


def newest_run(shown: Sequence[InputMessage]) -> UUID | None:
    """The run of ours that the newest of these messages names."""
    for said in reversed(shown):
        if said.role in _OURS and (found := _runs(said)):
            return UUID(found[0])
    return None


def go_on(turns: Sequence[Turn], shown: Sequence[InputMessage], *, complete: bool) -> Going:
    """Where the client of these messages goes on in a branch of these turns.

    With `complete` they are the whole conversation (AG-UI 1.0): what is missing at its beginning was
    taken away, and not just never loaded.
    """
    count = leading_count(shown)
    leading, said = shown[:count], shown[count:]
    compared = _Comparison(turns, said)
    if any(map(compared.place, said)):
        kept, position = compared.walk(complete=complete)
    elif turns and complete and _asks(said):
        kept, position = 0, 0
    else:
        return Going(None, (*_led(turns, leading), *said))
    rest = [compared.as_stored(one) for one in said[position:] if not compared.has_told(one, kept)]
    led = _led(turns[:kept], leading, removes=complete)
    return Going(turns[kept - 1].run_id if kept else BEGINNING, (*led, *rest), position)


def _asks(said: Sequence[InputMessage]) -> bool:
    """Whether somebody says something, and not just answers what an agent waits for."""
    return any(one.role == "user" for one in said) and said[0].role != "tool"


def leading_count(shown: Sequence[InputMessage]) -> int:
    """How many system messages lead the conversation."""
    return count_leading(shown, lambda one: one.role in _SYSTEM)


class _Turn(Struct, frozen=True):
    """A run: what it was asked with, but for what leads the conversation, and what it said."""

    number: int
    run: str
    live: bool
    asked: tuple[Entry, ...]
    told: tuple[Entry, ...]


def _turn(number: int, turn: Turn) -> _Turn:
    given = [one for one in turn.entries if one.said is None and not _mark(one)]
    if number == 0:
        given = given[count_leading(given, lambda one: one.role in _SYSTEM) :]
    asked = tuple(one for one in given if one.role not in _SILENT)
    told = tuple(one for one in turn.entries if one.said is not None)
    return _Turn(number, turn.run_id.hex, turn.live, asked, told)


class _Comparison:
    """A branch beside what its client shows of it."""

    def __init__(self, turns: Sequence[Turn], said: Sequence[InputMessage]) -> None:
        self._said = said
        self._turns = [_turn(number, turn) for number, turn in enumerate(turns)]
        self._numbers = {turn.run: turn.number for turn in self._turns}
        self._asked: dict[str, _Place] = {}
        self._answered: dict[str, _Place] = {}
        self._files: dict[str, Entry] = {}
        self._calls: dict[str, list[int]] = {}
        self._clients: set[str] = set()
        for turn in self._turns:
            for place, entry in enumerate(turn.asked):
                self._know(entry, (turn.number, place))
            for one in turn.told:
                self._clients.update(() if one.awaits else _made(one))
                for call in _made(one):
                    self._calls.setdefault(call, []).append(turn.number)
        self._calls_shown = _calls_in(said)

    def _know(self, entry: Entry, place: _Place) -> None:
        if entry.role == "tool" and entry.call_id:
            self._answered.setdefault(entry.call_id, place)
        for known in filter(None, (entry.id, entry.client_id)):
            self._asked.setdefault(known, place)
            if entry.files:
                self._files.setdefault(known, entry)

    def place(self, said: InputMessage) -> _Place | None:
        """The turn that a message belongs to, and its place in that; None for one that is new here."""
        if said.client_id in self._asked:
            return self._asked[said.client_id]
        if said.role == "tool" and said.tool_call_id in self._answered:
            return self._answered[said.tool_call_id]
        numbers = self._told_by(said)
        return (numbers[0], len(self._turns[numbers[0]].asked)) if numbers else None

    def _told_by(self, said: InputMessage) -> list[int]:
        """The turns of which it is what the run said, by the ids that we gave it."""
        if said.role not in _OURS or said.tool_call_id in self._clients:
            return []
        found = [self._numbers[run] for run in _runs(said) if run in self._numbers]
        for call in said.tool_calls:
            found += self._calls.get(call.id, ())
        return sorted(found)

    def walk(self, *, complete: bool) -> tuple[int, int]:
        """How many turns the client shows whole, and where its messages go on behind them."""
        first = next((one for one in self._said if one.role not in _SILENT), self._said[0])
        begins = self.place(first)
        if begins is None:
            return 0, 0
        whole = complete and len(self._said) < WINDOW and _asks(self._said)
        if begins != (0, 0) and whole:
            return 0, 0
        return self._walk_from(*begins)

    def _walk_from(self, number: int, place: int) -> tuple[int, int]:
        position = begun = 0
        for turn in self._turns[number:]:
            end = self._end(turn, position, turn.asked[place if turn.number == number else 0 :])
            if end is None:
                return turn.number, position
            begun, position = position, end
        newest = self._turns[-1]
        if newest.live and self._asks_again(newest, position):
            return newest.number, begun
        return len(self._turns), position

    def _asks_again(self, newest: _Turn, position: int) -> bool:
        """Whether a question is asked once more while its answer is still being made."""
        last = self._said[-1]
        return position == len(self._said) and any(_is_same(last, entry) for entry in newest.asked)

    def _end(self, turn: _Turn, position: int, asked: Sequence[Entry]) -> int | None:
        """Where the client's messages go on behind this turn; None if they do not show it whole."""
        said = self._said
        for entry in asked:
            while position < len(said) and self._is_passed_over(said[position], turn):
                position += 1
            if position == len(said) or not _is_same(said[position], entry):
                return None
            position += 1
        end = position
        while end < len(said) and self._is_of(turn, said[end]):
            end += 1
        return end if self._is_covered(turn, said[position:end]) else None

    def _is_of(self, turn: _Turn, said: InputMessage) -> bool:
        """Whether the run said it, or it is silence that the client told before."""
        return turn.number in self._told_by(said) or (
            said.role in _SILENT and said.client_id in self._asked
        )

    def _is_passed_over(self, said: InputMessage, turn: _Turn) -> bool:
        """Whether it is no question: silence, or what an earlier run said, shown late."""
        return said.role in _SILENT or any(
            number < turn.number for number in self._told_by(said) if said.client_id not in self._asked
        )

    def _is_covered(self, turn: _Turn, shown: Sequence[InputMessage]) -> bool:
        """Whether what the run said is shown to its end, and none of its texts has been rewritten."""
        told = [entry for entry in turn.told if _can_be_shown(entry)]
        if not told:
            return True
        texts = [entry for entry in told if entry.role == "assistant" and entry.size]
        under = {one.client_id: one for one in shown if one.role == "assistant"}
        for entry in texts:
            found = under.get(f"{entry.said}-{turn.run}") or under.get(entry.said)
            if found is not None and not _is_text_of(found.content, entry, texts):
                return False
        if self._shows_call(told[-1], turn, shown):
            return True
        return bool(texts) and _is_shown(texts[-1], turn, under)

    def _shows_call(self, entry: Entry, turn: _Turn, shown: Sequence[InputMessage]) -> bool:
        """Whether a call is shown: under our id for it anywhere, under the model's beside the run."""
        calls = _calls_of(entry)
        ours = {f"{call}-{entry.asked_in or turn.run}" for call in calls}
        return not (ours.isdisjoint(self._calls_shown) and _calls_in(shown).isdisjoint(calls))

    def has_told(self, said: InputMessage, kept: int) -> bool:
        """Whether it adds nothing to so many turns: one of their runs said it, or it is our silence."""
        if said.role in _SILENT:
            return bool(self.place(said)) or bool(_runs(said))
        if said.client_id in self._asked or said.tool_call_id in self._answered:
            return False
        return any(number < kept for number in self._told_by(said))

    def as_stored(self, said: InputMessage) -> InputMessage:
        """The message with its files; an answer of a tool of ours only repeats what a run has said."""
        if said.role == "tool" and self._told_by(said):
            return replace(said, repeats=True)
        return self.with_files(said)

    def with_files(self, said: InputMessage) -> InputMessage:
        """The message with the files that the thread holds of it already: their URLs may be old."""
        entry = self._files.get(said.client_id or "")
        if entry is None or not said.uploads:
            return said
        files = _files(entry)
        if _is_same(said, entry):
            return replace(said, uploads=(), attachments=files)
        known = [file for file in files if any(_is_of_url(one.url, file) for one in said.uploads)]
        uploads = [one for one in said.uploads if not any(_is_of_url(one.url, file) for file in known)]
        return replace(said, uploads=tuple(uploads), attachments=tuple(known))


def _is_same(said: InputMessage, entry: Entry) -> bool:
    """Whether a message of the client's is the one that it sent before."""
    if said.role != entry.role or said.content.strip(_BLANKS) != entry.text.strip(_BLANKS):
        return False
    if said.role == "tool":
        return said.tool_call_id == entry.call_id
    if said.role in _SYSTEM:
        return True
    files = len(said.uploads) + len(said.attachments)
    return said.client_id in (entry.id, entry.client_id) and files == len(_files(entry))


def _can_be_shown(entry: Entry) -> bool:
    return entry.role == "tool" or (entry.role == "assistant" and bool(_made(entry) or entry.size))


def _made(entry: Entry) -> list[str]:
    """The ids of the calls that wait for an answer."""
    calls = entry.calls if isinstance(entry.calls, list) else []
    return [call["id"] for call in calls if isinstance(call, dict) and isinstance(call.get("id"), str)]


def _calls_of(entry: Entry) -> list[str]:
    return [*_made(entry), entry.call_id] if entry.call_id else _made(entry)


def _calls_in(shown: Sequence[InputMessage]) -> set[str]:
    """The ids of all calls that are made or answered there."""
    made = (call.id for one in shown for call in one.tool_calls)
    return {*made, *(one.tool_call_id for one in shown if one.tool_call_id)}


def _is_shown(entry: Entry, turn: _Turn, under: dict[str | None, InputMessage]) -> bool:
    """Under its own id, or within a message of the run's: some clients join all texts of a run."""
    if f"{entry.said}-{turn.run}" in under or entry.said in under:
        return True
    return any((entry.tail or "") in one.content for one in under.values())


def _is_text_of(given: str, entry: Entry, texts: Sequence[Entry]) -> bool:
    """Whether the client's text is ours: the whole or its beginning; the texts of the run in one; or
    the whole behind the pieces that it replaced, as a stream can only add."""
    text, size = given.strip(_BLANKS), entry.size
    if len(text) < size:
        return text.startswith((entry.head or "")[: len(text)])
    if len(texts) > 1 and len(text) > size:
        return all((one.tail or "") in text for one in texts)
    before = text[: len(text) - size]
    return (not before or before.endswith("\n\n")) and _md5(text[len(before) :]) == entry.hash


def _md5(text: str) -> str:
    return hashlib.md5(text.encode(errors="replace"), usedforsecurity=False).hexdigest()


def _runs(said: InputMessage) -> list[str]:
    """The runs of ours that stand in a message's ids."""
    ids = (said.client_id or "", said.tool_call_id or "", *(call.id for call in said.tool_calls))
    return [run for one in ids for run in _RUN.findall(one)]


def _files(entry: Entry) -> tuple[Attachment, ...]:
    given = [entry.files] if isinstance(entry.files, dict) else entry.files or []
    return tuple(msgspec.convert(file, Attachment) for file in given)


def _is_of_url(url: str, file: Attachment) -> bool:
    return url.partition("?")[0].endswith(f"/{file.bucket}/{file.path}")


# --- the system messages that lead the conversation -------------------------------------------------


def _led(
    kept: Sequence[Turn], leading: Sequence[InputMessage], *, removes: bool = False
) -> Iterator[InputMessage]:
    """The messages that lead from now on, where others did; their marks give them their place."""
    now = [(said.role, said.content.strip(_BLANKS)) for said in leading]
    if now == [(entry.role, entry.text.strip(_BLANKS)) for entry in _leading(kept)]:
        return
    if not leading and removes:
        yield InputMessage("system", "", metadata={LEADING: 1})
    for number, said in enumerate(leading, 1):
        yield replace(said, metadata=said.metadata | {LEADING: number})


def _leading(kept: Sequence[Turn]) -> list[Entry]:
    """What leads after these turns."""
    given = [entry for turn in kept for entry in turn.entries if entry.said is None]
    led, rest = leading_first(given, _mark, lambda entry: entry.role in _SYSTEM)
    first = [] if led else rest[: count_leading(rest, lambda entry: entry.role in _SYSTEM)]
    return [entry for entry in (led or first) if entry.text]


def _mark(entry: Entry) -> int:
    return entry.leading if isinstance(entry.leading, int) else 0
