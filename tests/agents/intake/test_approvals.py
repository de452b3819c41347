"""A tool call waits for somebody's approval: the run ends, the answer comes, another run goes on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.test import Client as Browser
from django.utils import timezone

from agents.models import ToolPolicy
from agents.tools import offered_tools
from config.database import run_sync
from conversations.models import Interrupt, Message, Run
from conversations.runs import interrupts
from prompts.models import Entitlement, Tier
from tests.conftest import Server
from tests.support.client import Client, ScriptedModel, read_sse
from tests.support.fakes.fake_model import Answer, FakeModel, text, tool_calls
from tests.support.mail import HI, SEND, Mail, approvals, decide, send


@pytest.fixture
def policy() -> Iterator[Callable[..., None]]:
    """Staff's decision on a tool, for one test."""

    def decide(tool: str, **fields: Any) -> None:
        ToolPolicy.objects.update_or_create(tool=tool, defaults=fields)
        offered_tools.clear_cache()

    yield decide
    ToolPolicy.objects.all().delete()
    offered_tools.clear_cache()


class Talk:
    """A conversation with a model that answers as scripted."""

    def __init__(self, client: Client, provider: FakeModel, make: Callable[..., ScriptedModel]) -> None:
        self.client = client
        self._provider = provider
        self._make = make
        self._name = uuid4().hex
        self.thread_id = str(uuid4())
        self.model = ""

    def script(self, *answers: Answer) -> None:
        self._provider.script(*answers, name=self._name)
        self.model = self.model or self._make(f"script:{self._name}").name

    def say(self, words: str = "go", **more: Any) -> dict[str, Any]:
        given = {
            "threadId": self.thread_id,
            "runId": uuid4().hex,
            "messages": [{"id": uuid4().hex, "role": "user", "content": words}],
            "forwardedProps": {"model": self.model},
        } | more
        response = self.client.http.post("/api/v1/agent/runs", json=given)
        assert response.status_code == 202, response.text
        return self.client.wait_for(response.json()["taskId"], "completed", "failed")

    @property
    def asked(self) -> list[list[dict[str, Any]]]:
        """The messages of each request to the model."""
        return [r.body["messages"] for r in self._provider.requests_for(f"script:{self._name}")]

    def pending(self) -> list[dict[str, Any]]:
        return [a for a in approvals(self.client, status="pending") if a["thread_id"] == self.thread_id]

    def next_run(self, run: dict[str, Any]) -> dict[str, Any]:
        """The run that goes on after this one, once it has ended."""
        found = Run.objects.get(thread_id=self.thread_id, client_run_id=f"continue-{run['run_id']}")
        return self.client.wait_for(found.id.hex, "completed", "failed")


@pytest.fixture
def talk(client: Client, provider: FakeModel, scripted: Callable[..., ScriptedModel]) -> Talk:
    return Talk(client, provider, scripted)


def facts(run: dict[str, Any], client: Client) -> list[dict[str, Any]]:
    """The run's events as AG-UI has them."""
    polled = client.http.get(
        f"/api/v1/agent/runs/{run['run_id']}/events",
        params={"after": 0, "wait": 5},
        headers={"Accept": "application/json"},
    ).json()
    return [event["data"] for event in polled["events"]]


