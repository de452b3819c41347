"""A busy thread, a repeated request, too much load: what was accepted is kept (P5, P6)."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from typing import Any

import pytest

from agents.worker import loop
from config.errors import TooManyRequests, Unavailable
from conversations.models import Run
from conversations.runs.load_shedding import Load
from tests.support.client import Client, reply

RUNS = "/api/v1/agent/runs"
BODY = {"model": "demo", "text": "bench press"}


def post(client: Client, body: dict[str, Any] = BODY, query: str = "", *, key: str | None = None) -> Any:
    headers = {} if key is None else {"Idempotency-Key": key}
    return client.http.post(RUNS + query, json=body, headers=headers)


def test_a_hundred_parallel_posts_of_one_key_start_one_run(client: Client) -> None:
    with ThreadPoolExecutor(20) as pool:
        responses = list(pool.map(lambda _: post(client, key="order-1"), range(100)))
    assert {response.status_code for response in responses} == {202}
    assert len({response.text for response in responses}) == 1
    assert Run.objects.filter(owner_id=client.user.pk).count() == 1


def test_the_same_key_with_another_body_is_a_conflict(client: Client) -> None:
    assert post(client, key="k").status_code == 202
    response = post(client, BODY | {"text": "squat"}, key="k")
    assert (response.status_code, response.json()["code"]) == (409, "run_id_already_used")


def test_the_same_key_of_another_user_is_another_run(make_client: Callable[..., Client]) -> None:
    one, other = (post(client, key="k") for client in (make_client(), make_client()))
    assert one.json()["run_id"] != other.json()["run_id"]


@pytest.mark.parametrize("key", ["", "x" * 129, "with space"])
def test_a_key_that_is_none_is_refused(client: Client, key: str) -> None:
    response = post(client, key=key)
    assert (response.status_code, response.json()["code"]) == (422, "invalid_idempotency_key")


def test_a_busy_thread_refuses_on_reject_and_takes_the_run_once_it_is_free(
    client: Client, scripted: Callable[..., Any]
) -> None:
    first = client.start("one", model=scripted("endless").name)
    body = BODY | {"conversation_id": first["conversation_id"]}
    refused = post(client, body, "?on_busy=reject")
    assert (refused.status_code, refused.json()["code"]) == (409, "thread_busy")
    client.http.post(f"{RUNS}/{first['run_id']}/cancel")
    client.wait_for(first["run_id"], "cancelled", seconds=5)
    assert post(client, body, "?on_busy=reject").status_code == 202


def test_of_many_that_reject_at_once_one_starts(client: Client, scripted: Callable[..., Any]) -> None:
    model = scripted("endless").name
    thread = client.start("first")["conversation_id"]
    client.watch(Run.objects.get(thread_id=thread).id.hex)
    body = {"model": model, "text": "x", "conversation_id": thread}
    with ThreadPoolExecutor(10) as pool:
        codes = [
            r.status_code for r in pool.map(lambda _: post(client, body, "?on_busy=reject"), range(20))
        ]
    assert sorted(codes) == [202] + [409] * 19


def test_interrupt_ends_the_live_run_and_runs_next(client: Client, scripted: Callable[..., Any]) -> None:
    first = client.start("one", model=scripted("endless").name)
    begun = client.watch(first["run_id"], stop_after=6)
    second = post(
        client, BODY | {"conversation_id": first["conversation_id"]}, "?on_busy=interrupt"
    ).json()
    frames = client.watch(second["run_id"])
    assert frames[-1].event == "completed"
    assert client.run(first["run_id"])["status"] == "cancelled"
    assert reply(begun)


def test_the_next_run_of_a_thread_starts_as_soon_as_the_one_before_it_has_ended(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "_LOOK_S", 60.0)  # who is not woken is looked for too late
    first = client.start("bench press")
    thread = first["conversation_id"]
    queued = [client.start("squat", conversation_id=thread) for _ in range(3)]
    client.watch(queued[-1]["run_id"])
    timings = [client.run(run["run_id"])["timings"] for run in (first, *queued)]
    ends = [datetime.fromisoformat(timing["finished_at"]) for timing in timings]
    starts = [datetime.fromisoformat(timing["started_at"]) for timing in timings]
    waits = [(start - end).total_seconds() for end, start in zip(ends, starts[1:], strict=False)]
    assert all(wait >= 0 for wait in waits)


def test_an_unknown_way_of_being_busy_is_refused(client: Client) -> None:
    response = post(client, query="?on_busy=panic")
    assert (response.status_code, response.json()["code"]) == (422, "invalid_on_busy")


def test_a_users_flood_is_refused_and_others_are_not(settings: Any) -> None:
    from uuid import uuid4

    settings.RUNS_WAITING_PER_USER, settings.RUNS_WAITING = 3, 5
    load, greedy, modest, late = Load(), uuid4(), uuid4(), uuid4()
    for _ in range(3):
        load.admit(greedy)
    with pytest.raises(TooManyRequests) as many:
        load.admit(greedy)
    assert (many.value.error_code, many.value.retry_after) == ("too_many_runs", 5)
    load.admit(modest)
    load.admit(modest)
    with pytest.raises(Unavailable) as full:
        load.admit(late)
    assert full.value.error_code == "queue_full"


def test_too_many_posts_at_once_get_503(client: Client, settings: Any) -> None:
    settings.POSTS_AT_ONCE = 0
    response = post(client)
    assert (response.status_code, response.json()["code"]) == (503, "overloaded")
    assert response.headers["retry-after"] == "1"


def test_a_reader_that_takes_nothing_is_cut_and_can_come_back(
    client: Client, scripted: Callable[..., Any], settings: Any
) -> None:
    import socket

    settings.SLOW_READER_S = 0.5
    run_id = client.start("much", model=scripted("flood").name)["run_id"]
    client.wait_for(run_id, "completed")
    host, port = client.url.removeprefix("http://").split(":")
    with socket.socket() as stuck:
        stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        stuck.connect((host, int(port)))
        stuck.settimeout(10)
        head = f"GET {RUNS}/{run_id}/events HTTP/1.1\r\nHost: x\r\n"
        stuck.sendall(f"{head}Authorization: Bearer {client.token}\r\n\r\n".encode())
        stuck.recv(1000)
        time.sleep(3)  # the point is to take nothing for longer than the limit
        taken = b""
        with suppress(ConnectionError):
            while some := stuck.recv(65536):
                taken += some
    assert b"event: completed" not in taken
    settings.SLOW_READER_S = 30  # whoever comes back takes what it can on a busy machine
    assert client.watch(run_id, validate=False)[-1].event == "completed"


def test_one_run_of_a_modest_user_does_not_wait_behind_another_users_flood(
    make_client: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    from agents.worker import loop
    from config.database import run_sync
    from conversations.runs import leases, settling
    from conversations.runs.settling import Due

    greedy, modest = make_client(), make_client()
    monkeypatch.setattr(loop._current, "_capacity", 0)
    for number in range(6):
        greedy.start(f"question {number}")
    single = modest.start("one question")
    claimed = leases.claim(
        worker="test", limit=2, lease_s=10, prompt_versions="[]", split=False, holder=loop.HOLDER
    )
    taken = run_sync(claimed)
    assert {run.owner_id for run, _ in taken} == {greedy.user.pk, modest.user.pk}
    for run, _ in taken:
        assert run_sync(settling.settle(Due(run.run_id, run.fence, "worker_lost")))
    monkeypatch.undo()
    assert modest.watch(single["run_id"])[-1].event == "completed"
