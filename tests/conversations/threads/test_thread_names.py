"""Threads by a name of the client's own: nobody else can take them, and older ones are still found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final
from uuid import uuid4, uuid5

import httpx
import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.test import Client as Browser

from config.audit.models import AuditEntry
from config.audit.recording import acting_as
from conversations.models import Run, Thread
from tests.support import pooler
from tests.support.client import Client

Post = Callable[[Client, str], httpx.Response]
ITEM: Final = {"role": "user", "type": "message", "content": [{"type": "text", "text": "legs"}]}


def process(client: Client, **more: Any) -> httpx.Response:
    return client.http.post("/process", json={"input": [ITEM], "model": "demo"} | more)


def ag_ui(client: Client, name: str) -> httpx.Response:
    message = {"id": uuid4().hex, "role": "user", "content": "legs"}
    body = {
        "threadId": name,
        "runId": uuid4().hex,
        "messages": [message],
        "tools": [],
        "context": [],
        "state": {},
        "forwardedProps": {"model": "demo"},
    }
    return client.http.post("/api/v1/agent/ag-ui", json=body)


def responses(client: Client, **more: Any) -> httpx.Response:
    return client.http.post("/v1/responses", json={"input": "legs", "model": "demo"} | more)


def runner(client: Client, **more: Any) -> httpx.Response:
    body = {"input": {"text": "legs"}, "model": "demo"} | more
    return client.http.post("/api/v1/agent/runs?dialect=runner", json=body)


def keyed(client: Client, key: str) -> httpx.Response:
    body = {"text": "legs", "model": "demo"}
    return client.http.post("/api/v1/agent/runs", json=body, headers={"Idempotency-Key": key})


SESSIONS: Final[dict[str, Post]] = {
    "process": lambda client, name: process(client, session_id=name),
    "ag-ui": ag_ui,
    "responses": lambda client, name: responses(client, conversation=name),
    "runner": lambda client, name: runner(client, conversation={"conversation_id": name}),
}
RUNS: Final[dict[str, Post]] = {
    "idempotency key": keyed,
    "process id": lambda client, name: process(client, id=name),
    "responses key": lambda client, name: client.http.post(
        "/v1/responses",
        json={"input": "legs", "model": "demo", "stream": True},
        headers={"Idempotency-Key": name},
    ),
    "runner event": lambda client, name: runner(client, event={"event_id": name}),
}
by_session = pytest.mark.parametrize("post", SESSIONS.values(), ids=SESSIONS)
by_run = pytest.mark.parametrize("post", RUNS.values(), ids=RUNS)
by_any = pytest.mark.parametrize("post", (SESSIONS | RUNS).values(), ids=SESSIONS | RUNS)


def new_name() -> str:
    return f"name-{uuid4().hex}"


def started(post: Post, client: Client, name: str) -> Run:
    """The newest run of the client once it has posted."""
    response = post(client, name)
    assert response.status_code in (200, 202), response.text
    newest: Run = Run.objects.filter(owner=client.user).latest("created_at")
    return newest


def take(stranger: Client, owner: Any, name: str) -> None:
    """Begin threads with the ids that can be made of what a stranger knows: the name, the owner's id."""
    for text in (name, f"session:{name}"):
        stranger.start("mine now", conversation_id=str(uuid5(owner.pk, text)))


@contextmanager
def as_before(client: Client) -> Iterator[None]:
    """The account as it was when its own id was what the ids of its threads were made of."""
    accounts = type(client.user).objects.filter(pk=client.user.pk)
    accounts.update(namespace=client.user.pk)
    yield
    accounts.update(namespace=uuid4(), named_by_id=True)


@by_any
def test_a_name_cannot_be_taken_by_somebody_else(
    post: Post, client: Client, make_client: Callable[..., Client]
) -> None:
    name = new_name()
    take(make_client(), client.user, name)
    run = started(post, client, name)
    assert run.thread.owner_id == client.user.pk
    again = started(post, client, name)
    assert again.thread_id == run.thread_id
    assert Thread.objects.filter(owner=client.user).count() == 1


@by_session
def test_a_session_of_before_goes_on_in_its_thread(
    post: Post, client: Client, make_client: Callable[..., Client]
) -> None:
    name = new_name()
    with as_before(client):
        before = started(post, client, name)
    assert before.thread_id == uuid5(client.user.pk, f"session:{name}")
    after = started(post, client, name)
    assert (after.thread_id, after.pk == before.pk) == (before.thread_id, False)
    elsewhere = started(post, client, new_name())
    assert elsewhere.thread_id != uuid5(client.user.pk, elsewhere.request["session"])
    other = make_client()
    assert started(post, other, name).thread_id != before.thread_id


@by_run
def test_a_run_of_before_that_is_asked_for_again_is_the_same(post: Post, client: Client) -> None:
    name = new_name()
    with as_before(client):
        before = started(post, client, name)
    assert before.thread_id == uuid5(client.user.pk, name)
    assert started(post, client, name).pk == before.pk
    assert Run.objects.filter(owner=client.user).count() == 1