def test_the_run_ends_the_owner_approves_and_another_run_goes_on(mail: Mail, talk: Talk) -> None:
    talk.script(tool_calls(send()), text("It is sent."))
    run = talk.say()
    assert (run["status"], run["finish_reason"]) == ("completed", "interrupt")
    assert mail.sent == []
    (waiting,) = talk.pending()
    assert run["interrupts"] == [waiting]
    assert (waiting["tool_name"], waiting["arguments"]) == ("test.send", HI)
    finished = facts(run, talk.client)[-1]
    (interrupt,) = finished["outcome"]["interrupts"]
    assert (interrupt["id"], interrupt["reason"]) == (waiting["id"], "tool_call")
    assert interrupt["responseSchema"]["properties"]["arguments"] == SEND

    decided = decide(talk.client, waiting, approve=True)
    assert (decided.status_code, decided.json()["status"]) == (200, "approved")
    after = talk.next_run(run)
    assert (after["status"], after["finish_reason"]) == ("completed", "stop")
    assert mail.sent == [HI]
    call, answer = talk.asked[1][-2:]
    assert [made["id"] for made in call["tool_calls"]] == ["c1"]
    assert (answer["role"], answer["tool_call_id"]) == ("tool", "c1")
    assert answer["content"] == '{"sent_to":"ann"}'
    row = Run.objects.get(pk=after["run_id"])
    assert row.request["parent_run_id"] == run["client_run_id"]
    assert talk.pending() == []
    told = approvals(talk.client, status="approved")[0]
    assert (told["told_run_id"], told["decided_by"]) == (after["run_id"], str(talk.client.user.pk))


def test_the_result_in_the_next_run_names_the_call_that_the_client_knows(mail: Mail, talk: Talk) -> None:
    talk.script(tool_calls(send()), text("Sent."))
    run = talk.say()
    asked = facts(run, talk.client)
    wire_id = next(event["toolCallId"] for event in asked if event["type"] == "TOOL_CALL_START")
    assert asked[-1]["outcome"]["interrupts"][0]["toolCallId"] == wire_id
    decide(talk.client, talk.pending()[0], approve=True)
    said = facts(talk.next_run(run), talk.client)
    assert [e["toolCallId"] for e in said if e["type"] == "TOOL_CALL_RESULT"] == [wire_id]
    assert [e for e in said if e["type"] == "TOOL_CALL_START"] == []


def test_the_conversation_afterwards_has_each_call_beside_its_answer(mail: Mail, talk: Talk) -> None:
    talk.script(tool_calls(send()), text("Sent."), text("Yes."))
    run = talk.say()
    decide(talk.client, talk.pending()[0], approve=True)
    talk.next_run(run)
    talk.say("Was it?")
    said = [(m["role"], [c["id"] for c in m.get("tool_calls") or ()]) for m in talk.asked[2][1:]]
    assert said == [
        ("user", []), ("assistant", ["c1"]), ("tool", []), ("assistant", []), ("user", []),
    ]  # fmt: skip
    stored = Message.objects.filter(thread_id=talk.thread_id, role__in=["assistant", "tool"])
    assert [row.role for row in stored.order_by("seq")] == [
        "assistant",
        "tool",
        "assistant",
        "assistant",
    ]


def test_other_calls_of_the_same_step_are_made_at_once(mail: Mail, talk: Talk) -> None:
    free = ("c2", "test.free", json.dumps(HI | {"to": "bob"}))
    talk.script(tool_calls(send("c1"), free, send("c3", to="cid")), text("Done."))
    run = talk.say()
    assert [sent["to"] for sent in mail.sent] == ["bob"]
    first, second = sorted(talk.pending(), key=lambda a: a["tool_call_id"])
    decide(talk.client, first, approve=True)
    assert not Run.objects.filter(client_run_id=f"continue-{run['run_id']}").exists()
    decide(talk.client, second, approve=False, reason="not cid")
    talk.next_run(run)
    assert [sent["to"] for sent in mail.sent] == ["bob", "ann"]
    shown = [
        [call["id"] for call in m.get("tool_calls", ())] or m.get("tool_call_id") for m in talk.asked[1]
    ]
    assert shown[-5:] == [["c2"], "c2", ["c1", "c3"], "c1", "c3"]
    assert "not cid" in talk.asked[1][-1]["content"]


