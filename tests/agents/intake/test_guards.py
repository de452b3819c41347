"""How many streams at once: per user, per conversation, over processes, and without Redis."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
import redis
import websocket
from psycopg_pool import PoolTimeout
from pytest_django import Settings

from agents.api import sockets
from agents.intake import stream_slots
from config import database
from config.coordination import shared_slots
from config.coordination.models import SharedSlot
from config.coordination.shared_slots import Limits, Taken
from config.database import connect
from config.process import cancellation
from conversations.models import Run
from tests.support.client import Client, ScriptedModel
from tests.support.database import url_of_tests
from tests.support.fakes.redis_server import fresh, patient, redis_url  # noqa: F401
from tests.support.paths import ROOT
from tests.support.streams import held, until
from tests.support.streams import run as run


class Watched:
    """A response whose stream stays open, or one that was refused."""

    def __init__(self, response: httpx.Response) -> None:
        self.status_code = response.status_code
        self._pieces = response.iter_raw()
        self.response = response
        if response.status_code == 200:
            next(self._pieces)
        else:
            response.read()

    def read_to_its_end(self) -> None:
        """A stream that is cut instead of ended raises here."""
        for _ in self._pieces:
            pass


@contextmanager
def watching(client: Client, run_id: str, **headers: str) -> Iterator[Watched]:
    """The run's stream, open for as long as the block."""
    path = f"{client.url}/api/v1/agent/runs/{run_id}/events"
    headers |= {"Authorization": f"Bearer {client.token}"}
    with (
        httpx.Client(trust_env=False, timeout=20) as web,
        web.stream("GET", path, headers=headers) as response,
    ):
        watched = Watched(response)  # a name, because httpx closes what nobody reads any more
        yield watched


def refused(watched: Watched) -> tuple[int, str, str]:
    answer = watched.response
    return answer.status_code, answer.json()["code"], answer.headers["Retry-After"]


OVER_USER = (429, "SSE_CONCURRENCY_LIMIT_EXCEEDED", "30")
OVER_CONVERSATION = (429, "SSE_CONCURRENCY_LIMIT_EXCEEDED", "10")


def test_a_conversation_has_so_many_streams_and_a_closed_one_makes_room(
    client: Client, run: dict[str, Any], settings: Settings
) -> None:
    settings.STREAMS_PER_CONVERSATION = 2
    with watching(client, run["run_id"]), ExitStack() as second:
        second.enter_context(watching(client, run["run_id"]))
        with watching(client, run["run_id"]) as third:
            assert refused(third) == OVER_CONVERSATION
            assert third.response.json()["limit"] == 2
        second.close()
        until(lambda: held(client) == 1)
        with watching(client, run["run_id"]) as again:
            assert again.status_code == 200
    until(lambda: held(client) == 0)


def test_a_stream_that_is_refused_starts_no_run(
    client: Client, run: dict[str, Any], settings: Settings
) -> None:
    settings.STREAMS_PER_USER = 1
    thread_id = str(uuid4())
    said: dict[str, Any] = {
        "threadId": thread_id,
        "runId": "r1",
        "messages": [{"id": "1", "role": "user", "content": "hi"}],
    }
    said |= {"state": {}, "tools": [], "context": [], "forwardedProps": {"model": "demo"}}

    def post() -> httpx.Response:
        accept = {"Accept": "text/event-stream"}
        return client.http.post("/api/v1/agent/runs", json=said, headers=accept)

    with watching(client, run["run_id"]):
        answer = post()
        assert (answer.status_code, answer.headers["Retry-After"]) == (429, "30"), answer.text
        assert not Run.objects.filter(thread_id=thread_id).exists()
    until(lambda: held(client) == 0)
    assert post().status_code == 200
    assert held(client) == 0


def test_a_user_has_so_many_streams_over_all_conversations(
    make_client: Callable[..., Client],
    client: Client,
    run: dict[str, Any],
    settings: Settings,
    scripted: Callable[..., ScriptedModel],
) -> None:
    settings.STREAMS_PER_USER = 1
    with watching(client, run["run_id"]):
        other = client.start(model="demo")
        with watching(client, other["run_id"]) as second:
            assert refused(second) == OVER_USER
        stranger = make_client()
        with watching(stranger, stranger.start(model="demo")["run_id"]) as theirs:
            assert theirs.status_code == 200
        answer = client.poll(run["run_id"], wait=0)  # a long-poll holds no place
        assert answer["events"]


