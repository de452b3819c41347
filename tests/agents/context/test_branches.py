"""Branches of a thread: what a client shows is what the model reads, and every branch is kept.

The bodies are those that `@ag-ui/client` 1.0 and assistant-ui's core (react-ag-ui 0.0.56) send.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client as Browser
from django.test.utils import CaptureQueriesContext
from psycopg import AsyncCursor

from agents.context import thread_history as context
from agents.dialects.ag_ui import dialect as ag_ui
from agents.host.actions import history as host_history
from agents.host_protocol import parameters
from agents.intake import new_messages
from config.database import run_sync
from conversations.admin import conversation_page as told
from conversations.models import Message, Run, Thread
from conversations.threads import history as history_room
from conversations.threads import newest_messages, search
from tests.support.chat import UNSET, Chat, Told, system, user
from tests.support.client import Client, ScriptedModel, read_sse
from tests.support.fakes.fake_model import FakeModel, status, text, tool_calls
from tests.support.host.stage import Stage
from tests.support.mail import HI, Mail, approvals, decide, send

WEATHER = {"name": "get_weather", "description": "The weather", "parameters": {"type": "object"}}
ASKED = tool_calls(("c1", "get_weather", '{"city": "Oslo"}'))


@pytest.fixture
def chat(client: Client, provider: FakeModel, scripted: Callable[..., ScriptedModel]) -> Chat:
    return Chat(client, provider, scripted)


def thread(chat: Chat) -> Thread:
    found: Thread = Thread.objects.get(pk=chat.thread_id)
    return found


def is_branched(chat: Chat) -> bool:
    return thread(chat).fork_run_id is not None


def history(chat: Chat, **more: str) -> list[str]:
    return [one["content"] for one in chat.client.history(chat.thread_id, **more)["messages"]]


def detail(chat: Chat, **more: str) -> dict[str, Any]:
    response = chat.client.http.get(f"/api/v1/agent/threads/{chat.thread_id}", params=more)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


def connected(chat: Chat, **more: str) -> list[dict[str, Any]]:
    """The events of `connect`."""
    path = f"/api/v1/agent/threads/{chat.thread_id}/connect"
    with chat.client.http.stream("GET", path, params=more) as response:
        assert response.status_code == 200, response.read()
        return [frame.data for frame in read_sse(response)]


def snapshot(events: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    [*_, last] = [event["messages"] for event in events if event["type"] == "MESSAGES_SNAPSHOT"]
    return [(one["role"], one.get("content")) for one in last]


def run_of(chat: Chat, number: int) -> str:
    found = Run.objects.get(client_run_id=chat.runs[number], thread_id=chat.thread_id)
    return found.id.hex


# --- one branch: nothing changes --------------------------------------------------------------------


@pytest.mark.parametrize("version", ["1.0", None])
def test_a_conversation_that_goes_on_has_one_branch(chat: Chat, version: str | None) -> None:
    chat.version = version
    chat.say("one")
    chat.say("two")
    assert chat.say("three") == [
        ("user", "one"), ("assistant", "answer 1"), ("user", "two"), ("assistant", "answer 2"),
        ("user", "three"),
    ]  # fmt: skip
    assert not is_branched(chat)
    assert not Run.objects.filter(thread_id=chat.thread_id, continues_run_id__isnull=False).exists()
    assert Message.objects.filter(thread_id=chat.thread_id, role="user").count() == 3
    assert "branches" not in detail(chat)


NEW_ONLY: dict[str, dict[str, Any]] = {
    "as it says": {"props": {"history": "stored"}},
    "of no SDK": {"protocolVersion": None, "tools": UNSET},
}


@pytest.mark.parametrize("more", NEW_ONLY.values(), ids=NEW_ONLY)
def test_a_client_that_sends_only_what_is_new_goes_on_at_the_end(
    chat: Chat, more: dict[str, Any]
) -> None:
    for words in ("one", "one"):
        told = chat.show([user(words)], **more)
    assert told == [("user", "one"), ("assistant", "answer 1"), ("user", "one")]
    assert not is_branched(chat)


def test_the_newer_part_of_a_conversation_is_enough_for_who_says_so(chat: Chat) -> None:
    for words in ("one", "two"):
        chat.say(words)
    newer = chat.messages[2:]
    assert [said for _, said in chat.show([*newer, user("three")], props={"history": "stored"})] == [
        "one", "answer 1", "two", "answer 2", "three",
    ]  # fmt: skip
    assert not is_branched(chat)


def test_a_message_behind_a_running_answer_waits_for_it(
    chat: Chat, scripted: Callable[..., ScriptedModel]
) -> None:
    first = chat.start([user("one", "u1")], scripted("hang-midway").name)
    chat.client.wait_for(first, "running")
    then = chat.start([user("one", "u1"), user("two", "u2")], chat.script(text("then")))
    chat.client.http.post(f"/api/v1/agent/runs/{first}/cancel")
    chat.client.wait_for(then, "completed")
    told = chat.told()
    assert (told[0], told[-1]) == (("user", "one"), ("user", "two"))
    assert not is_branched(chat)


@pytest.mark.parametrize("order", ["call first", "answer only"])
def test_the_answer_of_a_clients_tool_goes_on(chat: Chat, order: str) -> None:
    chat.run([user("weather?")], ASKED, tools=[WEATHER])
    answer = {"id": "t1", "role": "tool", "toolCallId": "c1", "content": "12 °C"}
    shown = [*chat.messages, answer] if order == "call first" else [answer]
    assert chat.show(shown, tools=[WEATHER]) == [
        ("user", "weather?"), ("assistant", "get_weather(c1)"), ("tool", "12 °C"),
    ]  # fmt: skip
    assert chat.say("thanks") == [
        ("user", "weather?"), ("assistant", "get_weather(c1)"), ("tool", "12 °C"),
        ("assistant", "answer 2"), ("user", "thanks"),
    ] if order == "call first" else True  # fmt: skip
    assert not is_branched(chat)


def test_a_run_that_failed_is_tried_again_without_a_branch(chat: Chat) -> None:
    chat.run([user("one")], status(400))
    assert chat.show(chat.messages) == [("user", "one")]
    assert chat.say("two") == [("user", "one"), ("assistant", "answer 2"), ("user", "two")]
    assert not is_branched(chat)


# --- regenerate and edit -----------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["1.0", None])
def test_regenerate_asks_the_question_again_without_the_old_answer(
    chat: Chat, version: str | None
) -> None:
    chat.version = version
    chat.say("one")
    chat.say("two")
    assert chat.show(chat.up_to(2)) == [("user", "one"), ("assistant", "answer 1"), ("user", "two")]
    assert is_branched(chat)
    assert chat.say("three") == [
        ("user", "one"), ("assistant", "answer 1"), ("user", "two"), ("assistant", "answer 3"),
        ("user", "three"),
    ]  # fmt: skip
    kept = Message.objects.filter(thread_id=chat.thread_id, role="assistant").order_by("seq")
    assert [one.content for one in kept] == ["answer 1", "answer 2", "answer 3", "answer 4"]


def test_the_first_answer_is_made_again_and_again(chat: Chat) -> None:
    chat.say("one")
    for _ in range(3):
        assert chat.show(chat.up_to(1)) == [("user", "one")]
    assert chat.say("two") == [("user", "one"), ("assistant", "answer 4"), ("user", "two")]
    assert history(chat) == ["one", "answer 4", "two", "answer 5"]


@pytest.mark.parametrize("message_id", ["the same", "another"])
def test_an_edited_question_replaces_what_followed_it(chat: Chat, message_id: str) -> None:
    chat.say("one")
    chat.say("two")
    old = chat.messages[2]["id"]
    edited = user("TWO", old if message_id == "the same" else None)
    assert chat.show([*chat.messages[:2], edited]) == [
        ("user", "one"), ("assistant", "answer 1"), ("user", "TWO"),
    ]  # fmt: skip
    assert chat.say("three") == [
        ("user", "one"), ("assistant", "answer 1"), ("user", "TWO"), ("assistant", "answer 3"),
        ("user", "three"),
    ]  # fmt: skip
    assert history(chat) == ["one", "answer 1", "TWO", "answer 3", "three", "answer 4"]


@pytest.mark.parametrize("version", ["1.0", None])
@pytest.mark.parametrize("message_id", ["the same", "another"])
def test_the_first_question_is_edited(chat: Chat, message_id: str, version: str | None) -> None:
    chat.version = version
    chat.say("one")
    edited = user("ONE", chat.messages[0]["id"] if message_id == "the same" else None)
    assert chat.show([edited]) == [("user", "ONE")]
    assert chat.say("two") == [("user", "ONE"), ("assistant", "answer 2"), ("user", "two")]
    assert history(chat) == ["ONE", "answer 2", "two", "answer 3"]


def test_an_edit_in_the_middle_keeps_what_the_client_still_shows(chat: Chat) -> None:
    chat.say("one")
    chat.say("two")
    first, *rest = chat.messages
    assert chat.show([first | {"content": "ONE"}, *rest, user("three")]) == [
        ("user", "ONE"), ("assistant", "answer 1"), ("user", "two"), ("assistant", "answer 2"),
        ("user", "three"),
    ]  # fmt: skip
    assert chat.say("four")[-2:] == [("assistant", "answer 3"), ("user", "four")]
    assert len(history(chat)) == 8


def test_an_answer_that_a_client_has_rewritten_is_read_as_it_shows_it(chat: Chat) -> None:
    chat.say("one")
    chat.messages[1] = chat.messages[1] | {"content": "rewritten"}
    assert chat.say("two") == [("user", "one"), ("assistant", "rewritten"), ("user", "two")]
    assert chat.say("three")[:3] == [("user", "one"), ("assistant", "rewritten"), ("user", "two")]


def test_an_answer_that_a_client_has_cut_off_is_no_branch(chat: Chat) -> None:
    chat.say("one", answer="a long answer")
    chat.messages[1] = chat.messages[1] | {"content": "a long"}
    assert chat.say("two") == [("user", "one"), ("assistant", "a long answer"), ("user", "two")]
    assert not is_branched(chat)


def test_what_a_client_reorders_is_read_in_its_order(chat: Chat) -> None:
    chat.say("one")
    chat.say("two")
    first, second = chat.messages[:2], chat.messages[2:]
    assert [said for _, said in chat.show([*second, *first, user("three")])] == [
        "two", "answer 2", "one", "answer 1", "three",
    ]  # fmt: skip


def test_an_exchange_that_a_client_forgets_is_not_read(chat: Chat) -> None:
    for words in ("one", "two", "three"):
        chat.say(words)
    middle = [*chat.messages[:2], *chat.messages[4:]]
    assert [said for _, said in chat.show([*middle, user("four")])] == [
        "one", "answer 1", "three", "answer 3", "four",
    ]  # fmt: skip
    beginning = chat.messages[2:]
    assert [said for _, said in chat.show([*beginning, user("five")])] == [
        "three", "answer 3", "four", "answer 4", "five",
    ]  # fmt: skip


def test_a_question_is_asked_again_while_its_answer_is_being_made(
    chat: Chat, scripted: Callable[..., ScriptedModel]
) -> None:
    question = user("one")
    live = chat.start([question], scripted("hang-midway").name)
    chat.client.wait_for(live, "running")
    again = chat.start([question], chat.script(text("anew")))
    chat.client.http.post(f"/api/v1/agent/runs/{live}/cancel")
    chat.client.wait_for(again, "completed")
    assert chat.told() == [("user", "one")]
    assert history(chat) == ["one", "anew"]


def test_a_branch_that_was_left_is_gone_on_with(chat: Chat) -> None:
    chat.say("one")
    older = [*chat.messages]
    chat.show(chat.up_to(1))
    assert chat.show([*older, user("two")]) == [
        ("user", "one"), ("assistant", "answer 1"), ("user", "two"),
    ]  # fmt: skip
    assert history(chat) == ["one", "answer 1", "two", "answer 3"]
    assert Message.objects.filter(thread_id=chat.thread_id, content="answer 1").count() == 1


def test_an_image_of_a_kept_question_is_shown_again_though_its_url_is_old(chat: Chat) -> None:
    from tests.support.pictures import small_png

    sent = chat.client.http.post("/api/v1/agent/attachments", files={"file": ("x.png", small_png())})
    url = sent.json()["url"]

    def shown(address: str, words: str) -> list[dict[str, Any]]:
        image = {"type": "image", "source": {"type": "url", "value": address, "mimeType": "image/png"}}
        return [{"type": "text", "text": words}, image]

    old = url.partition("?token=")[0] + "?token=" + "x" * 20
    chat.show([user(shown(url, "what?"), "u1")])
    assert chat.show([user(shown(old, "what?"), "u1")]) == [("user", "what?")]
    assert chat.show([user(shown(old, "WHAT?"), "u1")]) == [("user", "WHAT?")]
    kept = Message.objects.filter(thread_id=chat.thread_id, role="user").order_by("seq")
    files = [one.metadata["user_message_attachments"]["path"] for one in kept]
    assert files == [sent.json()["path"]] * 3
    body = chat.body([user(shown(old, "what?"), "u2")], chat.script(text("no")))
    refused = chat.client.http.post("/api/v1/agent/ag-ui", json=body)
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_binary_url")


# --- system messages ----------------------------------------------------------------------------------


def test_a_system_message_that_is_new_or_changed_leads_what_the_model_reads(chat: Chat) -> None:
    chat.say("one")
    chat.messages.insert(0, system("be brief", "s1"))
    assert chat.say("two") == [
        ("system", "be brief"), ("user", "one"), ("assistant", "answer 1"), ("user", "two"),
    ]  # fmt: skip
    chat.messages[0] = system("be long", "s1")
    assert chat.say("three")[:2] == [("system", "be long"), ("user", "one")]
    assert [role for role, _ in chat.say("four")].count("system") == 1
    assert chat.told()[0] == ("system", "be long")
    assert snapshot(connected(chat))[0] == ("system", "be long")
    assert [one["role"] for one in detail(chat)["messages"]].count("system") == 1
    assert not is_branched(chat)
    assert history(chat)[:3] == ["one", "answer 1", "two"]


def test_the_same_system_message_under_a_new_id_is_told_once(chat: Chat) -> None:
    for words in ("one", "two", "three"):
        chat.messages = [system("be brief"), *(m for m in chat.messages if m["role"] != "system")]
        assert [role for role, _ in chat.say(words)].count("system") == 1
    assert Message.objects.filter(thread_id=chat.thread_id, role="system").count() == 1


def test_a_system_message_that_is_taken_away_is_not_read(chat: Chat) -> None:
    chat.show([system("be brief"), user("one")])
    del chat.messages[0]
    assert chat.say("two") == [("user", "one"), ("assistant", "answer 1"), ("user", "two")]
    assert [role for role, _ in snapshot(connected(chat))] == [
        "user", "assistant", "user", "assistant",
    ]  # fmt: skip


def test_a_branch_has_the_system_message_that_it_was_begun_with(chat: Chat) -> None:
    chat.show([system("be brief", "s"), user("one")])
    chat.messages[0] = system("be long", "s")
    chat.say("two")
    first = run_of(chat, 0)
    assert snapshot(connected(chat, branch=first))[0] == ("system", "be brief")
    assert snapshot(connected(chat))[0] == ("system", "be long")


# --- parentRunId ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("shown", ["all", "only what is new"])
def test_parent_run_id_goes_on_from_that_run(chat: Chat, shown: str) -> None:
    chat.say("one")
    chat.say("two")
    before = chat.messages[:2] if shown == "all" else []
    assert chat.show([*before, user("other")], parentRunId=chat.runs[0]) == [
        ("user", "one"), ("assistant", "answer 1"), ("user", "other"),
    ]  # fmt: skip
    assert is_branched(chat)
    assert chat.show([user("more")], parentRunId=run_of(chat, 1)) == [
        ("user", "one"), ("assistant", "answer 1"), ("user", "two"), ("assistant", "answer 2"),
        ("user", "more"),
    ]  # fmt: skip


def test_parent_run_id_of_the_newest_run_is_no_branch(chat: Chat) -> None:
    chat.say("one")
    chat.say("two", parentRunId=chat.runs[0])
    assert not is_branched(chat)


def test_a_parent_run_id_that_is_no_run_of_the_conversation_is_refused(chat: Chat) -> None:
    chat.say("one")
    body = chat.body([*chat.messages, user("two")], chat.script(text("no")), parentRunId="nobody")
    refused = chat.client.http.post("/api/v1/agent/ag-ui", json=body)
    assert (refused.status_code, refused.json()["code"]) == (422, "parent_run_not_found")
    other = chat.body([user("two")], chat.script(text("yes")), parentRunId="x", threadId=str(uuid4()))
    headers = {"Accept": "application/json"}
    begun = chat.client.http.post("/api/v1/agent/ag-ui", json=other, headers=headers)
    assert begun.status_code == 202


# --- tools ---------------------------------------------------------------------------------------------


def test_regenerate_drops_the_calls_with_the_answer(chat: Chat, mail: Mail) -> None:
    free = tool_calls(("c1", "test.free", json.dumps(HI)))
    chat.run([user("write")], free, text("Written."))
    assert [one["role"] for one in chat.messages] == ["user", "assistant", "tool", "assistant"]
    assert chat.show(chat.up_to(1)) == [("user", "write")]


def test_a_client_that_keeps_the_calls_and_drops_the_answer(chat: Chat, mail: Mail) -> None:
    free = tool_calls(("c1", "test.free", json.dumps(HI)))
    chat.run([user("write")], free, text("Written."))
    told = chat.show(chat.messages[:-1])
    assert [role for role, _ in told] == ["user", "assistant", "tool"]
    assert told[-1] == ("tool", '{"sent_to":"ann"}')
    assert len(mail.sent) == 1
    told = chat.say("thanks")
    assert [role for role, _ in told] == ["user", "assistant", "tool", "assistant", "user"]
    counted = Message.objects.filter(thread_id=chat.thread_id, tool_ok__isnull=False)
    assert [one.run_id for one in counted] == [UUID(run_of(chat, 0))], "what is repeated is no call"
    with_stage = Message.objects.filter(thread_id=chat.thread_id, stage="tool_execution")
    assert with_stage.count() == 1
    assert Message.objects.filter(thread_id=chat.thread_id, role="tool").count() == 2


def merged(chat: Chat) -> list[dict[str, Any]]:
    """The messages as assistant-ui sends them: a run's is one message, its tools' answers follow."""
    found: list[dict[str, Any]] = []
    for one in chat.messages:
        if one["role"] == "user":
            found.append(one)
        elif one["role"] == "tool":
            found.append(one | {"id": f"{one['toolCallId']}:tool"})
        elif found and found[-1]["role"] != "user" and "toolCalls" in one:
            found[-1]["toolCalls"] += one["toolCalls"]
        else:
            at = next((p for p, m in enumerate(found) if m["role"] == "assistant"), None)
            last = found[at] if at is not None and found[-1]["role"] != "user" else None
            if last is None:
                found.append({"content": "", "toolCalls": []} | one)
            else:
                last["content"] = "\n".join(filter(None, [last["content"], one["content"]]))
    return [{key: value for key, value in one.items() if value != []} for one in found]


def test_assistant_ui_sends_a_run_as_one_message(chat: Chat, mail: Mail) -> None:
    free = tool_calls(("c1", "test.free", json.dumps(HI)))
    chat.run([user("write")], free, text("Written."))
    sent = merged(chat)
    assert [one["role"] for one in sent] == ["user", "assistant", "tool"]
    assert sent[1]["content"] == "Written."
    told = chat.show([*sent, user("thanks")])
    assert [role for role, _ in told] == ["user", "assistant", "tool", "assistant", "user"]
    assert not is_branched(chat)
    assert chat.show(sent[:1]) == [("user", "write")]


# --- approvals ---------------------------------------------------------------------------------------


def test_a_call_that_waits_in_a_branch_is_told_there_only(chat: Chat, mail: Mail) -> None:
    chat.run([user("write")], tool_calls(send()), text("Sent."))
    [waiting] = approvals(chat.client, status="pending")
    first = run_of(chat, 0)
    before = [*chat.messages]
    assert chat.show([chat.messages[0] | {"content": "wait"}]) == [("user", "wait")]
    assert [one["id"] for one in approvals(chat.client, status="pending")] == [waiting["id"]]
    assert mail.sent == []
    assert decide(chat.client, waiting, approve=True).status_code == 200
    after = Run.objects.get(client_run_id=f"continue-{first}")
    chat.client.wait_for(after.id.hex, "completed")
    assert mail.sent == [HI]
    assert after.continues_run_id is not None
    assert after.continues_run_id.hex == first
    told = chat.show([*before, user("thanks")])
    assert ("user", "wait") not in told


def test_resume_goes_on_in_the_branch_that_asked(chat: Chat, mail: Mail) -> None:
    chat.run([user("write")], tool_calls(send()), text("Sent."))
    [waiting] = approvals(chat.client, status="pending")
    asked = [*chat.messages]
    chat.show([chat.messages[0] | {"content": "wait"}])
    answer = {"interruptId": waiting["id"], "status": "resolved", "payload": {"approved": True}}
    for messages in (asked, []):
        told = chat.show(messages, resume=[answer] if messages else [])
        if messages:
            assert [role for role, _ in told] == ["user", "assistant", "tool"]
    assert mail.sent == [HI]


# --- what is read ------------------------------------------------------------------------------------


def test_history_search_and_snapshots_read_the_branch_last_continued(chat: Chat) -> None:
    chat.say("common apples", answer="first pears")
    chat.show(chat.up_to(1), answer="second plums")
    first, second = run_of(chat, 0), run_of(chat, 1)
    assert history(chat) == ["common apples", "second plums"]
    assert history(chat, branch=first) == ["common apples", "first pears"]
    assert history(chat, branch=chat.runs[1]) == ["common apples", "second plums"]

    def found(words: str) -> list[str]:
        params = {"q": words, "threadId": chat.thread_id}
        response = chat.client.http.get("/api/v1/agent/history/search", params=params)
        return [one["role"] for one in response.json()["results"]]

    assert (found("plums"), found("pears"), found("apples")) == (["assistant"], [], ["user"])
    assert snapshot(connected(chat)) == [("user", "common apples"), ("assistant", "second plums")]
    older = snapshot(connected(chat, branch=first))
    assert older == [("user", "common apples"), ("assistant", "first pears")]
    now = detail(chat)
    assert [one["content"] for one in now["messages"]] == ["common apples", "second plums"]
    assert now["branch"] == second
    assert [(one["runId"], one["question"]) for one in now["branches"]] == [
        (second, "common apples"), (first, "common apples"),
    ]  # fmt: skip
    assert [one["content"] for one in detail(chat, branch=first)["messages"]][1] == "first pears"
    chat.show([chat.messages[0], detail(chat, branch=first)["messages"][1], user("and?")])
    assert history(chat) == ["common apples", "first pears", "and?", "answer 3"]
    assert (found("plums"), found("pears")) == ([], ["assistant"])


def test_a_branch_is_named_by_a_run_of_the_thread(
    chat: Chat, client: Client, make_client: Callable[..., Client]
) -> None:
    chat.say("one")
    other = client.start("elsewhere")
    run_id = run_of(chat, 0)
    path, named = f"/api/v1/agent/threads/{chat.thread_id}", {"threadId": chat.thread_id}
    for branch in ("nobody", other["run_id"]):
        for address, params in (
            ("/api/v1/agent/history", named), (path, {}), (f"{path}/connect", {}),
        ):  # fmt: skip
            refused = client.http.get(address, params=params | {"branch": branch})
            assert (refused.status_code, refused.json()["code"]) == (404, "run_not_found")
    alone = client.http.get("/api/v1/agent/history", params={"branch": run_id})
    assert (alone.status_code, alone.json()["code"]) == (422, "branch_needs_thread")
    stranger = make_client()
    assert stranger.http.get(path, params={"branch": run_id}).status_code == 404


def test_a_client_that_comes_back_is_shown_its_own_branch(chat: Chat) -> None:
    chat.say("one")
    question = chat.up_to(1)
    body = chat.body(question, chat.script(text("again")))
    headers = {"Accept": "text/event-stream"}
    for _ in range(2):
        with chat.client.http.stream(
            "POST", "/api/v1/agent/ag-ui", json=body, headers=headers
        ) as response:
            events = [frame.data for frame in read_sse(response)]
    assert snapshot(events) == [("user", "one"), ("assistant", "again")]
    assert Run.objects.filter(thread_id=chat.thread_id).count() == 2


def test_each_branch_has_its_own_state(chat: Chat) -> None:
    chat.say("one", state={"n": 1})
    chat.say("two", state={"n": 2})
    events = chat.run(chat.up_to(1) + chat.messages[1:2] + [user("other")], text("a"))
    assert [e["snapshot"] for e in events if e["type"] == "STATE_SNAPSHOT"] == [{"n": 1}]
    assert detail(chat)["state"] == {"n": 1}
    assert detail(chat, branch=chat.runs[1])["state"] == {"n": 2}
    events = chat.run([*chat.messages, user("more")], text("a"))
    assert [e["snapshot"] for e in events if e["type"] == "STATE_SNAPSHOT"] == [{"n": 1}]


def test_a_title_stays_and_a_deleted_thread_takes_all_branches_along(chat: Chat) -> None:
    chat.say("one")
    chat.show([chat.messages[0] | {"content": "ONE"}])
    assert thread(chat).title == "one"
    path = f"/api/v1/agent/threads/{chat.thread_id}"
    assert chat.client.http.delete(path).status_code == 204
    assert not Run.objects.filter(thread_id=chat.thread_id).exists()


def test_admin_shows_that_there_are_other_branches_and_opens_them(chat: Chat) -> None:
    staff = Browser()
    staff.force_login(
        get_user_model().objects.create_superuser(username=f"a-{uuid4().hex}", password="x")
    )
    path = f"/admin/conversations/thread/{chat.thread_id}/change/"
    chat.say("one", answer="first pears")
    assert "branches" not in staff.get(path).content.decode().partition('id="transcript"')[2]
    chat.show([chat.messages[0] | {"content": "ONE <i>"}], answer="second plums")
    page = staff.get(path).content.decode()
    assert "has 2 branches" in page
    assert "second plums" in page
    assert "first pears" not in page
    assert "ONE &lt;i&gt;" in page
    first = run_of(chat, 0)
    assert f'href="?branch={first}"' in page
    other = staff.get(f"{path}?branch={first}").content.decode()
    assert ("first pears" in other, "second plums" in other) == (True, False)
    for nonsense in ("x", uuid4().hex):
        assert "second plums" in staff.get(f"{path}?branch={nonsense}").content.decode()


# --- the Responses API --------------------------------------------------------------------------------


class Responses:
    """A client of the Responses API with a scripted model."""

    def __init__(self, chat: Chat) -> None:
        self._chat = chat

    def create(self, words: Any, previous: str | None = None, **more: Any) -> tuple[str, Told]:
        asked = {"model": self._chat.script(text(f"to {words}")), "input": words} | more
        asked |= {"previous_response_id": previous} if previous else {}
        response = self._chat.client.http.post("/v1/responses", json=asked)
        assert response.status_code == 200, response.text
        return response.json()["id"], self._chat.told()


def test_the_id_of_an_older_response_forks(chat: Chat) -> None:
    responses = Responses(chat)
    a, _ = responses.create("A")
    b, told = responses.create("B", a)
    assert told == [("user", "A"), ("assistant", "to A"), ("user", "B")]
    found = Run.objects.get(pk=a.removeprefix("resp_")).thread
    assert found.fork_run_id is None
    c, told = responses.create("C", a)
    assert told == [("user", "A"), ("assistant", "to A"), ("user", "C")]
    _, told = responses.create("D", c)
    assert [said for _, said in told] == ["A", "to A", "C", "to C", "D"]
    _, told = responses.create("E", b)
    assert [said for _, said in told] == ["A", "to A", "B", "to B", "E"]
    found.refresh_from_db()
    assert found.fork_run_id is not None


def test_branches_that_run_beside_each_other_do_not_see_each_other(chat: Chat) -> None:
    responses = Responses(chat)
    a, _ = responses.create("A")
    asked = []
    for words in ("B", "C", "D"):
        model = chat.script(text("done"))
        body = {"model": model, "input": words, "previous_response_id": a, "background": True}
        asked.append((chat.client.http.post("/v1/responses", json=body).json()["id"], chat._model))
    for number, (response_id, model) in enumerate(asked):
        chat.client.wait_for(response_id.removeprefix("resp_"), "completed")
        chat._model = model
        expected = [("user", "A"), ("assistant", "to A"), ("user", "BCD"[number])]
        assert chat.told() == expected


def test_an_item_that_another_branch_holds_is_not_left_out(chat: Chat) -> None:
    responses = Responses(chat)
    a, _ = responses.create("A")
    items = [
        {"id": "m1", "type": "message", "role": "user", "content": "one"},
        {"id": "m2", "type": "message", "role": "user", "content": "two"},
    ]
    responses.create(items, a)
    _, told = responses.create(items, a)
    assert [said for _, said in told] == ["A", "to A", "one", "two"]


# --- what it costs, and what else reads a thread -----------------------------------------------------


_counting: ContextVar[list[str] | None] = ContextVar("counting", default=None)


@pytest.fixture
def count(monkeypatch: pytest.MonkeyPatch) -> Callable[[Coroutine[Any, Any, Any]], int]:
    """How many statements a coroutine makes; those of others at the same time are not counted."""
    execute = AsyncCursor.execute

    async def counted(self: Any, query: Any, *given: Any, **more: Any) -> Any:
        made = _counting.get()
        if made is not None:
            made.append(str(query))
        return await execute(self, query, *given, **more)

    monkeypatch.setattr(AsyncCursor, "execute", counted)

    async def within(work: Coroutine[Any, Any, Any], made: list[str]) -> None:
        _counting.set(made)
        await work

    def run(work: Coroutine[Any, Any, Any]) -> int:
        made: list[str] = []
        run_sync(within(work, made))
        return len(made)

    return run


def shown_again(chat: Chat) -> Any:
    """The request with which a client goes on."""
    body = chat.body([*chat.messages, user("more")], "demo")
    return ag_ui.parse(body, request_id="r")


def test_a_thread_of_one_branch_is_read_with_as_many_statements_as_ever(
    chat: Chat, count: Callable[[Coroutine[Any, Any, Any]], int]
) -> None:
    """The numbers are those of a thread before there were branches."""
    chat.say("one")
    chat.say("two")
    owner, thread_id, run = chat.client.user.pk, UUID(chat.thread_id), Run.objects.latest("created_at")

    def counted() -> dict[str, int]:
        before = {"thread_id": thread_id, "run_id": run.pk}
        works: dict[str, Coroutine[Any, Any, Any]] = {
            "history": history_room.fetch_history_day(owner, thread_id=thread_id, before=None),
            "head": newest_messages.fetch_thread_head(thread_id, owner_id=owner),
            "messages": newest_messages.fetch_messages(thread_id, owner_id=owner),
            "context": context.read_history(**before, before=99, budget=9_999),  # type: ignore[arg-type]
            "request": new_messages.with_new_messages(
                shown_again(chat), owner_id=owner, thread_id=thread_id
            ),
            "search": search.search(owner, "answer", thread_id=thread_id, limit=None, cursor=None),
        }
        return {name: count(work) for name, work in works.items()}

    assert counted() == {
        "history": 2, "head": 1, "messages": 1, "context": 2, "request": 1, "search": 4,
    }  # fmt: skip
    with CaptureQueriesContext(connection) as one:
        told.fetch_page(thread_id)
    chat.show(chat.up_to(2))
    assert counted()["history"] == 3
    with CaptureQueriesContext(connection) as branched:
        told.fetch_page(thread_id)
    assert (len(one), len(branched)) == (4, 6)


def test_a_runner_reads_the_history_of_its_own_branch(chat: Chat) -> None:
    chat.say("one", answer="first pears")
    chat.show(chat.up_to(1), answer="second plums")
    stage = Stage(chat.client.user, thread(chat), Run.objects.get(client_run_id=chat.runs[1]))
    stage.run.thread_seq += 1  # as one that comes after it would see it
    session = stage.session()
    page = run_sync(host_history.page(session, parameters.PageHistory()))
    assert "first pears" not in [item.content for item in page.items]
    found = run_sync(host_history.search(session, parameters.SearchHistory(query="pears")))
    assert found.items == ()
    stage.close()


def test_a_summary_is_told_only_where_it_belongs(chat: Chat) -> None:
    for words in ("one", "two"):
        chat.say(words)
    second = Run.objects.get(client_run_id=chat.runs[1])
    chat.show([*chat.up_to(1), chat.messages[1], user("other")])
    place = context.Summary("They said two.", (second.thread_seq, second.pk, 2**31 - 1))
    run_sync(context.keep_summary(UUID(chat.thread_id), place))

    def read(run_id: UUID) -> tuple[bool, list[str]]:
        work = context.read_history(
            UUID(chat.thread_id), before=999, run_id=run_id, budget=9_999, summaries=True
        )
        found = run_sync(work)
        return found.summary is not None, [message.content for message in found.messages]

    third = Run.objects.get(client_run_id=chat.runs[2])
    assert read(third.pk) == (False, ["one", "answer 1", "other", "answer 3"])
    assert read(second.pk) == (True, [])