def test_edited_arguments_are_checked_used_and_told(mail: Mail, talk: Talk) -> None:
    talk.script(tool_calls(send()), text("Sent."))
    run = talk.say()
    (waiting,) = talk.pending()
    wrong = decide(talk.client, waiting, approve=True, arguments={"to": 7, "text": "hi"})
    assert (wrong.status_code, wrong.json()["code"]) == (422, "invalid_arguments")
    assert '$.to: 7 is not of type "string"' in wrong.json()["detail"]
    edited = {"to": "bob", "text": "hello"}
    decided = decide(talk.client, waiting, approve=True, arguments=edited).json()
    assert (decided["arguments"], decided["edited_arguments"]) == (HI, edited)
    talk.next_run(run)
    assert mail.sent == [edited]
    assert json.loads(talk.asked[1][-2]["tool_calls"][0]["function"]["arguments"]) == edited


def test_a_refusal_and_its_reason_are_told_to_the_model(mail: Mail, talk: Talk) -> None:
    talk.script(tool_calls(send()), text("Then not."))
    run = talk.say()
    decide(talk.client, talk.pending()[0], approve=False, reason="Ann is away.")
    assert talk.next_run(run)["status"] == "completed"
    assert mail.sent == []
    told = json.loads(talk.asked[1][-1]["content"])["error"]
    assert told["code"] == "approval_refused"
    assert told["message"].endswith("Ann is away.")


def test_a_decision_is_made_once(mail: Mail, talk: Talk) -> None:
    talk.script(tool_calls(send()), text("Sent."))
    run = talk.say()
    (waiting,) = talk.pending()
    assert decide(talk.client, waiting, approve=True).status_code == 200
    assert decide(talk.client, waiting, approve=True, arguments=HI).status_code == 200
    for other in ({"approve": False}, {"approve": True, "arguments": HI | {"to": "eve"}}):
        refused = decide(talk.client, waiting, **other)
        assert (refused.status_code, refused.json()["code"]) == (409, "approval_already_answered")
    talk.next_run(run)
    assert mail.sent == [HI]
    assert Run.objects.filter(thread_id=talk.thread_id).count() == 2


def test_a_hundred_answers_at_once_call_the_tool_once(mail: Mail, talk: Talk) -> None:
    talk.script(tool_calls(send()), text("Sent."))
    run = talk.say()
    (waiting,) = talk.pending()
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: decide(talk.client, waiting, approve=True), range(100)))
    assert {answer.status_code for answer in answers} == {200}
    talk.next_run(run)
    assert mail.sent == [HI]
    assert Run.objects.filter(thread_id=talk.thread_id).count() == 2


@pytest.mark.parametrize(
    "body",
    [{}, {"approve": "yes"}, {"approve": True, "arguments": []}, {"approve": True, "reason": 1},
     {"approve": True, "more": 1}],
)  # fmt: skip
def test_an_answer_that_is_none_is_refused(mail: Mail, talk: Talk, body: dict[str, Any]) -> None:
    talk.script(tool_calls(send()))
    talk.say()
    refused = decide(talk.client, talk.pending()[0], **body)
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_answer")
    assert len(talk.pending()) == 1


def test_a_foreign_approval_does_not_exist(
    mail: Mail, talk: Talk, make_client: Callable[..., Client]
) -> None:
    talk.script(tool_calls(send()))
    talk.say()
    (waiting,) = talk.pending()
    stranger = make_client()
    assert waiting["id"] not in [found["id"] for found in approvals(stranger)]
    for answer in (
        decide(stranger, waiting, approve=True),
        stranger.http.get(f"/api/v1/agent/approvals/{waiting['id']}"),
        stranger.http.get("/api/v1/agent/approvals/nonsense"),
    ):
        assert (answer.status_code, answer.json()["code"]) == (404, "approval_not_found")
    assert stranger.http.get("/api/v1/agent/approvals?user_id=all").status_code == 403