@by_any
def test_a_name_of_before_that_was_taken_is_free_again(
    post: Post, client: Client, make_client: Callable[..., Client]
) -> None:
    name = new_name()
    with as_before(client):
        take(make_client(), client.user, name)
        assert post(client, name).status_code == 404
    run = started(post, client, name)
    assert run.thread.owner_id == client.user.pk
    assert started(post, client, name).thread_id == run.thread_id


@pytest.mark.parametrize("is_older", [False, True])
def test_a_thread_is_read_changed_and_deleted_by_its_name(client: Client, is_older: bool) -> None:
    name = new_name()
    if is_older:
        with as_before(client):
            run = started(ag_ui, client, name)
    else:
        run = started(ag_ui, client, name)
    path = f"/api/v1/agent/threads/{name}"
    found = client.http.get(path)
    assert (found.status_code, found.json()["id"]) == (200, str(run.thread_id))
    assert client.http.patch(path, json={"title": "Legs"}).status_code == 200
    assert Thread.objects.get(pk=run.thread_id).title == "Legs"
    assert client.http.delete(path).status_code == 204
    assert client.http.get(path).status_code == 404
    assert started(ag_ui, client, name).thread.owner_id == client.user.pk


def test_a_namespace_stands_in_no_page_no_audit_entry_and_no_other_table() -> None:
    make = get_user_model().objects.create_user
    owner = make(uuid4().hex, is_staff=True, is_superuser=True)
    with acting_as(owner):
        user = make(uuid4().hex, is_staff=True)
    browser, page = Browser(), f"/admin/accounts/user/{user.pk}"
    browser.force_login(owner)
    sent = {"username": user.username, "is_active": "on", "is_staff": "on"}
    moment = {"date_joined_0": "2026-01-01", "date_joined_1": "00:00:00"}
    assert browser.post(f"{page}/change/", sent | moment).status_code == 302
    told = [browser.get(f"{page}/{name}/").content.decode() for name in ("change", "history")]
    told.append(browser.get(f"/admin/accounts/user/?q={user.username}").content.decode())
    told += [f"{one.before}{one.after}" for one in AuditEntry.objects.filter(object_id=str(user.pk))]
    assert [user.username in text for text in told[:3]] == [True] * 3
    assert "is_staff" in "".join(told[3:])
    for text in told:
        assert [secret for secret in (str(user.namespace), user.namespace.hex) if secret in text] == []
        assert "named_by_id" not in text
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name FROM information_schema.columns "
            "WHERE column_name = 'namespace' AND table_schema = 'public'"
        )
        assert cursor.fetchall() == [("accounts_user",)]


@pooler.needs_session
def test_the_migration_gives_each_account_a_namespace_and_the_release_before_can_make_more() -> None:
    loader = MigrationLoader(connection)
    before = loader.project_state(("accounts", "0002_users_found_by_beginning"))
    migration = loader.get_migration("accounts", "0003_secret_namespace")
    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMP TABLE accounts_user (LIKE public.accounts_user INCLUDING ALL)")
        try:
            cursor.execute("ALTER TABLE pg_temp.accounts_user DROP namespace, DROP named_by_id")
            older = {_inserted_as_before(cursor) for _ in range(3)}
            with connection.schema_editor() as editor:
                migration.apply(before, editor)
            newer = _inserted_as_before(cursor)
            cursor.execute("SELECT id, namespace, named_by_id FROM pg_temp.accounts_user")
            found = cursor.fetchall()
        finally:
            cursor.execute("DROP TABLE pg_temp.accounts_user")
    assert {account: named_by_id for account, _, named_by_id in found} == {
        newer: False,
        **dict.fromkeys(older, True),
    }
    assert len({namespace for _, namespace, _ in found} | {newer, *older}) == 8


def _inserted_as_before(cursor: Any) -> Any:
    cursor.execute(
        "INSERT INTO accounts_user (id, username, password, is_superuser, first_name, last_name, email, "
        "is_staff, is_active, date_joined, is_guest) VALUES (gen_random_uuid(), gen_random_uuid(), '', "
        "false, '', '', '', false, true, now(), false) RETURNING id"
    )
    return cursor.fetchone()[0]


@by_session
def test_history_and_search_find_a_thread_by_the_clients_own_name(
    make_client: Callable[..., Client], post: Post
) -> None:
    owner, other, name = make_client(), make_client(), f"thread-{uuid4().hex}"
    assert post(owner, name).status_code in (200, 202)
    (thread,) = Thread.objects.filter(owner_id=owner.user.pk)
    (run,) = Run.objects.filter(thread=thread)
    owner.wait_for(run.pk.hex, "completed")
    by_id = owner.history(str(thread.pk))
    assert by_id["messages"]
    assert owner.history(name) == by_id | {"threadId": name}
    search = "/api/v1/agent/history/search"
    found = [
        owner.http.get(search, params={"q": "legs", "threadId": asked}).json()
        for asked in (name, str(thread.pk))
    ]
    assert found[0]["results"]
    assert found[0] == found[1]
    for path, params in (("/api/v1/agent/history", {}), (search, {"q": "legs"})):
        for client, asked in ((other, name), (owner, new_name())):
            refused = client.http.get(path, params=params | {"threadId": asked})
            assert (refused.status_code, refused.json()["code"]) == (404, "thread_not_found")
