"""Search over real HTTP: Chinese and English, newest first, page by page, whatever is asked."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as effort
from hypothesis import strategies as some

from config import database, sql
from conversations.models import Message
from conversations.threads import search
from conversations.threads.search_terms import make_terms
from conversations.upkeep import rounds
from tests.support.client import Client
from tests.support.conversation import NOON, Conversation
from tests.support.properties.effort import examples
from tests.support.refusals import check_error

PATH = "/api/v1/agent/history/search"


def page(client: Client, q: str, **more: Any) -> dict[str, Any]:
    response = client.http.get(PATH, params={"q": q} | more)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


def pages(client: Client, q: str, **more: Any) -> Iterator[list[dict[str, Any]]]:
    cursor = dict[str, Any]()
    while True:
        found = page(client, q, **more, **cursor)
        yield found["results"]
        if found["nextCursor"] is None:
            return
        cursor = {"cursor": found["nextCursor"]}


def texts(client: Client, q: str, **more: Any) -> list[str]:
    """The contents of all that is found, in the order in which it is."""
    found = [one for results in pages(client, q, **more) for one in results]
    return [plain(one) for one in found]


def plain(result: dict[str, Any]) -> str:
    return "".join(part["text"] for part in result["snippet"])


@pytest.fixture(params=["walked", "indexed"])
def step(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to a message: among the newest, and by the index, behind a newest that is not it."""
    if request.param == "indexed":
        for name in ("_WALK", "_WALKED"):
            statement = getattr(search, name)
            narrow = statement.replace("LIMIT 1000", "LIMIT 1").replace("OFFSET 999", "OFFSET 0")
            assert narrow != statement
            monkeypatch.setattr(search, name, narrow)
    return str(request.param)


SAID = (
    "帮我创建一个日程，明天下午三点",
    "好的，我来帮您创建日程。",
    "The quarterly MEETING is at 3.14 o'clock",
    "Schedule two meetings, please",
    "用iPhone拍照，再发给我",
    "ＡＢＣ公司的报告 ①",
    "Привет, как дела? Việt Nam café",
    "日本語の会議は東京タワーで行います",
    "회의는 서울에서 열립니다",
    "การประชุมพรุ่งนี้",
    "great 😀👍 done",
    "under_score and C++ at user@example.com",
)


@pytest.mark.parametrize(
    ("q", "found"),
    [
        ("日程", [1, 0]),
        ("创建日程", [1]),
        ("创建 日程", [1, 0]),
        ("程", [1, 0]),
        ("帮", [1, 0]),
        ("。", []),
        ("三点", [0]),
        ("点三", []),
        ("meeting", [3, 2]),
        ("MEETING clock", [2]),
        ("meetings", [3]),
        ("eeting", []),
        ("3.14", [2]),
        ("o'clock", [2]),
        ("iphone", [4]),
        ("iPhone拍照", [4]),
        ("拍照 给我", [4]),
        ("abc", [5]),
        ("ＡＢＣ", [5]),
        ("привет ДЕЛА", [6]),
        ("việt", [6]),
        ("CAFÉ", [6]),
        ("会議", [7]),
        ("タワー", [7]),
        ("서울", [8]),
        ("ประชุม", [9]),
        ("😀", [10]),
        ("👍", [10]),
        ("user@example.com", [11]),
        ("score under", [11]),
        ("日程 meeting", []),
    ],
)
def test_words_of_every_script_are_found(client: Client, step: str, q: str, found: list[int]) -> None:
    said = Conversation(client.user)
    said.say_much(list(SAID))
    said.say("nothing of it", at=NOON + timedelta(days=1))
    assert texts(client, q) == [SAID[place] for place in found]


def test_a_result_says_where_it_stands_and_what_matched(client: Client) -> None:
    said = Conversation(client.user, title="Plans")
    message = said.say("好的，日程已创建：Meeting <b>room</b> 2, meetings daily", role="assistant")
    assert page(client, "日程 meet") == {
        "results": [
            {
                "id": str(message.pk),
                "threadId": said.id,
                "threadTitle": "Plans",
                "seq": 1,
                "role": "assistant",
                "day": "2026-03-15",
                "timestamp": "2026-03-15T12:00:00Z",
                "snippet": [
                    {"text": "好的，", "match": False},
                    {"text": "日程", "match": True},
                    {"text": "已创建：", "match": False},
                    {"text": "Meet", "match": True},
                    {"text": "ing <b>room</b> 2, ", "match": False},
                    {"text": "meet", "match": True},
                    {"text": "ings daily", "match": False},
                ],
            }
        ],
        "nextCursor": None,
    }


