"""Exports that nobody reads: they hold no connection, few places, and those not for long."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import date
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.db import connection, transaction
from django.test import Client as Browser

from config import database
from conversations.metrics import detail_rows
from conversations.metrics.query import parse_query
from conversations.metrics.rollup_reads import Row
from conversations.metrics.rollups import start_of_day
from tests.conftest import Server
from tests.support.client import Client
from tests.support.conversation import Conversation

DAY = date(2019, 5, 6)
USERS = 30_000  # with their long names more than the kernel keeps for one who does not read
RANGE = {"from": DAY.isoformat(), "to": DAY.isoformat(), "format": "csv"}
NOT_READ = 14


@pytest.fixture
def analysts(make_client: Callable[..., Client]) -> Callable[[], Client]:
    def make() -> Client:
        found = make_client(is_staff=True)
        found.user.groups.set([Group.objects.get(name="analyst")])
        return found

    return make


@pytest.fixture(scope="module")
def crowd(database: None) -> Iterator[str]:
    """As many users with a run or more on one day; the model that they used."""
    model = f"m-{uuid4().hex[:12]}"
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO accounts_user (id, username, password, first_name, last_name, email,
                is_staff, is_active, is_superuser, date_joined, is_guest)
            SELECT md5(%(model)s || n)::uuid, rpad(%(model)s || '-' || n || '-', 150, 'x'), '!', '', '',
                '', false, true, false, now(), false FROM generate_series(1, %(users)s) n
            """,
            {"model": model, "users": USERS},
        )
        cursor.execute(
            """
            INSERT INTO conversations_threadday (day, owner_id, thread_id, model, prompt_versions,
                dialect, runner, runs)
            SELECT %(day)s, md5(%(model)s || n)::uuid, gen_random_uuid(), %(model)s, '{}', 'text',
                'chat', 1 + n %% 7 FROM generate_series(1, %(users)s) n
            """,
            {"model": model, "users": USERS, "day": start_of_day(DAY)},
        )
    yield model
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")  # no look at other rows
        cursor.execute("DELETE FROM conversations_threadday WHERE model = %s", [model])
        cursor.execute("DELETE FROM accounts_user WHERE username LIKE %s", [f"{model}-%"])


class Unread:
    """A request whose answer is read no further than its head."""

    def __init__(self, url: str, path: str, header: str) -> None:
        host, port = url.removeprefix("http://").split(":")
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self._socket.settimeout(60)
        self._socket.connect((host, int(port)))
        self._socket.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n{header}\r\n\r\n".encode())

    def status(self) -> int:
        return int(self._socket.recv(64).split()[1])

    def rest(self) -> bytes:
        """What still comes, to the end; it may be cut."""
        taken = bytearray()
        try:
            while some := self._socket.recv(65_536):
                taken += some
        except ConnectionError:
            pass
        return bytes(taken)

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def unread() -> Iterator[Callable[..., Unread]]:
    with ExitStack() as opened:

        def ask(*given: str) -> Unread:
            made = Unread(*given)
            opened.callback(made.close)
            return made

        yield ask


def export_of(analyst: Client, model: str, unread: Callable[..., Unread]) -> Unread:
    path = "/api/v1/metrics/users?" + "&".join(
        f"{name}={value}" for name, value in (RANGE | {"model": model}).items()
    )
    return unread(analyst.url, path, f"Authorization: Bearer {analyst.token}")


def held_by_analysts(server: Server) -> int:
    """How many connections of the analysts' pool are out."""
    return database._opened[server.loop]["analytics"].in_use


