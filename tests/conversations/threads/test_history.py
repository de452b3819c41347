"""History over real HTTP: one day at a time, both forms, nobody else's (specs/run-agent-input.md §4)."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from conversations import attachments
from conversations.threads import history_message
from tests.support.client import Client
from tests.support.conversation import NOON, Conversation
from tests.support.refusals import check_error

PATH = "/api/v1/agent/history"


def contents(day: dict[str, Any]) -> list[str]:
    return [message["content"] for message in day["messages"]]


@pytest.fixture
def signed(monkeypatch: pytest.MonkeyPatch) -> None:
    """URLs that differ at every signing, as real ones do."""
    count = iter(range(1_000_000))
    monkeypatch.setattr(
        attachments, "sign_url", lambda bucket, path: f"https://x/{bucket}/{path}?token={next(count)}"
    )


def test_days_are_paged_from_the_newest_to_the_oldest(client: Client) -> None:
    said = Conversation(client.user)
    for days, text in ((3, "a"), (3, "b"), (1, "c"), (0, "d")):
        said.say(text, at=NOON - timedelta(days=days))
    seen, before = [], dict[str, str]()
    while True:
        day = client.history(said.id, **before)
        seen.append((day["day"], contents(day), day["hasMore"]))
        if not day["hasMore"]:
            break
        before = {"before": day["day"]}
    assert seen == [
        ("2026-03-15", ["d"], True),
        ("2026-03-14", ["c"], True),
        ("2026-03-12", ["a", "b"], False),
    ]
    assert client.history(said.id, before="2026-03-14")["day"] == "2026-03-12"
    assert client.history(said.id, before="2026-03-12") == {
        "scope": "history_day",
        "threadId": said.id,
        "day": None,
        "hasMore": False,
        "messages": [],
    }


def test_each_role_has_its_own_form(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        history_message,
        "ui_schema_for",
        lambda metadata, role: card(role, metadata[f"{KEYS[role]}"]),
    )
    said = Conversation(client.user)
    said.say("hello", client_id="msg-001", metadata={"run_id": "r"})
    called = said.say(
        "found",
        role="tool",
        metadata={"tool_agent_output": {"ok": True, "result": {"big": 1}, "ui_hints": {"title": "t"}}},
    )
    said.say("thinking", role="reasoning")
    said.say("instructions", role="system")
    answered = said.say(
        "done",
        role="assistant",
        metadata={"worker_agent_output": {"answer": "done", "ui_hints": {"body": "b"}}},
    )
    plain = said.say("", role="assistant", metadata={"worker_agent_output": {"answer": ""}})
    at = {"timestamp": "2026-03-15T12:00:00Z"}
    assert client.history(said.id)["messages"] == [
        {"id": "msg-001", "seq": 1, "role": "user", "content": "hello", "url": None} | at,
        {"id": str(called.pk), "seq": 2, "role": "tool", "content": "found"}
        | {"uiSchema": card("tool", {"ok": True, "ui_hints": {"title": "t"}})}
        | at,
        {"id": str(answered.pk), "seq": 5, "role": "assistant", "content": "done"}
        | {"uiSchema": card("assistant", {"ui_hints": {"body": "b"}})}
        | at,
        {"id": str(plain.pk), "seq": 6, "role": "assistant", "content": "", "uiSchema": None} | at,
    ]


def card(role: str, shown: Any) -> dict[str, Any]:
    """A card that says what it was made of."""
    root = {"type": "stack", "children": [{"type": "text", "content": json.dumps([role, shown])}]}
    return {"version": "2.0", "locale": "en", "status": "info", "theme": "default", "root": root}


KEYS = {"tool": "tool_agent_output", "assistant": "worker_agent_output"}


def test_hints_come_as_the_seeds_card(client: Client) -> None:
    hints = {"status": "success", "title": "日程已创建", "body": "您的会议日程创建成功"}
    said = Conversation(client.user)
    said.say(
        "好的", role="assistant", metadata={"worker_agent_output": {"answer": "", "ui_hints": hints}}
    )
    (message,) = client.history(said.id)["messages"]
    assert message["uiSchema"] == {
        "version": "2.0",
        "locale": "zh-CN",
        "status": "success",
        "theme": "default",
        "root": {
            "type": "stack",
            "appearance": "card",
            "children": [
                {"type": "text", "content": "日程已创建", "role": "title"},
                {"type": "badge", "label": "SUCCESS", "status": "success"},
                {"type": "text", "content": "您的会议日程创建成功", "role": "body"},
            ],
        },
    }


ONE = {"bucket": "agent-files", "path": "agent-inputs/u/t/r/1.jpg", "mime_type": "image/jpeg"}
TWO = ONE | {"path": "agent-inputs/u/t/r/2.png", "mime_type": "image/png"}


@pytest.mark.parametrize("attached", [ONE, [ONE], [ONE, TWO]])
def test_urls_are_signed_anew_at_every_reading(client: Client, signed: None, attached: Any) -> None:
    said = Conversation(client.user)
    said.say("look", metadata={"user_message_attachments": attached})
    urls = [client.history(said.id)["messages"][0]["url"] for _ in range(2)]
    assert urls[0] != urls[1]
    assert {url.split("?")[0] for url in urls} == {"https://x/agent-files/agent-inputs/u/t/r/1.jpg"}
    blocks = client.history(said.id, content="blocks")["messages"][0]["content"]
    count = len(attached) if isinstance(attached, list) else 1
    assert [block["type"] for block in blocks] == ["text"] + ["binary"] * count
    assert blocks[0] == {"type": "text", "text": "look"}
    assert [block["mimeType"] for block in blocks[1:]] == ["image/jpeg", "image/png"][:count]
    assert [block["url"].split("?")[0][-5:] for block in blocks[1:]] == ["1.jpg", "2.png"][:count]


@pytest.mark.parametrize(
    "attached", ["x", 5, [None, {}, {"bucket": 1, "path": "p"}], {"path": "p"}, [[]]]
)
def test_what_is_no_attachment_is_left_out(client: Client, signed: None, attached: Any) -> None:
    said = Conversation(client.user)
    said.say("look", metadata={"user_message_attachments": attached})
    assert client.history(said.id)["messages"][0]["url"] is None
    blocks = client.history(said.id, content="blocks")["messages"][0]["content"]
    assert blocks == [{"type": "text", "text": "look"}]


def test_a_message_of_files_alone_has_no_text_block(client: Client, signed: None) -> None:
    said = Conversation(client.user)
    said.say("", metadata={"user_message_attachments": ONE})
    assert client.history(said.id)["messages"][0]["content"] == ""
    (block,) = client.history(said.id, content="blocks")["messages"][0]["content"]
    assert block["type"] == "binary"


def test_of_a_day_the_newest_500_are_kept(client: Client) -> None:
    said = Conversation(client.user)
    said.say_much([str(number) for number in range(500)])
    day = client.history(said.id)
    assert (len(day["messages"]), day["hasMore"]) == (500, False)
    said.say("500", at=NOON + timedelta(hours=1))
    day = client.history(said.id)
    assert contents(day) == [str(number) for number in range(1, 501)]
    assert [message["seq"] for message in day["messages"]] == list(range(2, 502))
    assert day["hasMore"]


def test_a_day_of_more_than_500_messages_is_read_whole(client: Client) -> None:
    said = Conversation(client.user)
    said.say("the day before", at=NOON - timedelta(days=1))
    for number in range(1_203):  # many at one time, and times that are not in the order of seq
        said.say(str(number), at=NOON + timedelta(seconds=number // 700 if number != 40 else 900))
    parts = [client.history(said.id)]
    while "nextBefore" in parts[-1]:
        assert parts[-1]["hasMore"]
        parts.append(client.history(said.id, before=parts[-1]["nextBefore"]))
    assert [(part["day"], len(part["messages"])) for part in parts] == [
        ("2026-03-15", 500),
        ("2026-03-15", 500),
        ("2026-03-15", 203),
    ]
    seen = [int(content) for part in parts for content in contents(part)]
    assert sorted(seen) == list(range(1_203))
    assert parts[-1]["hasMore"]
    assert contents(client.history(said.id, before=parts[-1]["day"])) == ["the day before"]


def test_messages_are_in_the_order_of_seq_even_if_their_times_are_not(client: Client) -> None:
    said = Conversation(client.user)
    for minutes in (2, 1, 3):
        said.say(str(minutes), at=NOON + timedelta(minutes=minutes))
    assert contents(client.history(said.id)) == ["2", "1", "3"]


def test_a_day_begins_at_midnight_in_the_servers_time_zone(client: Client, settings: Any) -> None:
    said = Conversation(client.user)
    midnight = datetime(2026, 3, 15, 16, tzinfo=UTC)  # in Shanghai the 16th begins
    said.say("before", at=midnight - timedelta(microseconds=1))
    said.say("after", at=midnight)
    assert contents(client.history(said.id)) == ["before", "after"]
    settings.TIME_ZONE = "Asia/Shanghai"
    newest = client.history(said.id)
    assert (newest["day"], contents(newest), newest["hasMore"]) == ("2026-03-16", ["after"], True)
    older = client.history(said.id, before="2026-03-16")
    assert (older["day"], contents(older), older["hasMore"]) == ("2026-03-15", ["before"], False)
    assert older["messages"][0]["timestamp"] == "2026-03-15T15:59:59.999999Z"


@pytest.mark.parametrize("zone", ["Asia/Shanghai", "America/Los_Angeles", "Pacific/Kiritimati", "UTC"])
def test_the_ends_of_time_are_days_too(client: Client, settings: Any, zone: str) -> None:
    settings.TIME_ZONE = zone
    said = Conversation(client.user)
    said.say("now")
    assert client.history(said.id, before="0001-01-01")["messages"] == []
    assert contents(client.history(said.id, before="9999-12-31")) == ["now"]


def test_a_day_whose_midnight_does_not_exist_is_whole(client: Client, settings: Any) -> None:
    settings.TIME_ZONE = "America/Havana"  # on 2026-03-08 the clocks go from 00:00 to 01:00
    said = Conversation(client.user)
    said.say("the day before", at=datetime(2026, 3, 8, 4, 59, tzinfo=UTC))
    said.say("its first minute", at=datetime(2026, 3, 8, 5, 0, tzinfo=UTC))
    said.say("its last minute", at=datetime(2026, 3, 9, 3, 59, tzinfo=UTC))
    assert contents(client.history(said.id)) == ["its first minute", "its last minute"]
    assert contents(client.history(said.id, before="2026-03-08")) == ["the day before"]


@pytest.mark.parametrize(
    "before",
    [
        "2026-1-1",
        "MTIzNA",
        "WzEyMzQ1Njc4OTBd",
        "20260101",
        "2026-W01-1",
        "2026-02-30",
        "0000-01-01",
        "10000-01-01",
        "٢٠٢٦-٠١-٠١",
    ],
)
def test_only_a_whole_date_is_one(client: Client, before: str) -> None:
    refused = client.http.get(PATH, params={"before": before})
    assert check_error(refused, 422, "invalid_before")["detail"] == "before must be YYYY-MM-DD"


def test_an_unknown_form_is_refused(client: Client) -> None:
    check_error(client.http.get(PATH, params={"content": "html"}), 422, "invalid_content")


def test_without_a_thread_the_newest_that_is_not_archived_is_shown(client: Client) -> None:
    older = Conversation(client.user, updated_at=NOON)
    newer = Conversation(client.user, updated_at=NOON + timedelta(days=1), archived_at=NOON)
    older.say("older")
    newer.say("newer")
    assert client.history()["threadId"] == older.id
    assert contents(client.history(newer.id)) == ["newer"]


@pytest.mark.parametrize("form", ["text", "blocks"])
def test_a_foreign_thread_does_not_exist(make_client: Callable[..., Client], form: str) -> None:
    mine, other = make_client(), make_client()
    said = Conversation(other.user)
    said.say("secret")
    for thread in (said.id, str(uuid4()), "thread-123", "\x00"):
        refused = mine.http.get(PATH, params={"threadId": thread, "content": form})
        check_error(refused, 404, "thread_not_found")


def test_other_methods_are_refused(client: Client) -> None:
    check_error(client.http.post(PATH, json={}), 405, "method_not_allowed")
