"""Every accepted run is followed by a notification, and a burst of them by few."""

from __future__ import annotations

import asyncio

import pytest
import uvloop

from agents import wakeup
from config.coordination import notifications
from tests.pure import clockwork


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """When workers were notified; a server of other tests may notify of other things meanwhile."""
    found: list[float] = []

    def notify(group: str, message: notifications.Message) -> None:
        if (group, message) == (wakeup.WORKERS, {"wake": True}):
            found.append(asyncio.get_running_loop().time())

    monkeypatch.setattr(notifications, "notify", notify)
    return found


def test_a_burst_is_a_notification_at_once_and_one_for_the_moment_after(heard: list[float]) -> None:
    loop = clockwork.Clockwork()

    async def play() -> None:
        bell = wakeup._Bell()
        for _ in range(50):
            bell.ring()
        assert heard == [1.0]
        await asyncio.sleep(0)
        assert heard == [1.0]
        loop.now = 2.0
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    clockwork.run(play(), loop)
    assert heard == [1.0, 2.0]


def test_who_rings_when_the_kept_notification_has_gone_is_heard_too(heard: list[float]) -> None:
    async def play() -> int:
        bell, missed = wakeup._Bell(), 0
        for _ in range(50):
            bell.ring()
            bell.ring()
            while bell._coming:  # noqa: ASYNC110 - in the very turn in which that one goes
                await asyncio.sleep(0)
            before = len(heard)
            bell.ring()
            await asyncio.sleep(0.01)
            missed += len(heard) == before
        return missed

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(play()) == 0