def test_fourteen_exports_that_nobody_reads_hold_up_nobody(
    server: Server,
    analysts: Callable[[], Client],
    client: Client,
    crowd: str,
    unread: Callable[..., Unread],
) -> None:
    """They took every connection of the process: /health was 503 for as long as they were there."""
    analyst, other = analysts(), analysts()
    exports = [export_of(analyst, crowd, unread) for _ in range(NOT_READ)]
    assert sorted(one.status() for one in exports) == [200, *[429] * (NOT_READ - 1)]
    assert client.http.get("/health").status_code == 200
    assert client.watch(client.start()["run_id"])[-1].event == "completed"
    whole = other.http.get("/api/v1/metrics/users", params=RANGE | {"model": crowd})
    assert whole.status_code == 200
    assert whole.text.count("\n") == 1 + USERS
    until = time.monotonic() + 30
    while held_by_analysts(server) and time.monotonic() < until:
        time.sleep(0.02)
    assert held_by_analysts(server) == 0


def test_who_leaves_an_export_unread_is_cut_and_others_get_the_place(
    analysts: Callable[[], Client], crowd: str, unread: Callable[..., Unread], settings: Any
) -> None:
    settings.SLOW_READER_S = 5
    slow = [export_of(analysts(), crowd, unread) for _ in range(2)]
    assert [one.status() for one in slow] == [200, 200]
    third, answers = analysts(), list[int]()
    until = time.monotonic() + 60
    while not answers or (answers[-1] != 200 and time.monotonic() < until):
        answer = third.http.get("/api/v1/metrics/users", params=RANGE | {"model": crowd})
        answers.append(answer.status_code)
        if answer.status_code == 429:
            assert answer.headers["retry-after"] == "10"
            threading.Event().wait(0.1)
    assert answers[0] == 429
    assert answers[-1] == 200
    assert all(b"0\r\n\r\n" not in one.rest()[-5:] for one in slow)


def test_an_account_whose_export_is_over_gets_the_next(
    analysts: Callable[[], Client], crowd: str, unread: Callable[..., Unread]
) -> None:
    analyst = analysts()
    begun = export_of(analyst, crowd, unread)
    assert begun.status() == 200
    begun.close()
    refused = {"from": DAY.isoformat(), "to": DAY.isoformat(), "format": "csv", "model": "m"}
    until, answers = time.monotonic() + 30, list[int]()
    while answers[-1:] != [422] and time.monotonic() < until:
        answers.append(analyst.http.get("/api/v1/metrics/messages", params=refused).status_code)
    assert answers[-1] == 422  # a refused one gives its place back too
    assert analyst.http.get("/api/v1/metrics/runs", params=RANGE).status_code == 200


def test_users_in_pages_are_the_users_of_the_list(crowd: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detail_rows, "AT_ONCE", 7_001)
    monkeypatch.setattr(detail_rows, "RANKED_AT_ONCE", 10_000)
    question = parse_query({"from": DAY.isoformat(), "to": DAY.isoformat(), "model": crowd})

    async def read() -> tuple[list[Row], list[Row]]:
        exported = [row async for some in detail_rows.stream_users(question) for row in some]
        listed, cursor = await detail_rows.fetch_user_page(question, limit=12_345, cursor=None)
        while cursor:
            some, cursor = await detail_rows.fetch_user_page(question, limit=12_345, cursor=cursor)
            listed += some
        return exported, listed

    exported, listed = database.run_sync(read())
    assert len(exported) == USERS
    assert exported == listed == sorted(listed, key=lambda row: (-row["runs"], UUID(row["user_id"])))


def test_conversations_that_nobody_reads_as_files_hold_up_no_page(
    client: Client, unread: Callable[..., Unread]
) -> None:
    """The pages' own pool has as many connections: one was held for each file."""
    staff = get_user_model().objects.create_superuser(username=f"admin-{uuid4().hex}", password="x")
    browser = Browser()
    browser.force_login(staff)
    cookie = "; ".join(f"{name}={one.value}" for name, one in browser.cookies.items())
    long = Conversation(client.user)
    long.say_much(["words " * 20_000 for _ in range(45)])
    path = f"/admin/conversations/thread/{long.id}/export-json/"
    files = [unread(client.url, path, f"Cookie: {cookie}") for _ in range(NOT_READ)]
    assert [one.status() for one in files] == [200] * NOT_READ
    page = client.http.get("/admin/conversations/thread/", headers={"Cookie": cookie}, timeout=60)
    assert page.status_code == 200
