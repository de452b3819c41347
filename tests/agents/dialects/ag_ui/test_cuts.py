"""The connection breaks behind every event there is: the same run again gives the same messages, and
one run. Many clients at a time in one process of Node."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from conversations.models import Message, Run
from tests.agents.dialects.ag_ui.messages import Seen, params, shape, user
from tests.agents.dialects.ag_ui.node import Clients
from tests.support.client import Client, ScriptedModel
from tests.support.fakes.fake_model import FakeModel, text, tool_calls
from tests.support.mail import Mail

Chain = list[dict[str, Any]]
AT_ONCE = 6


class Chains:
    """Chains of what clients of one generation do."""

    def __init__(self, clients: Clients, client: Client, generation: str) -> None:
        self._clients = clients
        self._client = client
        self._generation = generation

    def agent(self, thread_id: str, **more: Any) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self._client.token}"}
        url = f"{self._client.url}/api/v1/agent/ag-ui"
        given = {"threadId": thread_id, "url": url, "headers": headers} | more
        return self._clients.made(self._generation, **given)

    def go(self, *chains: Chain) -> list[list[Seen]]:
        return self._clients.chains(list(chains), at_once=AT_ONCE)

    def connect(self, thread_id: str) -> Chain:
        agent = self.agent(thread_id)
        path = f"{self._client.url}/api/v1/agent/threads/{thread_id}/connect"
        return [agent, step(agent, connect=path)]


@pytest.fixture
def chains(clients: Clients, client: Client, generation: str) -> Chains:
    return Chains(clients, client, generation)


def step(agent: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"op": "run", "agent": agent["agent"]} | more


@pytest.mark.usefixtures("scripted_runs")
def test_a_run_cut_at_every_event_is_mended_by_running_the_same_again(
    chains: Chains, client: Client
) -> None:
    asked, told = user("go"), params("everything")
    alone = chains.agent(str(uuid4()))
    [[_, whole]] = chains.go([alone, step(alone, add=[asked], params=told)])
    assert whole["failure"] is None
    made: list[Chain] = []
    for count in range(len(whole["events"])):
        thread_id, same = str(uuid4()), told | {"runId": str(uuid4())}
        agent, fresh = chains.agent(thread_id), chains.agent(thread_id, messages=[asked])
        broken = step(agent, add=[asked], params=same, cutAfter=count)
        mended, anew = step(agent, params=same), step(fresh, params=same)
        made.append([agent, broken, mended, fresh, anew])
    for count, (_, broken, mended, _, anew) in enumerate(chains.go(*made)):
        assert broken["failure"] is not None
        assert len(broken["events"]) == count
        for seen in (mended, anew):
            assert seen["failure"] is None
            assert shape(seen) == shape(whole), f"cut after {count} events"
            assert seen["state"] == whole["state"]
        assert roles(anew) == roles(whole)
    runs = Run.objects.filter(owner=client.user)
    assert runs.count() == 1 + len(made), "one run each"
    assert Message.objects.filter(run__in=runs, role="user").count() == runs.count()


def roles(seen: Seen) -> list[str]:
    return [message["role"] for message in seen["messages"]]


APPROVED = {"status": "resolved", "payload": {"approved": True}}


def test_a_run_that_goes_on_after_approvals_is_mended_at_every_event(
    chains: Chains,
    client: Client,
    mail: Mail,
    provider: FakeModel,
    scripted: Callable[..., ScriptedModel],
) -> None:
    """Two calls wait; their answers stand beside them, in a client's list as in ours."""

    def begun(thread_id: str) -> tuple[dict[str, Any], Chain, dict[str, Any]]:
        name = uuid4().hex
        sends = [(f"c{n}", "test.send", json.dumps({"to": f"ann{n}", "text": "hi"})) for n in (1, 2)]
        provider.script(tool_calls(*sends), text("Both are sent."), name=name)
        told = {"forwardedProps": {"model": scripted(f"script:{name}").name}}
        agent = chains.agent(thread_id)
        return agent, [agent, step(agent, add=[user("send")], params=told)], told

    thread_id = str(uuid4())
    agent, first, told = begun(thread_id)
    [[_, asked, whole]] = chains.go([*first, step(agent, resume=APPROVED, params=told)])
    assert (asked["outcome"], len(asked["interrupts"])) == ("interrupt", 2)
    assert (whole["failure"], whole["interrupts"]) == (None, [])
    assert roles(whole) == ["user", "assistant", "tool", "assistant", "tool", "assistant"]
    assert whole["messages"][-1]["content"] == "Both are sent."
    made, threads = [], []
    for count in range(len(whole["events"])):
        threads.append(str(uuid4()))
        agent, first, told = begun(threads[-1])
        same = told | {"runId": str(uuid4())}
        broken = step(agent, resume=APPROVED, params=same, cutAfter=count)
        made.append([*first, broken, step(agent, resume=APPROVED, params=same)])
    for count, (_, _, broken, mended) in enumerate(chains.go(*made)):
        assert broken["failure"] is not None
        assert mended["failure"] is None
        assert shape(mended) == shape(whole), f"cut after {count} events"
        assert roles(mended) == roles(whole)
    assert len(mail.sent) == 2 * (1 + len(made)), "each call once"
    for [_, stored] in chains.go(*(chains.connect(one) for one in (thread_id, *threads))):
        assert (shape(stored), roles(stored)) == (shape(whole), roles(whole))
    assert Run.objects.filter(owner=client.user).count() == 2 * (1 + len(made))
