"""A hosted runner's call that somebody must approve: the run stops there, the next one is told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Any
from uuid import UUID

import pytest

from agents.host.session import MAX_APPROVALS
from agents.host_protocol import results
from agents.host_protocol.errors import HostRefusal
from agents.host_protocol.host_api import HostApi
from agents.host_protocol.run_context import AgentRunContext
from tests.support.client import Client
from tests.support.fakes.mcp_host import wait_until
from tests.support.host.careful_tool import CAREFUL, approve, offer_a_careful_tool
from tests.support.host.hosted_runs import bound, events_of, finished, reply
from tests.support.host.stage import audited

EXERCISES = "gymbro.exercise.search"


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    return offer_a_careful_tool(monkeypatch)


class Asker:
    """It sends a message, however its call ends, and tells what came of it."""

    def __init__(self) -> None:
        self.after: list[str] = []
        self.told: list[Any] = []

    async def __call__(self, context: AgentRunContext, host: HostApi) -> AsyncGenerator[Any]:
        if context.event.event_type == "approval.decided":
            self.told += context.event.data["outcomes"]
            yield results.message(context.run_id, "Done")
            return
        yield results.delta(context.run_id, "Let me ask. ")
        try:
            await self.ask(host)
            self.after.append("returned")
        except Exception as problem:
            self.after.append(type(problem).__name__)
        finally:
            self.after.append("tidied")
        yield results.message(context.run_id, "never")

    async def ask(self, host: HostApi) -> None:
        await host.tools.call(CAREFUL, {"to": "ann"})


def calls_of(run: dict[str, Any]) -> list[tuple[str, str]]:
    """The audit of the run, which is written soon after its end."""
    found: list[tuple[str, str]] = wait_until(lambda: audited(UUID(run["run_id"])))
    return found


def test_the_run_stops_and_the_next_one_has_the_result(client: Client, sent: list[Any]) -> None:
    says = Asker()
    with bound(client.user, says, tools=[CAREFUL]):
        run, frames = finished(client)
        assert (run["status"], run["finish_reason"], sent) == ("completed", "interrupt", [])
        assert (reply(frames), says.after) == ("Let me ask. ", ["tidied"])
        asked = [one for one in events_of(run["run_id"]) if one["type"] == "action.requested"]
        assert [(one["action"], one["target"]["tool_name"]) for one in asked] == [
            ("tool.approve", CAREFUL)
        ]
        assert calls_of(run) == [("call_tool", "approval_required")]
        approve(client, run)
    assert sent == [{"to": "ann"}]
    (outcome,) = says.told
    assert (outcome["tool_name"], outcome["parameters"]) == (CAREFUL, {"to": "ann"})
    assert json.loads(outcome["content"]) == {"sent_to": "ann"}


def test_a_refusal_and_other_arguments_are_told_too(client: Client, sent: list[Any]) -> None:
    says = Asker()
    with bound(client.user, says, tools=[CAREFUL]):
        approve(client, finished(client)[0], approve=False, reason="Not today")
        assert sent == []
        approve(client, finished(client)[0], arguments={"to": "bob"})
    refused, edited = says.told
    assert "Not today" in json.loads(refused["content"])["error"]["message"]
    assert (edited["parameters"], sent) == ({"to": "bob"}, [{"to": "bob"}])


def test_other_calls_under_way_are_finished_first(client: Client, sent: list[Any]) -> None:
    class Many(Asker):
        async def ask(self, host: HostApi) -> None:
            await asyncio.gather(
                host.tools.call(CAREFUL, {"to": "ann"}),
                host.tools.call(EXERCISES, {"query": "bench"}),
                host.tools.call(CAREFUL, {"to": "bob"}),
            )

    says = Many()
    with bound(client.user, says, tools=[CAREFUL, EXERCISES]):
        run, _ = finished(client)
        assert len(run["interrupts"]) == 2
        assert sorted(result for _, result in calls_of(run)) == [
            "approval_required", "approval_required", "ok",
        ]  # fmt: skip
        approve(client, run)
    assert sorted(one["to"] for one in sent) == ["ann", "bob"]
    assert len(says.told) == 2


def test_a_run_asks_for_so_many_approvals_and_no_more(client: Client, sent: list[Any]) -> None:
    refused: list[str] = []

    class Flood(Asker):
        async def ask(self, host: HostApi) -> None:
            async def one(number: int) -> None:
                try:
                    await host.tools.call(CAREFUL, {"to": str(number)})
                except HostRefusal as refusal:
                    refused.append(refusal.code)

            await asyncio.gather(*(one(number) for number in range(40)))

    with bound(client.user, Flood(), tools=[CAREFUL], calls_per_minute=0):
        run, _ = finished(client)
    assert (len(run["interrupts"]), refused) == (MAX_APPROVALS, ["rate_limited"] * 8)


def test_a_runner_that_will_not_stop_is_heard_no_more(client: Client, sent: list[Any]) -> None:
    async def says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[Any]:
        with suppress(asyncio.CancelledError):
            await host.tools.call(CAREFUL, {"to": "ann"})
        while True:
            yield results.state(context.run_id, "actor", "k", 1)

    with bound(client.user, says, tools=[CAREFUL]):
        run, _ = finished(client)
    assert (run["finish_reason"], len(run["interrupts"])) == ("interrupt", 1)


def test_arguments_that_do_not_fit_are_refused_at_once(client: Client, sent: list[Any]) -> None:
    class Wrong(Asker):
        async def ask(self, host: HostApi) -> None:
            await host.tools.call(CAREFUL, {"to": 7})

    says = Wrong()
    with bound(client.user, says, tools=[CAREFUL]):
        run, _ = finished(client)
    assert (run["finish_reason"], says.after) == ("stop", ["HostRefusal", "tidied"])


def test_a_tool_that_is_forbidden_meanwhile_is_not_called(
    client: Client, sent: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    says = Asker()
    with bound(client.user, says, tools=[CAREFUL]):
        run, _ = finished(client)
        monkeypatch.undo()  # the tool is gone
        approve(client, run)
    assert sent == []
    assert json.loads(says.told[0]["content"])["error"]["code"] == "tool_not_offered"