def test_staff_with_the_permission_answer_for_others(
    mail: Mail, talk: Talk, make_client: Callable[..., Client]
) -> None:
    talk.script(tool_calls(send()), text("Sent."))
    run = talk.say()
    (waiting,) = talk.pending()
    staff = make_client(is_staff=True)
    staff.user.groups.clear()
    assert decide(staff, waiting, approve=True).status_code == 404
    staff.user.user_permissions.add(Permission.objects.get(codename="change_interrupt"))
    owner = str(talk.client.user.pk)
    assert [found["id"] for found in approvals(staff, user_id=owner)] == [waiting["id"]]
    assert decide(staff, waiting, approve=True).json()["decided_by"] == str(staff.user.pk)
    talk.next_run(run)
    assert mail.sent == [HI]


def test_what_has_expired_can_only_be_refused_and_is_told_so(mail: Mail, talk: Talk) -> None:
    talk.script(tool_calls(send()), text("Too late."))
    run = talk.say()
    (waiting,) = talk.pending()
    Interrupt.objects.filter(pk=waiting["id"]).update(expires_at=timezone.now())
    assert talk.pending() == []
    late = decide(talk.client, waiting, approve=True)
    assert (late.status_code, late.json()["code"]) == (409, "approval_expired")
    assert decide(talk.client, waiting, approve=False).json()["status"] == "expired"
    talk.next_run(run)
    assert mail.sent == []
    assert json.loads(talk.asked[1][-1]["content"])["error"]["code"] == "approval_expired"


def test_upkeep_writes_down_what_has_expired(mail: Mail, talk: Talk) -> None:
    talk.script(tool_calls(send()))
    talk.say()
    (waiting,) = talk.pending()
    Interrupt.objects.filter(pk=waiting["id"]).update(expires_at=timezone.now())
    run_sync(interrupts.expire_due())
    assert Interrupt.objects.get(pk=waiting["id"]).status == "expired"


def test_a_new_message_cancels_what_waits(mail: Mail, talk: Talk) -> None:
    talk.script(tool_calls(send()), text("As you like."))
    talk.say()
    (waiting,) = talk.pending()
    assert talk.say("Never mind.")["status"] == "completed"
    assert json.loads(talk.asked[1][-2]["content"])["error"]["code"] == "approval_not_answered"
    assert talk.asked[1][-1]["content"] == "Never mind."
    late = decide(talk.client, waiting, approve=True)
    assert (late.status_code, late.json()["code"]) == (409, "approval_already_answered")
    assert approvals(talk.client, status="cancelled")[0]["id"] == waiting["id"]
    assert mail.sent == []


def test_arguments_that_do_not_fit_are_told_at_once(mail: Mail, talk: Talk) -> None:
    talk.script(tool_calls(("c1", "test.send", "{}")), text("Sorry."))
    assert talk.say()["finish_reason"] == "stop"
    assert json.loads(talk.asked[1][-1]["content"])["error"]["code"] == "invalid_arguments"


def test_staff_can_have_any_tool_approved_and_switch_one_off(
    mail: Mail, talk: Talk, policy: Callable[..., None]
) -> None:
    policy("test.free", requires_approval=True, expires_after_s=60)
    policy("test.send", requires_approval=False)
    talk.script(tool_calls(("c1", "test.free", json.dumps(HI)), send("c2", to="bob")), text("Ok."))
    talk.say()
    (waiting,) = talk.pending()
    assert waiting["tool_name"] == "test.free"
    assert [sent["to"] for sent in mail.sent] == ["bob"]
    lives = Interrupt.objects.get(pk=waiting["id"])
    assert 0 < (lives.expires_at - lives.created_at).total_seconds() <= 60
    policy("test.free", enabled=False)
    talk.say()
    offered = [r.body["tools"] for r in talk._provider.requests_for(f"script:{talk._name}")][-1]
    assert "test.free" not in [tool["function"]["name"] for tool in offered]


