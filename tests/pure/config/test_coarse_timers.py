"""Coarse timers: everything watched is looked at, by one timer of the loop, until nothing is left."""

from __future__ import annotations

import asyncio

from config.process import coarse_timers


class Watched:
    """Counts the looks, and leaves at the last one that it wants."""

    def __init__(self, *, looks: int, fails: bool = False) -> None:
        self.times: list[float] = []
        self.left = asyncio.Event()
        self._looks = looks
        self._fails = fails

    def look(self, now: float) -> None:
        self.times.append(now)
        if len(self.times) == self._looks:
            coarse_timers.unwatch(self)
            self.left.set()
        if self._fails:
            raise RuntimeError("this one always fails")


def test_all_are_looked_at_until_they_leave() -> None:
    async def play() -> None:
        once, often = Watched(looks=1), Watched(looks=3)
        for watched in (once, often):
            coarse_timers.watch(watched)
        await asyncio.gather(once.left.wait(), often.left.wait())
        assert (len(once.times), len(often.times)) == (1, 3)
        assert once.times[0] == often.times[0]
        pauses = [later - earlier for earlier, later in zip(often.times, often.times[1:], strict=False)]
        assert min(pauses) >= coarse_timers.TICK_S / 2

    asyncio.run(play())


def test_one_that_fails_holds_up_no_other() -> None:
    async def play() -> None:
        seen: list[object] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: seen.append(context["exception"]))
        fails, other = Watched(looks=2, fails=True), Watched(looks=1)
        coarse_timers.watch(fails)
        coarse_timers.watch(other)
        await asyncio.gather(fails.left.wait(), other.left.wait())
        assert len(other.times) == 1
        assert [str(error) for error in seen] == ["this one always fails"] * 2

    asyncio.run(play())


def test_one_may_end_the_watch_over_another() -> None:
    """The end of a run is the end of its stream."""

    async def play() -> None:
        run, stream = Watched(looks=1), Watched(looks=2)

        def end_both(now: float) -> None:
            coarse_timers.unwatch(run)
            coarse_timers.unwatch(stream)
            run.left.set()

        run.look = end_both  # type: ignore[method-assign]
        coarse_timers.watch(run)
        coarse_timers.watch(stream)
        await run.left.wait()
        assert stream.times == []

    asyncio.run(play())


def test_nothing_is_scheduled_when_nothing_is_watched() -> None:
    async def play() -> None:
        watched = Watched(looks=1)
        coarse_timers.watch(watched)
        await watched.left.wait()
        loop = asyncio.get_running_loop()
        await asyncio.sleep(1.5 * coarse_timers.TICK_S)  # the tick that finds nothing
        assert loop not in coarse_timers._watched
        coarse_timers.unwatch(watched)  # again, and it may never have been watched
        again = Watched(looks=1)
        coarse_timers.watch(again)
        await again.left.wait()

    asyncio.run(play())
