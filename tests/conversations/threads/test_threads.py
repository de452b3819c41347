"""Threads over real HTTP: list, rename, archive, delete (issue 4)."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from conversations import attachments
from conversations.models import EventBatch, Message, Run, Thread
from tests.support.client import Client, read_sse
from tests.support.conversation import NOON, Conversation
from tests.support.refusals import check_error

PATH = "/api/v1/agent/threads"


def listed(client: Client, **asked: Any) -> dict[str, Any]:
    response = client.http.get(PATH, params=asked)
    assert response.status_code == 200, response.text
    page: dict[str, Any] = response.json()
    return page


def titles(client: Client, **asked: Any) -> list[str]:
    return [one["title"] for one in listed(client, **asked)["threads"]]


def test_a_thread_says_what_a_list_needs(client: Client, scripted: Callable[..., Any]) -> None:
    accepted = client.start("Say much", model=scripted("hang-midway").name)
    run_id, thread_id = accepted["run_id"], accepted["conversation_id"]
    client.wait_for(run_id, "running")
    (thread,) = listed(client)["threads"]
    said = Message.objects.get(thread_id=thread_id)
    row = Thread.objects.get(pk=thread_id)
    whole = client.http.get(f"{PATH}/{thread_id}").json()
    assert [(m["role"], m["content"]) for m in whole.pop("messages")] == [("user", "Say much")]
    assert whole == thread | {"state": {}, "feedback": []}
    assert thread == {
        "id": thread_id,
        "title": "Say much",
        "archived": False,
        "createdAt": row.created_at.isoformat().replace("+00:00", "Z"),
        "updatedAt": row.updated_at.isoformat().replace("+00:00", "Z"),
        "lastMessageAt": said.created_at.isoformat().replace("+00:00", "Z"),
        "liveRunId": run_id,
    }
    waiting = client.start("And more", conversation_id=thread_id)
    assert listed(client)["threads"][0]["liveRunId"] == run_id
    client.http.post(f"/api/v1/agent/runs/{run_id}/cancel")
    client.wait_for(run_id, "cancelled")
    client.wait_for(waiting["run_id"], "completed")
    assert listed(client)["threads"][0]["liveRunId"] is None


def test_a_thread_with_only_a_waiting_run_names_it(client: Client) -> None:
    said = Conversation(client.user)
    run = Run.objects.create(
        owner=client.user,
        thread=said.thread,
        thread_seq=1,
        request_id="r",
        dialect="text",
        model="m",
        request={},
        status="queued",
        deadline_at=NOON + timedelta(days=99999),
        deadline_s=1,
        cancel_requested_at=None,
        created_at=NOON + timedelta(days=99999),
    )
    seen = client.http.get(f"{PATH}/{said.id}").json()["liveRunId"]
    Run.objects.filter(pk=run.pk).delete()
    assert seen in (run.pk.hex, None)


def test_the_list_is_paged_from_the_latest_and_repeats_nothing(client: Client) -> None:
    for number in range(23):
        Conversation(client.user, title=str(number), updated_at=NOON + timedelta(minutes=number // 2))
    seen: list[str] = []
    page = listed(client, limit=5)
    while True:
        seen += [one["title"] for one in page["threads"]]
        Conversation(client.user, title="new", updated_at=NOON + timedelta(days=len(seen)))
        if page["nextCursor"] is None:
            break
        page = listed(client, limit=5, cursor=page["nextCursor"])
    assert sorted(seen, key=int) == [str(number) for number in range(23)]
    assert [int(title) // 2 for title in seen] == sorted((n // 2 for n in range(23)), reverse=True)
    assert listed(client)["threads"][0]["title"] == "new"


def test_rename_and_archive_leave_the_place_in_the_list(client: Client) -> None:
    older = Conversation(client.user, title="older", updated_at=NOON)
    Conversation(client.user, title="newer", updated_at=NOON + timedelta(days=1))
    renamed = client.http.patch(f"{PATH}/{older.id}", json={"title": "  旧的\n日程 "})
    assert (renamed.status_code, renamed.json()["title"]) == (200, "旧的 日程")
    assert titles(client) == ["newer", "旧的 日程"]
    archived = client.http.patch(f"{PATH}/{older.id}", json={"archived": True})
    assert (archived.json()["archived"], archived.json()["title"]) == (True, "旧的 日程")
    assert titles(client) == ["newer"]
    assert titles(client, archived="true") == ["旧的 日程"]
    assert titles(client, archived="all") == ["newer", "旧的 日程"]
    when = Thread.objects.get(pk=older.id).archived_at
    client.http.patch(f"{PATH}/{older.id}", json={"archived": True, "title": ""})
    assert Thread.objects.get(pk=older.id).archived_at == when
    assert client.http.patch(f"{PATH}/{older.id}", json={"archived": False}).json()["archived"] is False
    assert client.http.patch(f"{PATH}/{older.id}", json={}).status_code == 200


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'{"title": 5}', "invalid_request"),
        (b'{"title": null}', "invalid_request"),
        (b'{"archived": "yes"}', "invalid_request"),
        (b'{"owner": "me"}', "invalid_request"),
        (b'{"title": "%s"}' % (b"x" * 201), "invalid_title"),
        (b'{"title": "a\\u0000b"}', "invalid_characters"),
        (b'{"title": "\\ud800"}', "invalid_json"),
        (b"[]", "invalid_json"),
        (b"", "invalid_json"),
    ],
)
def test_a_change_that_is_none_is_refused(client: Client, body: bytes, code: str) -> None:
    said = Conversation(client.user, title="kept")
    refused = client.http.patch(f"{PATH}/{said.id}", content=body)
    check_error(refused, 422, code)
    assert titles(client) == ["kept"]


@pytest.mark.parametrize(
    "asked", [{"archived": "maybe"}, {"limit": "0"}, {"cursor": "x"}, {"cursor": "WzFd"}]
)
def test_a_list_that_cannot_be_is_refused(client: Client, asked: dict[str, str]) -> None:
    check_error(client.http.get(PATH, params=asked), 422, f"invalid_{next(iter(asked))}")


def test_a_foreign_thread_does_not_exist(make_client: Callable[..., Client]) -> None:
    mine, other = make_client(), make_client()
    said = Conversation(other.user, title="theirs")
    said.say("secret")
    for thread_id in (said.id, str(uuid4()), "none"):
        for method, body in (("GET", None), ("PATCH", {"title": "mine"}), ("DELETE", None)):
            refused = mine.http.request(method, f"{PATH}/{thread_id}", json=body)
            check_error(refused, 404, "thread_not_found")
    assert titles(mine) == []
    assert titles(other) == ["theirs"]
    assert Message.objects.filter(thread_id=said.id).count() == 1


def rows_of(thread_id: str) -> list[int]:
    runs = list(Run.objects.filter(thread_id=thread_id).values_list("pk", flat=True))
    return [
        Thread.objects.filter(pk=thread_id).count(),
        Message.objects.filter(thread_id=thread_id).count(),
        len(runs),
        EventBatch.objects.filter(run_id__in=runs).count(),
    ]


def test_delete_takes_everything_of_the_thread_and_nothing_else(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[UUID, ...]] = []
    delete = attachments.delete_thread_files

    async def note(*whose: UUID) -> None:
        asked.append(whose)
        await delete(*whose)

    monkeypatch.setattr(attachments, "delete_thread_files", note)
    runs = [client.start(f"numbat {number} 练胸") for number in range(2)]
    frames = [client.watch(run["run_id"]) for run in runs]
    gone, kept = (run["conversation_id"] for run in runs)
    before = rows_of(kept)
    assert client.http.delete(f"{PATH}/{gone}").status_code == 204
    assert asked == [(client.user.pk, UUID(gone))]
    assert rows_of(gone) == [0, 0, 0, 0]
    assert not EventBatch.objects.filter(run_id=runs[0]["run_id"]).exists()
    check_error(client.http.get(f"{PATH}/{gone}"), 404, "thread_not_found")
    check_error(client.http.get(f"/api/v1/agent/runs/{runs[0]['run_id']}"), 404, "run_not_found")
    check_error(client.http.delete(f"{PATH}/{gone}"), 404, "thread_not_found")
    found = client.http.get("/api/v1/agent/history/search", params={"q": "numbat"}).json()["results"]
    assert {one["threadId"] for one in found} == {kept}
    assert rows_of(kept) == before
    assert client.watch(runs[1]["run_id"]) == frames[1]


def test_delete_ends_the_live_run_and_its_reader_is_told(
    client: Client, scripted: Callable[..., Any]
) -> None:
    accepted = client.start("Say much", model=scripted("endless").name, enable_exercise_search=False)
    waiting = client.start("Then this", conversation_id=accepted["conversation_id"])
    client.watch(accepted["run_id"], stop_after=6)
    with client.http.stream("GET", f"/api/v1/agent/runs/{accepted['run_id']}/events") as response:
        deleted = client.http.delete(f"{PATH}/{accepted['conversation_id']}")
        last = list(read_sse(response))[-1]
    assert deleted.status_code == 204
    assert (last.event, last.data["code"]) == ("error", "cancelled")
    assert rows_of(accepted["conversation_id"]) == [0, 0, 0, 0]
    for run in (accepted, waiting):
        assert not EventBatch.objects.filter(run_id=run["run_id"]).exists()


def test_a_deleted_thread_id_may_be_used_again(client: Client) -> None:
    accepted = client.start("one")
    client.watch(accepted["run_id"])
    client.http.delete(f"{PATH}/{accepted['conversation_id']}")
    again = client.start("two", conversation_id=accepted["conversation_id"])
    assert client.watch(again["run_id"])[-1].event == "completed"
    assert titles(client) == ["two"]


def test_the_same_post_after_its_thread_was_deleted_is_a_new_run(client: Client) -> None:
    asked = {
        "threadId": str(uuid4()),
        "runId": "once",
        "messages": [{"id": "m", "role": "user", "content": "hi"}],
    }
    first = client.http.post("/api/v1/agent/runs", json=asked).json()["taskId"]
    gone = client.http.delete(f"{PATH}/{asked['threadId']}")
    assert gone.status_code == 204, gone.text
    again = client.http.post("/api/v1/agent/runs", json=asked)
    assert (again.status_code, again.json()["taskId"] != first) == (202, True)
    check_error(client.http.get(f"/api/v1/agent/runs/{first}"), 404, "run_not_found")


def test_what_is_started_while_its_thread_is_deleted_ends_or_is_gone(
    client: Client, scripted: Callable[..., Any]
) -> None:
    model = scripted("hang-midway").name
    accepted = client.start("Say much", model=model)
    thread_id = accepted["conversation_id"]
    client.wait_for(accepted["run_id"], "running")
    said = {"model": "demo", "text": "hi", "conversation_id": thread_id}
    with ThreadPoolExecutor(9) as at_once:
        deleted = at_once.submit(client.http.delete, f"{PATH}/{thread_id}")
        posts = [at_once.submit(client.http.post, "/api/v1/agent/runs", json=said) for _ in range(8)]
    assert deleted.result().status_code == 204
    answers = [post.result() for post in posts]
    assert {answer.status_code for answer in answers} == {202}
    for answer in answers:
        run = f"/api/v1/agent/runs/{answer.json()['run_id']}"
        if client.http.get(run).status_code == 200:
            client.wait_for(answer.json()["run_id"], "completed")
        else:
            check_error(client.http.get(f"{run}/events"), 404, "run_not_found")


def test_other_methods_are_refused(client: Client) -> None:
    check_error(client.http.post(PATH, json={}), 405, "method_not_allowed")
    check_error(client.http.put(f"{PATH}/{uuid4()}", json={}), 405, "method_not_allowed")


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
def test_changing_needs_the_scope_run(client: Client, method: str) -> None:
    from config.auth.bearer import create_api_token

    said = Conversation(client.user)
    _, reader = create_api_token(client.user, "reader", scopes=["read"])
    headers = {"Authorization": f"Bearer {reader}"}
    refused = client.http.request(method, f"{PATH}/{said.id}", headers=headers, json={})
    check_error(refused, 403, "scope_missing")
    assert client.http.get(f"{PATH}/{said.id}", headers=headers).status_code == 200