def test_the_snippet_of_a_long_message_is_about_the_match(client: Client) -> None:
    said = Conversation(client.user)
    said.say("word " * 500 + "needle " + "word " * 500)
    (result,) = page(client, "needle")["results"]
    assert {"text": "needle", "match": True} in result["snippet"]
    assert plain(result).startswith("…")
    assert plain(result).endswith("…")
    assert len(plain(result)) < 200


def test_only_users_and_assistants_are_searched(client: Client, step: str) -> None:
    said = Conversation(client.user)
    for role in ("user", "assistant", "tool", "system", "developer", "reasoning", "activity"):
        said.say(f"walrus of {role}", role=role)
    said.say("newer", at=NOON + timedelta(days=1))
    assert texts(client, "walrus") == ["walrus of assistant", "walrus of user"]


def test_a_foreign_message_is_not_found(make_client: Callable[..., Client], step: str) -> None:
    mine, other = make_client(), make_client()
    for client in (mine, other):
        said = Conversation(client.user)
        said.say(f"ocelot of {client.user.username}")
        said.say("newer", at=NOON + timedelta(days=1))
    assert texts(mine, "ocelot") == [f"ocelot of {mine.user.username}"]
    for thread in (said.id, str(uuid4()), "none"):
        check_error(mine.http.get(PATH, params={"q": "a", "threadId": thread}), 404, "thread_not_found")


def test_a_search_may_be_of_one_thread(client: Client, step: str) -> None:
    one, two = Conversation(client.user), Conversation(client.user)
    for number, said in enumerate((one, two)):
        said.say(f"puffin {number}")
        said.say("newer", at=NOON + timedelta(days=1))
    assert texts(client, "puffin", threadId=one.id) == ["puffin 0"]


def test_what_a_run_said_is_found_at_once(client: Client) -> None:
    accepted = client.start("练胸有什么动作？Tell me of quokkas")
    assert texts(client, "quokkas") == ["练胸有什么动作？Tell me of quokkas"]
    client.watch(accepted["run_id"])
    (newest, *_) = page(client, "练胸", threadId=accepted["conversation_id"])["results"]
    assert newest["role"] in ("user", "assistant")
    answer = Message.objects.get(thread_id=accepted["conversation_id"], role="assistant")
    word = answer.content.split("\n")[0][:8]
    assert answer.seq in [one["seq"] for one in page(client, word)["results"]]


def test_pages_are_complete_and_repeat_nothing_while_more_is_said(client: Client, step: str) -> None:
    said = Conversation(client.user)
    said.say_much([f"heron {number}" if number % 3 else f"egret {number}" for number in range(120)])
    same_time = Conversation(client.user)
    for number in range(10):
        same_time.say(f"heron of one moment {number}")
    expected = set(Message.objects.filter(content__startswith="heron").values_list("content", flat=True))
    seen: list[str] = []
    for number, results in enumerate(pages(client, "heron", limit=7)):
        seen += [plain(one) for one in results]
        said.say(f"heron later {number}", at=NOON + timedelta(days=1 + number))
    assert len(seen) == len(set(seen)) == 90
    assert set(seen) == {text for text in expected if "later" not in text}
    times = [one["timestamp"] for results in pages(client, "heron", limit=7) for one in results]
    assert times == sorted(times, reverse=True)