def test_a_tool_may_be_for_staff_or_for_a_tier(
    mail: Mail, talk: Talk, policy: Callable[..., None], make_client: Callable[..., Client]
) -> None:
    tier = Tier.objects.create(name=f"t{uuid4().hex[:8]}", rank=9_000)
    policy("test.send", allowed_to="staff")
    policy("test.free", allowed_to="tier", tier=tier)
    member, staff = talk.client.user, make_client(is_staff=True).user
    Entitlement.objects.create(user=member, tier=tier)

    def names(user: Any) -> set[str]:
        tools = run_sync(offered_tools.find_granted(("test.send", "test.free"), user_id=user.pk))
        return {tool.name for tool in tools}

    assert (names(member), names(staff)) == ({"test.free"}, {"test.send"})


def test_a_request_cannot_call_a_tool_around_its_approval(mail: Mail, client: Client) -> None:
    from agents.host.model_and_tool_calls import RunHost
    from agents.requests import ToolUse
    from prompts.endpoints.routing import ModelRoute

    host = RunHost(ModelRoute("global:m", "m", ()))
    outcome = run_sync(host.call_tool(ToolUse("test.send", HI)))
    assert outcome.problem is not None
    assert outcome.problem.code == "approval_required"
    assert mail.sent == []


def test_a_call_begun_by_a_lost_worker_is_not_made_again(mail: Mail, talk: Talk, server: Server) -> None:
    """The worker is lost after the approved call has begun: the next one tells, and does not repeat."""
    mail.holds = True
    talk.script(tool_calls(send()), text("I do not know."))
    run = talk.say()
    decide(talk.client, talk.pending()[0], approve=True)
    asyncio.run_coroutine_threadsafe(mail.begun.wait(), server.loop).result(10)
    after = Run.objects.get(client_run_id=f"continue-{run['run_id']}")
    Run.objects.filter(pk=after.pk).update(lease_until=timezone.now(), fence=after.fence + 1)
    done = talk.client.wait_for(after.id.hex, "completed", "failed")
    assert (done["status"], done["attempt"]) == ("completed", 2)
    assert mail.sent == [HI]
    assert json.loads(talk.asked[1][-1]["content"])["error"]["code"] == "tool_outcome_unknown"


def test_the_demo_asks_for_approval_without_a_key(client: Client) -> None:
    accepted = client.start("please approve demo.note buy milk")
    run = client.wait_for(accepted["run_id"], "completed")
    assert run["finish_reason"] == "interrupt"
    (waiting,) = approvals(client, status="pending")
    assert (waiting["tool_name"], waiting["arguments"]) == ("demo.note", {"text": "please buy milk"})
    decide(client, waiting, approve=True)
    after = Run.objects.get(client_run_id=f"continue-{run['run_id']}")
    client.wait_for(after.id.hex, "completed")
    said = Message.objects.filter(run=after, role="assistant").get()
    assert '{"noted":"please buy milk"}' in said.content


def test_a_deleted_conversation_takes_its_approvals_along(mail: Mail, talk: Talk) -> None:
    talk.script(tool_calls(send()))
    talk.say()
    (waiting,) = talk.pending()
    gone = talk.client.http.delete(f"/api/v1/agent/threads/{talk.thread_id}")
    assert gone.status_code == 204
    assert not Interrupt.objects.filter(pk=waiting["id"]).exists()
    assert decide(talk.client, waiting, approve=True).status_code == 404


def resumed(talk: Talk, *answers: dict[str, Any], **more: Any) -> tuple[int, list[dict[str, Any]]]:
    """An AG-UI run that answers interrupts: its status, and its events or its refusal."""
    body = {
        "threadId": talk.thread_id,
        "runId": uuid4().hex,
        "protocolVersion": "1.0",
        "messages": [],
        "forwardedProps": {"model": talk.model},
        "resume": list(answers),
    } | more
    headers = {"Accept": "text/event-stream"}
    path = "/api/v1/agent/ag-ui"
    with talk.client.http.stream("POST", path, json=body, headers=headers) as response:
        if response.status_code != 200:
            return response.status_code, [json.loads(response.read())]
        return 200, [frame.data for frame in read_sse(response)]