def test_a_reader_that_comes_back_takes_the_place_of_its_lost_stream(
    client: Client, run: dict[str, Any], settings: Settings
) -> None:
    settings.STREAMS_PER_CONVERSATION = 2
    with (
        watching(client, run["run_id"]) as lost,
        watching(client, run["run_id"]) as other,
        watching(client, run["run_id"], **{"Last-Event-ID": "1"}) as back,
    ):
        lost.read_to_its_end()
        assert [other.status_code, back.status_code, held(client)] == [200, 200, 2]
        with watching(client, run["run_id"]) as another:
            assert refused(another) == OVER_CONVERSATION


def test_another_conversation_s_stream_is_not_taken(
    client: Client, run: dict[str, Any], settings: Settings
) -> None:
    settings.STREAMS_PER_USER = 1
    other = client.start(model="demo")
    with (
        watching(client, run["run_id"]),
        watching(client, other["run_id"], **{"Last-Event-ID": "1"}) as second,
    ):
        assert refused(second) == OVER_USER


def test_a_socket_is_told_that_the_database_is_away(
    client: Client, run: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: Any) -> None:
        raise PoolTimeout("no connection")

    monkeypatch.setattr(sockets, "admitted", away)
    url = client.url.replace("http", "ws") + f"/ws/agent/runs/{run['run_id']}"
    socket = websocket.create_connection(
        url, header=[f"Authorization: Bearer {client.token}"], timeout=20
    )
    said = json.loads(socket.recv())
    assert said["event"] == "refused"
    assert said["data"]["code"] == "unavailable"
    assert said["data"]["retry_after"] == 2
    assert int.from_bytes(socket.recv_data()[1][:2]) == 4503
    socket.shutdown()  # type: ignore[no-untyped-call]


def test_a_socket_counts_and_is_refused_with_a_reason(
    client: Client, run: dict[str, Any], settings: Settings
) -> None:
    settings.STREAMS_PER_USER = 1
    url = client.url.replace("http", "ws") + f"/ws/agent/runs/{run['run_id']}"
    options: dict[str, Any] = {"header": [f"Authorization: Bearer {client.token}"], "timeout": 20}
    first = websocket.create_connection(url, **options)
    first.recv()
    with watching(client, run["run_id"]) as stream:
        assert refused(stream) == OVER_USER
    second = websocket.create_connection(url, **options)
    said = second.recv()
    assert "SSE_CONCURRENCY_LIMIT_EXCEEDED" in str(said)
    assert '"retry_after":30' in str(said)
    assert int.from_bytes(second.recv_data()[1][:2]) == 4429
    for socket in (first, second):
        socket.shutdown()  # type: ignore[no-untyped-call]
    until(lambda: held(client) == 0)


def test_zero_is_no_limit(client: Client, run: dict[str, Any], settings: Settings) -> None:
    settings.STREAMS_PER_USER = settings.STREAMS_PER_CONVERSATION = 0
    with ExitStack() as opened:
        for _ in range(25):
            stream = opened.enter_context(watching(client, run["run_id"]))
            assert stream.status_code == 200
        assert held(client) == 25


def test_staff_end_a_user_s_streams(
    make_client: Callable[..., Client], client: Client, run: dict[str, Any]
) -> None:
    staff = make_client(is_staff=True)
    url = client.url.replace("http", "ws") + f"/ws/agent/runs/{run['run_id']}"
    socket = websocket.create_connection(
        url, header=[f"Authorization: Bearer {client.token}"], timeout=20
    )
    path = "/api/v1/llm/sse/force-disconnect"
    with watching(client, run["run_id"]) as stream:
        until(lambda: held(client) == 2)
        answer = staff.http.post(path, params={"user_id": str(client.user.pk)})
        assert answer.json() == {
            "code": 200,
            "msg": "success",
            "data": {"user_id": str(client.user.pk), "disconnected": 2},
        }
        stream.read_to_its_end()
        while (frame := socket.recv_data())[0] != websocket.ABNF.OPCODE_CLOSE:
            pass
        assert int.from_bytes(frame[1][:2]) == 1013
        socket.shutdown()  # type: ignore[no-untyped-call]
    assert held(client) == 0
    assert staff.http.post(path).json()["data"] == {"user_id": str(staff.user.pk), "disconnected": 0}
    assert staff.http.post(path, params={"user_id": "x"}).json()["code"] == "invalid_user_id"
    assert client.http.post(path).status_code == 403
    assert staff.http.get(path).status_code == 405