def test_what_is_said_between_the_two_steps_is_not_found_twice(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = Conversation(client.user)
    said.say_much([f"lynx {number}" for number in range(5)])
    walk = search._fetch_rows
    late = NOON + timedelta(days=1)

    async def slow(connection: Any, statement: str, arguments: Any) -> Any:
        rows = await walk(connection, statement, arguments)
        if statement is search._WALK:
            thread = threading.Thread(
                target=said.say_much, args=(["lynx late"] * 3,), kwargs={"at": late}
            )
            thread.start()
            thread.join()
        return rows

    monkeypatch.setattr(search, "_fetch_rows", slow)
    monkeypatch.setattr(search, "_WALK", search._WALK.replace("LIMIT 1000", "LIMIT 3"))
    monkeypatch.setattr(search, "_WALKED", search._WALKED.replace("OFFSET 999", "OFFSET 2"))
    found = [plain(one) for one in page(client, "lynx")["results"]]
    assert found == [f"lynx {number}" for number in reversed(range(5))]


NOBODY = str(UUID(int=0))


def encoded(place: list[Any]) -> str:
    """A cursor of this place."""
    return base64.urlsafe_b64encode(json.dumps(place).encode()).rstrip(b"=").decode()


HOSTILE = (
    "'; DROP TABLE conversations_message; --",
    "a & b | !c <-> d:*",
    "'\"\\",
    "((((",
    "%_%",
    "日程' & 'x",
    "\\x00",
    "<script>alert(1)</script>",
    "'@" + "0" * 36 + "'",
    "\u202e\u200d\ufe0f",
    "\ud7ff\U0010ffff\uffff",
    "👨‍👩‍👧‍👦🏳️‍🌈",
    "z" * 200,
    "程" * 200,
    "a " * 100,
)


@pytest.mark.parametrize("q", HOSTILE)
def test_no_query_is_more_than_its_words(client: Client, step: str, q: str) -> None:
    said = Conversation(client.user)
    said.say(q)
    said.say("innocent")
    said.say("newer", at=NOON + timedelta(days=1))
    found = texts(client, q)
    assert "innocent" not in found
    assert len(found) <= 1


@effort(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(text=some.text(min_size=1, max_size=30), around=some.text(max_size=10))
def test_any_text_finds_the_message_that_holds_it(client: Client, text: str, around: str) -> None:
    """Walked or indexed, the answer is the same, and a message is found by its own beginning."""
    text, around = (one.replace("\x00", "") for one in (text, around))
    said = Conversation(client.user)
    content = f"{text} {around}"
    message = said.say(content)
    q = text.strip()
    response = client.http.get(PATH, params={"q": q, "threadId": said.id})
    if not q:
        assert response.status_code == 422
        return
    assert response.status_code == 200, response.text
    spaced, held = database.run_sync(_both(str(message.pk), q, str(client.user.pk)))
    walked = [one["id"] for one in response.json()["results"]]
    assert walked == ([str(message.pk)] if make_terms(spaced).texts else [])
    assert held == bool(walked)


async def _both(message_id: str, q: str, owner_id: str) -> tuple[str, bool]:
    async with database.connection() as connection:
        row = await (await connection.execute("SELECT conversations_spaced(%s)", (q,))).fetchone()
        assert row
        terms = make_terms(row[0])
        held = await connection.execute(
            "SELECT conversations_tokens(owner_id, content) @@ %s::tsquery "
            "FROM conversations_message WHERE id = %s",
            (terms.tsquery(owner_id), message_id),
        )
        answer = await held.fetchone()
        assert answer
        return row[0], answer[0] and bool(terms.texts)


@pytest.mark.parametrize("q", ["", " ", "x" * 10_000, "程" * 4_000, "😀" * 2_000])
def test_a_query_has_1_to_200_characters(client: Client, q: str) -> None:
    check_error(client.http.get(PATH, params={"q": q}), 422, "invalid_query")


def test_a_query_without_words_finds_nothing(client: Client) -> None:
    Conversation(client.user).say("?!")
    assert page(client, "?!") == {"results": [], "nextCursor": None}


def test_a_nul_is_refused(client: Client) -> None:
    check_error(client.http.get(PATH, params={"q": "a\x00b"}), 422, "invalid_characters")


@pytest.mark.parametrize("limit", ["0", "101", "-1", "1.5", "x", "٣", "9" * 50])
def test_a_limit_is_1_to_100(client: Client, limit: str) -> None:
    check_error(client.http.get(PATH, params={"q": "a", "limit": limit}), 422, "invalid_limit")


@pytest.mark.parametrize(
    "cursor",
    [
        *("x", "!!!", "W10", "WzFd", "e30", "é", "A" * 1000),
        encoded([1, 2, 3]),
        encoded([1, "a", "b"]),
        encoded([1e30, 1, NOBODY]),
        encoded([2**63 - 1, 1, NOBODY]),
        encoded([-(2**63), 1, NOBODY]),
        encoded([1, 2**63 - 1, NOBODY]),
        encoded([1, 2**70, NOBODY]),
    ],
)
def test_a_cursor_that_is_none_is_refused(client: Client, cursor: str) -> None:
    Conversation(client.user).say("a")
    response = client.http.get(PATH, params={"q": "a", "cursor": cursor})
    check_error(response, 422, "invalid_cursor")


def test_upkeep_merges_what_was_said_into_the_index(client: Client) -> None:
    said = Conversation(client.user)
    merged, tries = 0, 0
    while not merged:  # the server's own upkeep may come first
        tries += 1
        assert tries < 10
        said.say("pangolin " + " ".join(uuid4().hex for _ in range(500)))
        ((merged,),) = sql.fetch(rounds.MERGE_PENDING)
    said.say("pangolin " + " ".join(uuid4().hex for _ in range(500)))
    while database.run_sync(rounds.run_upkeep_round()) is None:
        pass
    assert sql.fetch(rounds.MERGE_PENDING) == [(0,)]
