"""Events that are no messages, over the runner REST (seed 003 §4.4, 4.5): told and stored as sent."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable
from typing import Any
from uuid import uuid4

import pytest

from agents.host_protocol import results
from agents.host_protocol.host_api import HostApi
from agents.host_protocol.results import RunResult
from agents.host_protocol.run_context import ActorContext, AgentRunContext, SubjectContext
from tests.support.client import Client
from tests.support.fakes.mcp_host import wait_until
from tests.support.host.hosted_runs import bound
from tests.support.host.stage import Scripted, manifest, serving

pytestmark = pytest.mark.once

JOINED: dict[str, Any] = {
    "event": {
        "event_id": "wx-778",
        "event_type": "group.member_joined",
        "event_time": 1780142046,
        "source": "platform",
        "source_event_type": "GroupMemberIncrease",
        "raw_ref": None,
        "data": {"group": {"id": "g-1", "名": "训练群"}, "by": None},
    },
    "trigger": {"type": "group.member_joined", "source": "platform", "timestamp": None},
    "actor": {"actor_type": "user", "actor_id": "u-9", "actor_name": "小李", "metadata": {"vip": True}},
    "subject": {"subject_type": "membership", "subject_id": "g-1/u-9", "data": {"role": "member"}},
    "delivery": {"surface": "wechat"},
}
FIRED: dict[str, Any] = {
    "event": {"event_type": "schedule.fired", "source": "scheduler"},
    "actor": {"actor_type": "system"},
    "subject": {"subject_type": "schedule", "subject_id": "daily"},
}
Make = Callable[..., Client]


@pytest.fixture
def staff(make_client: Make) -> Client:
    return make_client(is_staff=True, is_superuser=True)


def run(staff: Client, body: dict[str, Any]) -> tuple[AgentRunContext, Any]:
    """The context that the runner is told, and the event as `events.get` and a filtered page have it."""
    told: list[Any] = []

    async def says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
        record = await host.events.get(context.event.event_id)
        page = await host.events.page(event_types=[context.event.event_type])
        assert list(page.items) == [record]
        told[:] = [context, record]
        yield results.message(context.run_id, "ok")

    declared = manifest(f"plugin:acme/p{uuid4().hex[:6]}/default")
    talk = {"conversation": {"conversation_id": uuid4().hex}}
    with serving(Scripted(declared, says)):
        answer = staff.http.post(f"/api/v1/agent/runners/{declared.id}/run", json=body | talk)
    assert answer.status_code == 200, answer.text
    frames = [json.loads(line) for line in answer.text.splitlines() if line]
    assert [one["type"] for one in frames][-1] == "run.completed", frames
    return told[0], told[1]


def test_a_member_who_joins_is_told_as_it_is(staff: Client) -> None:
    context, record = run(staff, JOINED)
    event = context.event
    assert (context.trigger.type, context.trigger.source, context.trigger.timestamp) == (
        "group.member_joined",
        "platform",
        1780142046,
    )
    assert (event.event_type, event.event_time, event.source, event.source_event_type, event.data) == (
        "group.member_joined",
        1780142046,
        "platform",
        "GroupMemberIncrease",
        {"group": {"id": "g-1", "名": "训练群"}, "by": None},
    )
    assert context.actor == ActorContext(
        actor_type="user", actor_id="u-9", actor_name="小李", metadata={"vip": True}
    )
    assert context.subject == SubjectContext(
        subject_type="membership", subject_id="g-1/u-9", data={"role": "member"}
    )
    assert (context.input.text, context.input.contents) == (None, ())
    stored = (record.event_type, record.event_time, record.source, record.actor_id, record.actor_name)
    assert stored == ("group.member_joined", 1780142046, "platform", "u-9", "小李")
    assert (record.subject_type, record.subject_id) == ("membership", "g-1/u-9")


def test_a_schedule_fires_without_an_input(staff: Client) -> None:
    context, record = run(staff, FIRED)
    assert (context.trigger.type, context.trigger.source) == ("schedule.fired", "scheduler")
    assert context.actor == ActorContext(actor_type="system")
    assert context.subject == SubjectContext(subject_type="schedule", subject_id="daily")
    assert (record.event_type, record.actor_type, record.actor_id) == ("schedule.fired", "system", None)


def test_what_goes_on_after_an_approval_is_no_event_of_the_callers(staff: Client) -> None:
    seen: list[str] = []

    async def says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
        seen.append(context.event.event_type)
        if len(seen) == 1:
            yield results.action(context.run_id, "thread.rename", payload={"title": "Joined"})
        yield results.message(context.run_id, "ok")

    declared = manifest(f"plugin:acme/p{uuid4().hex[:6]}/default")
    with bound(staff.user, says, declared, platform_actions=["thread.rename"]):
        answer = staff.http.post(f"/api/v1/agent/runners/{declared.id}/run", json=JOINED)
        run_id = json.loads(answer.text.splitlines()[0])["run_id"]
        (interrupt,) = staff.run(run_id)["interrupts"]
        approval = f"/api/v1/agent/approvals/{interrupt['id']}"
        assert staff.http.post(approval, json={"approve": True}).status_code == 200
        told = wait_until(lambda: staff.http.get(approval).json()["told_run_id"])
        staff.wait_for(told, "completed", "failed")
    assert seen == ["group.member_joined", "approval.decided"]


def test_an_event_may_bring_words_and_a_message_its_platforms_name(staff: Client) -> None:
    words, _ = run(staff, FIRED | {"input": {"text": "Say good morning."}})
    assert (words.event.event_type, words.input.text) == ("schedule.fired", "Say good morning.")
    event = {"source_event_type": "im.message.receive_v1", "data": {"chat": 1}, "source": "platform"}
    message, record = run(staff, JOINED | {"event": event, "input": {"text": "hi"}})
    assert (message.event.event_type, message.event.source_event_type, message.event.data) == (
        "message.received",
        "im.message.receive_v1",
        {"chat": 1},
    )
    user = staff.user  # never who the caller claims
    assert message.actor == ActorContext(
        actor_type="user", actor_id=user.pk.hex, actor_name=user.username
    )
    assert (record.event_type, record.input_summary) == ("message.received", "hi")


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({}, "a message needs `input`"),
        ({"event": {"event_type": ""}}, "event.event_type"),
        ({"event": {"event_type": "a.b", "data": {"x": "y" * 70_000}}}, "64 KiB"),
        ({"event": {"event_type": "a.b", "event_time": -1}}, "epoch seconds"),
        ({"event": {"event_type": "approval.decided"}}, "Host's own event"),
        ({"event": {"event_type": "a.b"}, "actor": {"actor_id": "u"}}, "actor_type"),
        ({"event": {"event_type": "a.b"}, "trigger": {"source": "moon"}}, "trigger.source"),
    ],
)
def test_what_is_no_event_is_refused_by_name(staff: Client, body: dict[str, Any], told: str) -> None:
    declared = manifest(f"plugin:acme/p{uuid4().hex[:6]}/default")

    async def says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
        yield results.message(context.run_id, "ok")

    with serving(Scripted(declared, says)):
        answer = staff.http.post(f"/api/v1/agent/runners/{declared.id}/run", json=body)
    assert (answer.status_code, told in answer.text) == (422, True), answer.text
    builtin = staff.http.post("/api/v1/agent/runners/builtin:chat/run", json=FIRED)
    assert (builtin.status_code, builtin.json()["code"]) == (422, "text_required")