def resume(approval: dict[str, Any], payload: Any = None, status: str = "resolved") -> dict[str, Any]:
    return {"interruptId": approval["id"], "status": status, "payload": payload}


def test_an_ag_ui_client_resumes_with_an_edit_in_its_own_run(mail: Mail, talk: Talk) -> None:
    talk.script(tool_calls(send()), text("Sent."))
    talk.say()
    (waiting,) = talk.pending()
    edited = HI | {"to": "bob"}
    status, seen = resumed(talk, resume(waiting, {"approved": True, "arguments": edited}))
    assert (status, seen[-1]["type"], seen[-1]["outcome"]) == (200, "RUN_FINISHED", {"type": "success"})
    assert mail.sent == [edited]
    (result,) = [event for event in seen if event["type"] == "TOOL_CALL_RESULT"]
    assert json.loads(result["content"]) == {"sent_to": "bob"}
    assert Run.objects.filter(thread_id=talk.thread_id).count() == 2


@pytest.mark.parametrize(
    ("payload", "status"), [({"approved": False, "reason": "no"}, "resolved"), (False, "resolved"),
                            ({"reason": "no"}, "cancelled"), (None, "cancelled")],
)  # fmt: skip
def test_an_ag_ui_client_refuses(mail: Mail, talk: Talk, payload: Any, status: str) -> None:
    talk.script(tool_calls(send()), text("Then not."))
    talk.say()
    (waiting,) = talk.pending()
    assert resumed(talk, resume(waiting, payload, status))[0] == 200
    assert mail.sent == []
    assert json.loads(talk.asked[1][-1]["content"])["error"]["code"] == "approval_refused"


@pytest.mark.parametrize("payload", [None, "yes", 1, {}, {"approved": "true"}])
def test_nothing_is_approved_by_accident(mail: Mail, talk: Talk, payload: Any) -> None:
    talk.script(tool_calls(send()))
    talk.say()
    (waiting,) = talk.pending()
    status, (refusal,) = resumed(talk, resume(waiting, payload))
    assert (status, refusal["code"]) == (422, "invalid_answer")
    assert len(talk.pending()) == 1
    assert Run.objects.filter(thread_id=talk.thread_id).count() == 1


def test_a_resume_that_is_refused_starts_no_run_and_decides_nothing(
    mail: Mail, talk: Talk, client: Client, provider: FakeModel, scripted: Callable[..., ScriptedModel]
) -> None:
    talk.script(tool_calls(send("c1"), send("c2")))
    talk.say()
    first, second = talk.pending()
    unknown = {"id": uuid4().hex}
    status, (refusal,) = resumed(talk, resume(first, True), resume(unknown, True))
    assert (status, refusal["code"]) == (404, "approval_not_found")
    assert len(talk.pending()) == 2
    other = Talk(client, provider, scripted)
    other.model = talk.model
    assert resumed(other, resume(first, True))[0] == 404
    decide(client, second, approve=False)
    status, (refusal,) = resumed(talk, resume(first, True), resume(second, True))
    assert (status, refusal["code"]) == (409, "approval_already_answered")
    assert [waiting["id"] for waiting in talk.pending()] == [first["id"]]
    assert mail.sent == []


def test_what_an_ag_ui_client_connects_to_has_the_ids_that_were_streamed(mail: Mail, talk: Talk) -> None:
    talk.script(tool_calls(send()), text("Sent."))
    run = talk.say()
    asked = facts(run, talk.client)
    wire_id = next(event["toolCallId"] for event in asked if event["type"] == "TOOL_CALL_START")
    decide(talk.client, talk.pending()[0], approve=True)
    after = facts(talk.next_run(run), talk.client)
    result_id = next(event["messageId"] for event in after if event["type"] == "TOOL_CALL_RESULT")
    path = f"/api/v1/agent/threads/{talk.thread_id}/connect"
    with talk.client.http.stream("GET", path, headers={"Accept": "text/event-stream"}) as response:
        seen = [frame.data for frame in read_sse(response)]
    (snapshot,) = [event["messages"] for event in seen if event["type"] == "MESSAGES_SNAPSHOT"]
    calls = [call["id"] for message in snapshot for call in message.get("toolCalls") or ()]
    answers = [(m["id"], m["toolCallId"]) for m in snapshot if m["role"] == "tool"]
    assert (calls, answers) == ([wire_id], [(result_id, wire_id)])