def test_a_place_that_nobody_enters_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    import asyncio

    monkeypatch.setattr(stream_slots, "_UNUSED_S", 0.05)

    async def forget_it() -> int:
        user_id = uuid4()
        await stream_slots.admit(user_id, uuid4())
        assert len(stream_slots._streams.of_user(user_id)) == 1
        await asyncio.sleep(0.2)
        return len(stream_slots._streams.of_user(user_id))

    assert database.run_sync(forget_it()) == 0


# --- over processes -------------------------------------------------------------------------------


def test_streams_of_other_processes_count_until_their_lease_ends(
    client: Client,
    run: dict[str, Any],
    settings: Settings,
    redis_url: str,  # noqa: F811
    patient: None,  # noqa: F811
) -> None:
    settings.REDIS_URL, settings.COORDINATION = redis_url, "redis"
    settings.STREAMS_PER_USER = 2
    key = shared_slots.user_key(client.user.pk)
    with redis.Redis.from_url(redis_url) as direct:
        direct.zadd(key, {f"{uuid4().hex}:1:other:1": time.time() + 60})
        direct.zadd(key, {f"{uuid4().hex}:1:dead:1": time.time() - 1})
        with watching(client, run["run_id"]) as first, watching(client, run["run_id"]) as second:
            assert first.status_code == 200
            assert refused(second) == OVER_USER
            direct.flushall()  # what Redis forgets it is told again
            database.run_sync(stream_slots.renew())
            assert direct.zcard(key) == 1
        until(lambda: direct.zcard(key) == 0)


def test_streams_of_other_processes_count_in_postgresql_too(
    client: Client, run: dict[str, Any], settings: Settings
) -> None:
    settings.COORDINATION, settings.STREAMS_PER_USER = "postgresql", 2
    add = "INSERT INTO coordination_sharedslot SELECT %s, %s, %s, now() + make_interval(secs => %s)"
    mine = "SELECT count(*) FROM coordination_sharedslot WHERE user_id = %s"
    with connect() as direct:
        for name, lives_s in (("other", 60), ("dead", -1)):
            direct.execute(add, (f"{uuid4().hex}:{name}", client.user.pk, uuid4(), lives_s))

        def count() -> int:
            return sum(number for (number,) in direct.execute(mine, (client.user.pk,)))

        with watching(client, run["run_id"]) as first, watching(client, run["run_id"]) as second:
            assert first.status_code == 200
            assert refused(second) == OVER_USER
            direct.execute("DELETE FROM coordination_sharedslot")  # as after a crash
            database.run_sync(stream_slots.renew())
            assert count() == 1
        until(lambda: count() == 0)


def test_a_slot_is_taken_from_the_same_conversation_alone(settings: Settings) -> None:
    settings.COORDINATION = "postgresql"
    user_id, one, other = uuid4(), uuid4(), uuid4()
    limits = Limits(2, 1)

    def take(name: str, thread_id: UUID, *, may_replace: bool = False) -> Taken | None:
        slot = SharedSlot(name=f"{user_id.hex}{name}", user_id=user_id, thread_id=thread_id)
        return database.run_sync(shared_slots.take(slot, limits, may_replace=may_replace))

    assert take("1", one) == Taken("", "")
    assert take("2", one) == Taken("conversation", "")
    assert take("3", other) == Taken("", "")
    assert take("4", uuid4()) == take("4", uuid4(), may_replace=True) == Taken("user", "")
    assert take("5", one, may_replace=True) == Taken("", f"{user_id.hex}1")
    assert database.run_sync(shared_slots.count_of_user(user_id)) == 2


def test_of_many_who_take_the_last_places_at_once_no_more_get_one(settings: Settings) -> None:
    settings.COORDINATION, user_id = "postgresql", uuid4()

    async def take(number: int) -> Taken | None:
        slot = SharedSlot(name=f"{user_id.hex}{number}", user_id=user_id, thread_id=uuid4())
        return await shared_slots.take(slot, Limits(5, 0), may_replace=False)

    async def play() -> list[Taken | None]:
        return list(await asyncio.gather(*map(take, range(40))))

    taken = database.run_sync(play())
    assert taken.count(Taken("", "")) == 5
    assert taken.count(Taken("user", "")) == 35


