"""When the writer writes: words at once, what only sets the scene with the next thing or soon."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from uuid import uuid4

import pytest

from conversations import events
from conversations.log import event_log
from conversations.log.event_log import RunLog
from tests.pure import clockwork

WORD = events.MessageDelta("m", "word ")


class Recorder(event_log.Writer):
    """A writer whose database takes everything at once, unless it is told not to answer."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[list[int]] = []
        self.wrote = asyncio.Event()
        self.answers = asyncio.Event()
        self.answers.set()

    async def _write(self, logs: list[RunLog]) -> None:
        self.written.append([event.seq for run_log in logs for event in run_log.take_batch()])
        await self.answers.wait()
        for run_log in logs:
            run_log.finish_write()
        self.wrote.set()


def recorded(play: Callable[[Recorder, RunLog], Awaitable[object]]) -> list[list[int]]:
    async def run() -> list[list[int]]:
        writer = Recorder()
        writing = asyncio.create_task(writer.run())
        await play(writer, writer.open(uuid4(), fence=1, last_seq=0))
        writing.cancel()
        return writer.written

    return clockwork.run(run())


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def test_a_first_word_is_written_at_once_also_while_the_writer_rests() -> None:
    async def play(writer: Recorder, run_log: RunLog) -> None:
        for number in range(2):
            writer.open(uuid4(), fence=1, last_seq=number).append(WORD)
            await turns()

    assert recorded(play) == [[1], [2]]


def test_words_gather_while_the_writer_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_log, "_REST_S", 0.2)
    monkeypatch.setattr(event_log, "_REST_PER_RUN_S", 0.2)

    async def play(writer: Recorder, run_log: RunLog) -> None:
        for number in range(4):
            run_log.append(WORD)
            await turns()
            if number == 0:
                assert writer.written == [[1]]
        await asyncio.sleep(0.5)

    assert recorded(play) == [[1], [2, 3, 4]]


def test_a_first_word_does_not_take_along_words_that_gather(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_log, "_REST_S", 0.2)
    monkeypatch.setattr(event_log, "_REST_PER_RUN_S", 0.2)

    async def play(writer: Recorder, run_log: RunLog) -> None:
        other = writer.open(uuid4(), fence=1, last_seq=70)
        for speaker in (run_log, run_log, other, other):
            speaker.append(WORD)
            await turns()
        assert writer.written == [[1], [71]]
        await asyncio.sleep(0.5)

    assert recorded(play) == [[1], [71], [2, 72]]


def test_who_drains_his_log_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_log, "_REST_S", 60.0)
    monkeypatch.setattr(event_log, "_REST_PER_RUN_S", 60.0)

    async def play(writer: Recorder, run_log: RunLog) -> None:
        for _ in range(2):
            run_log.append(WORD)
            await turns()
        async with asyncio.timeout(5):
            await run_log.drain()

    assert recorded(play) == [[1], [2]]


def test_the_rest_is_left_to_the_statement_that_ends_the_run() -> None:
    async def play(writer: Recorder, run_log: RunLog) -> None:
        run_log.append(WORD)
        assert [event.seq for event in await run_log.take_rest()] == [1]
        await turns()
        assert run_log.last_seq == 1

    assert recorded(play) == []


def test_the_rest_waits_for_what_is_being_written_and_is_not_written_twice() -> None:
    async def play(writer: Recorder, run_log: RunLog) -> None:
        writer.answers.clear()
        run_log.append(WORD)
        await turns()
        taking = asyncio.create_task(run_log.take_rest())
        run_log.append(WORD)
        await turns()
        assert not taking.done()
        writer.answers.set()
        assert [event.seq for event in await taking] == [2]
        await turns()

    assert recorded(play) == [[1]]


def test_a_long_rest_is_written_before_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_log, "_MOST_WITH_END", 2)

    async def play(writer: Recorder, run_log: RunLog) -> None:
        for _ in range(3):
            run_log.append(WORD)
        assert await run_log.take_rest() == []

    assert recorded(play) == [[1, 2, 3]]


def test_what_sets_the_scene_goes_with_the_word_that_follows() -> None:
    async def play(writer: Recorder, run_log: RunLog) -> None:
        run_log.append(events.StageStarted("execution"))
        run_log.append(events.ToolCallStarted("c", "search", {}))
        await turns()
        run_log.append(WORD)
        await turns()

    assert recorded(play) == [[1, 2, 3]]


def test_what_sets_the_scene_is_written_soon_when_nothing_follows() -> None:
    async def play(writer: Recorder, run_log: RunLog) -> None:
        run_log.append(events.StageStarted("execution"))
        async with asyncio.timeout(5):
            await writer.wrote.wait()

    assert recorded(play) == [[1]]


def test_what_another_run_says_takes_along_what_waits() -> None:
    async def play(writer: Recorder, run_log: RunLog) -> None:
        run_log.append(events.StageStarted("execution"))
        other = writer.open(uuid4(), fence=1, last_seq=7)
        other.append(WORD)
        await turns()

    assert recorded(play) == [[1, 8]]


def test_draining_does_not_wait_for_what_follows() -> None:
    async def play(writer: Recorder, run_log: RunLog) -> None:
        run_log.append(events.ToolCallStarted("c", "search", {}))
        await run_log.drain()
        assert writer.written == [[1]]

    assert recorded(play) == [[1]]


async def _say_after_the_rest(writer: Recorder, run_log: RunLog) -> None:
    await writer.rest()
    run_log.append(WORD)


def test_what_is_said_at_the_end_of_a_rest_is_in_the_next_write(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_log, "_MANY", 1)
    monkeypatch.setattr(event_log, "_REST_S", 0.2)
    monkeypatch.setattr(event_log, "_REST_PER_RUN_S", 0.2)

    async def play(writer: Recorder, run_log: RunLog) -> None:
        run_log.append(WORD)
        await turns()
        run_log.append(WORD)
        others = [writer.open(uuid4(), fence=1, last_seq=70), writer.open(uuid4(), fence=1, last_seq=80)]
        for other in others:
            other.has_words = True
        speaking = [asyncio.create_task(_say_after_the_rest(writer, other)) for other in others]
        await turns()
        assert not any(task.done() for task in speaking)
        await asyncio.gather(*speaking)
        await turns()

    assert recorded(play) == [[1], [2, 71, 81]]


def test_few_speakers_rest_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_log, "_REST_S", 60.0)
    monkeypatch.setattr(event_log, "_REST_PER_RUN_S", 60.0)

    async def play(writer: Recorder, run_log: RunLog) -> None:
        async with asyncio.timeout(5):
            await writer.rest()
            run_log.append(WORD)
            await turns()
            await writer.rest()

    assert recorded(play) == [[1]]
