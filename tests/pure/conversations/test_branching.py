"""Where a client's messages leave the thread: whatever it shows, that is what the model reads."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.intake.branching import Continuation, find_continuation
from agents.requests import AskedCall, InputMessage
from conversations.identifiers import uuid7
from conversations.threads.branches import BEGINNING, Entry, Turn
from tests.pure.steps import lines_run


def asked(content: str, message_id: str, role: str = "user", **more: Any) -> Entry:
    return entry(role, message_id, None, text=content, **more)


def told(content: str, said: str, **more: Any) -> Entry:
    digest = hashlib.md5(content.encode(), usedforsecurity=False).hexdigest()
    ends = {"size": len(content), "hash": digest, "head": content[:200], "tail": content[-60:]}
    return entry("assistant", said, said, **(ends | more))


def entry(role: str, message_id: str, said: str | None, **more: Any) -> Entry:
    empty: dict[str, Any] = {
        "text": "",
        "size": 0,
        "hash": None,
        "head": None,
        "tail": None,
        "calls": None,
    }
    none = {"call_id": None, "asked_in": None, "leading": None, "files": None}
    return Entry(
        id=message_id, client_id=message_id, role=role, run_message_id=said, **(empty | none | more)
    )


def turn(*entries: Entry, live: bool = False, run_id: UUID | None = None) -> Turn:
    return Turn(run_id or uuid7(), None, live, entries)


def exchange(number: int) -> Turn:
    return turn(asked(f"question {number}", f"u{number}"), told(f"answer {number}", "a"))


def shown(turns: Sequence[Turn]) -> list[InputMessage]:
    """The turns as a client shows them."""
    found: list[InputMessage] = []
    for one in turns:
        for message in one.entries:
            if message.run_message_id is None:
                found.append(InputMessage(message.role, message.text, message.client_id))  # type: ignore[arg-type]
            else:
                wire_id = f"{message.run_message_id}-{one.run_id.hex}"
                found.append(InputMessage("assistant", message.head or "", wire_id))
    return found


def read(turns: Sequence[Turn], going: Continuation) -> list[str]:
    """What the model reads: the turns that it goes on from, and the messages of the run."""
    places = [one.run_id for one in turns]
    kept = turns if going.continues is None else turns[: _place(places, going.continues)]
    return [one.content for one in (*shown(kept), *going.messages)]


def _place(places: list[UUID], continues: UUID) -> int:
    return 0 if continues == BEGINNING else places.index(continues) + 1


THREAD = [exchange(number) for number in range(5)]
_NEW = st.builds(InputMessage, st.just("user"), st.sampled_from("xyz"), st.sampled_from(["n1", "n2"]))
_EDITED = st.sampled_from(shown(THREAD)).map(
    lambda one: InputMessage(one.role, f"{one.content} edited", one.client_id)
)
_SHOWN = st.lists(
    st.sampled_from(shown(THREAD)) | _NEW | _EDITED,
    min_size=1,
    max_size=12,
    unique_by=lambda one: one.client_id,
).filter(lambda messages: any(one.role == "user" for one in messages))


@given(_SHOWN)
def test_the_model_reads_what_is_shown_in_its_order(messages: list[InputMessage]) -> None:
    going = find_continuation(THREAD, messages, complete=True)
    assert read(THREAD, going) == [one.content for one in messages]


@given(st.integers(0, 10), st.lists(_NEW, max_size=3))
def test_a_prefix_and_what_is_new(count: int, new: list[InputMessage]) -> None:
    messages = [*shown(THREAD)[:count], *new]
    going = find_continuation(THREAD, messages, complete=True)
    assert read(THREAD, going) == [one.content for one in messages] or not messages
    assert going.known_count == count - count % 2


def test_nothing_is_copied_of_what_is_shown_whole() -> None:
    going = find_continuation(
        THREAD, [*shown(THREAD), InputMessage("user", "more", "u9")], complete=True
    )
    assert going.continues == THREAD[-1].run_id
    assert [one.content for one in going.messages] == ["more"]


def test_calls_of_the_server_are_known_by_their_ids() -> None:
    called = entry("tool", "r", "call-s1", call_id="s1")
    one = turn(asked("go", "u1"), called, told("done", "a"))
    wire = f"s1-{one.run_id.hex}"
    messages = [
        InputMessage("user", "go", "u1"),
        InputMessage("assistant", "", f"call-{wire}", tool_calls=(AskedCall(wire, "f", "{}"),)),
        InputMessage("tool", "1", f"result-{one.run_id.hex}-s1", tool_call_id=wire),
        InputMessage("assistant", "done", f"a-{one.run_id.hex}"),
    ]
    assert find_continuation([one], messages, complete=True) == Continuation(one.run_id, (), 4)
    dropped = find_continuation([one], messages[:3], complete=True)
    assert (dropped.continues, len(dropped.messages)) == (BEGINNING, 3)


def test_a_call_that_waits_for_its_client_is_shown_under_any_id() -> None:
    waiting = entry("assistant", "call-c1", "call-c1", calls=[{"id": "c1"}])
    first = turn(asked("go", "u1"), waiting)
    call = InputMessage("assistant", "", "its own", tool_calls=(AskedCall("c1", "f", "{}"),))
    answer = InputMessage("tool", "1", "t1", tool_call_id="c1")
    messages = [InputMessage("user", "go", "u1"), call, answer]
    assert find_continuation([first], messages, complete=True) == Continuation(
        first.run_id, (answer,), 2
    )
    then = turn(asked("1", "t1", role="tool", call_id="c1"), told("done", "a"))
    more = [*messages, *shown([then])[1:]]
    assert find_continuation([first, then], more, complete=True) == Continuation(then.run_id, (), 4)
    edited = [messages[0], call, InputMessage("tool", "2", "t1", tool_call_id="c1")]
    assert find_continuation([first, then], edited, complete=True).continues == first.run_id


def test_a_clients_answer_is_no_words_of_ours_though_a_run_stands_in_its_calls_id() -> None:
    run_id = uuid7()
    call_id = f"call-{run_id.hex}-1"
    waiting = entry("assistant", f"call-{call_id}", f"call-{call_id}", calls=[{"id": call_id}])
    one = turn(asked("go", "u1"), waiting, run_id=run_id)
    call = InputMessage("assistant", "", f"call-{call_id}", tool_calls=(AskedCall(call_id, "f", "{}"),))
    answer = InputMessage("tool", "1", f"{call_id}:tool", tool_call_id=call_id)
    messages = [InputMessage("user", "go", "u1"), call, answer]
    assert find_continuation([one], messages, complete=True) == Continuation(run_id, (answer,), 2)


def of_many_runs(count: int) -> list[Turn]:
    return [exchange(number) for number in range(count)]


def of_one_long_run(count: int) -> list[Turn]:
    words = (told(f"t{number}", f"m{number}") for number in range(2 * count - 1))
    return [turn(asked("q", "u"), *words)]


@pytest.mark.parametrize("thread", [of_many_runs, of_one_long_run])
def test_steps_grow_with_the_messages_and_no_faster(thread: Callable[[int], list[Turn]]) -> None:
    def steps(count: int) -> int:
        turns = thread(count)
        messages = shown(turns)
        found: list[Continuation] = []
        taken = lines_run(lambda: found.append(find_continuation(turns, messages, complete=True)))
        assert found[0].known_count == 2 * count
        return taken

    assert steps(1_000) < 2 * 20 * steps(50)  # 20 times the messages; what is quadratic takes 400