def test_without_redis_this_process_still_counts(
    client: Client,
    run: dict[str, Any],
    settings: Settings,
    fresh: None,  # noqa: F811
) -> None:
    settings.REDIS_URL, settings.COORDINATION = "redis://127.0.0.1:1/0", "redis"
    settings.STREAMS_PER_USER = 1
    with watching(client, run["run_id"]) as first:
        assert first.status_code == 200
        with watching(client, run["run_id"]) as second:
            assert refused(second) == OVER_USER


HOLDER = """
import asyncio, sys
from uuid import UUID
import django; django.setup()
from agents.intake import stream_slots
from config import database
from config.coordination import redis_client
from config.process import cancellation
redis_client.PATIENCE_S = 30  # how soon Redis is given up is tested elsewhere

async def for_ever():
    yield 1
    await asyncio.Event().wait()

async def hold(slot):
    async for _ in slot.hold_during(for_ever()):
        print("holding", flush=True)

async def main():
    chores = [stream_slots.obey_for_ever(), stream_slots.renew_for_ever()]  # as a web process has them
    tasks = [asyncio.create_task(chore) for chore in chores]
    slots = [await stream_slots.admit(UUID(sys.argv[1]), UUID(int=n)) for n in (1, 2)]
    await asyncio.gather(*map(hold, slots))
    await cancellation.cancel_all(tasks)  # and ends them
    print("ended", flush=True)

database.run_sync(main())  # a pool that connects when its loop ends lets it wait for ever
"""
OTHER = """
import asyncio, sys
from uuid import UUID
import django; django.setup()
from agents.intake import stream_slots
from config import database
from config.coordination import redis_client
from config.errors import TooManyRequests
redis_client.PATIENCE_S = 30

async def main():
    user_id = UUID(sys.argv[1])
    try:
        await stream_slots.admit(user_id, UUID(int=3))
    except TooManyRequests as error:
        print(error.error_code, error.retry_after)
    slot = await stream_slots.admit(user_id, UUID(int=1), resumed=True)
    slot.release()
    print(await stream_slots.force_disconnect(user_id), flush=True)
    # a notification may be lost, as before anybody listens
    while await stream_slots.force_disconnect(user_id):
        await asyncio.sleep(0.1)

database.run_sync(main())  # a pool that connects when its loop ends lets it wait for ever
"""


def test_a_process_that_ends_leaves_no_place_taken(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its readers come back at once, and each counted twice until the old places expire."""
    settings.COORDINATION = "postgresql"
    user_id, release = UUID(int=uuid4().int), shared_slots.release

    async def release_late(slots: Sequence[shared_slots.Slot]) -> None:
        await asyncio.sleep(0.1)
        await release(slots)

    async def play() -> int | None:
        renewing = asyncio.create_task(stream_slots.renew_for_ever())
        slots = [await stream_slots.admit(user_id, uuid4()) for _ in range(3)]
        monkeypatch.setattr(shared_slots, "release", release_late)
        for slot in slots:
            slot.release()
        await cancellation.cancel_all([renewing])  # as a web process at its end
        return await shared_slots.count_of_user(user_id)

    assert database.run_sync(play()) == 0


@pytest.mark.parametrize("through", ["redis", "postgresql"])
def test_two_processes_share_the_places_and_one_ends_the_other_s_streams(
    redis_url: str,  # noqa: F811
    through: str,
) -> None:
    user_id = str(UUID(int=uuid4().int))
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "DATABASE_URL": url_of_tests(),
        "REDIS_URL": redis_url if through == "redis" else "",
        "COORDINATION": through,
        "STREAMS_PER_USER": "2",
    }
    options: dict[str, Any] = {"cwd": ROOT, "env": environment, "text": True}
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, user_id], stdout=subprocess.PIPE, **options)
    try:
        assert holder.stdout is not None
        assert [holder.stdout.readline() for _ in range(2)] == ["holding\n"] * 2
        command = [sys.executable, "-c", OTHER, user_id]
        other = subprocess.run(command, capture_output=True, timeout=60, check=False, **options)
        code, retry_after, known = other.stdout.split()
        assert (code, retry_after) == ("SSE_CONCURRENCY_LIMIT_EXCEEDED", "30")
        assert known in ("1", "2")  # the replaced one may be on its way out
        assert holder.stdout.readline() == "ended\n"
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()  # type: ignore[union-attr]