@pytest.fixture
def browser() -> Browser:
    """A signed-in superuser's browser."""
    user = get_user_model().objects.create_superuser(username=f"admin-{uuid4().hex}", password="x")
    made = Browser()
    made.force_login(user)
    return made


def page_of(approval: dict[str, Any], name: str) -> str:
    return f"/admin/conversations/interrupt/{UUID(approval['id'])}/{name}"


def test_staff_approve_in_admin_with_other_arguments(mail: Mail, talk: Talk, browser: Browser) -> None:
    talk.script(tool_calls(send()), text("Sent."))
    run = talk.say()
    (waiting,) = talk.pending()
    listed = browser.get("/admin/conversations/interrupt/?status__exact=pending").content.decode()
    assert str(UUID(waiting["id"])) in listed
    assert "Approve or refuse" in browser.get(page_of(waiting, "change/")).content.decode()
    shown = browser.get(page_of(waiting, "decide/")).content.decode()
    assert "test.send" in shown
    assert talk.pending() == [waiting]
    wrong = browser.post(page_of(waiting, "decide/"), {"arguments": '{"to": 7}', "approve": ""})
    assert "is not of type" in wrong.content.decode()
    edited = HI | {"to": "bob"}
    done = browser.post(page_of(waiting, "decide/"), {"arguments": json.dumps(edited), "approve": ""})
    assert done.status_code == 302
    talk.next_run(run)
    assert mail.sent == [edited]
    assert "Approve or refuse" not in browser.get(page_of(waiting, "change/")).content.decode()


def test_staff_refuse_in_admin_with_a_reason(mail: Mail, talk: Talk, browser: Browser) -> None:
    talk.script(tool_calls(send()), text("Then not."))
    run = talk.say()
    (waiting,) = talk.pending()
    given = {"arguments": json.dumps(HI), "reason": "Too late today.", "refuse": ""}
    assert browser.post(page_of(waiting, "decide/"), given).status_code == 302
    talk.next_run(run)
    assert "Too late today." in talk.asked[1][-1]["content"]
    assert mail.sent == []


def test_deciding_in_admin_needs_the_permission(mail: Mail, talk: Talk) -> None:
    talk.script(tool_calls(send()))
    talk.say()
    (waiting,) = talk.pending()
    user = get_user_model().objects.create_user(f"s-{uuid4().hex}", password="x", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_interrupt"))
    browser = Browser()
    browser.force_login(user)
    assert browser.get(page_of(waiting, "change/")).status_code == 200
    given = {"arguments": json.dumps(HI), "approve": ""}
    assert browser.post(page_of(waiting, "decide/"), given).status_code == 403
    assert talk.pending() == [waiting]


def test_a_tool_policy_is_written_in_admin(browser: Browser, policy: Callable[..., None]) -> None:
    given = {"tool": "test.some", "enabled": "on", "requires_approval": "true", "allowed_to": "tier"}
    refused = browser.post("/admin/agents/toolpolicy/add/", given)
    assert "Name the tier." in refused.content.decode()
    saved = browser.post("/admin/agents/toolpolicy/add/", given | {"allowed_to": "everyone"})
    assert saved.status_code == 302
    assert ToolPolicy.objects.get(tool="test.some").requires_approval is True
    assert "test.some" in browser.get("/admin/agents/toolpolicy/").content.decode()
