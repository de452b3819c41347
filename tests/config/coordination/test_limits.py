"""Rate limits: counted here at once, shared over processes soon, and never waited for."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from ipaddress import ip_network
from typing import Any
from uuid import uuid4

import httpx
import pytest
from pytest_django import Settings
from redis.asyncio import Redis

from config import database
from config.coordination import rate_limits, shared_counts
from config.coordination import redis_client as connection
from config.coordination.rate_limits import Limiter, client_address
from config.coordination.shared_counts import Window
from config.errors import TooManyRequests
from tests.conftest import Server
from tests.support.client import Client
from tests.support.fakes.issuer import EC
from tests.support.fakes.redis_server import fresh as fresh
from tests.support.fakes.redis_server import patient as patient
from tests.support.fakes.redis_server import redis_url as redis_url
from tests.support.log_lines import lines_about


class Clock:
    def __init__(self) -> None:
        self.now = 600.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_a_minute_holds_so_many_and_says_when_there_is_one_again(clock: Clock) -> None:
    limiter = Limiter(clock)
    assert [limiter.take("a", 3) for _ in range(3)] == [0, 0, 0]
    wait_s = limiter.take("a", 3)
    assert limiter.take("b", 3) == 0
    clock.now += wait_s - 1
    assert limiter.take("a", 3) > 0
    clock.now += 1.001
    assert limiter.take("a", 3) == 0


def test_no_minute_wherever_it_begins_lets_twice_as_many_through(clock: Clock) -> None:
    limiter, taken = Limiter(clock), list[float]()
    for _ in range(3_000):
        clock.now += 0.1
        if limiter.take("a", 100) == 0:
            taken.append(clock.now)
    worst = max(sum(1 for t in taken if begin <= t < begin + 60) for begin in taken)
    assert worst <= 110
    assert len(taken) >= 400


def test_after_a_silence_everything_is_free_again(clock: Clock) -> None:
    limiter = Limiter(clock)
    assert limiter.take("a", 1) == 0
    clock.now += 200
    limiter.list_unsynced()
    assert limiter._counts == {}
    assert limiter.take("a", 1) == 0


def test_ten_minutes_hold_so_many_and_say_when_there_is_one_again(clock: Clock) -> None:
    limiter = Limiter(clock)
    assert [limiter.take("a", 3, 600) for _ in range(3)] == [0, 0, 0]
    clock.now += 120
    limiter.list_unsynced()  # forgets who has not asked for two windows
    wait_s = limiter.take("a", 3, 600)
    clock.now += wait_s - 1
    limiter.list_unsynced()
    assert limiter.take("a", 3, 600) > 0
    clock.now += 1.001
    assert limiter.take("a", 3, 600) == 0
    clock.now += 1_800
    limiter.list_unsynced()
    assert limiter._counts == {}


def test_what_is_given_back_can_be_taken_again(clock: Clock) -> None:
    limiter = Limiter(clock)
    assert limiter.take("a", 1) == 0
    limiter.give_back("a")
    assert limiter.take("a", 1) == 0
    clock.now += 60  # it was taken in one minute and is given back in the next
    assert limiter.take("a", 1) > 0
    limiter.give_back("a")
    assert limiter.take("a", 1) == 0
    for _ in range(3):  # more than was taken gives no more than there is
        limiter.give_back("a")
    assert [limiter.take("a", 1) == 0 for _ in range(2)] == [True, False]


def test_very_many_addresses_take_bounded_memory(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limits, "_MOST", 100)
    limiter = Limiter(clock)
    for number in range(1_000):
        limiter.take(f"ip:{number}", 10)
    assert len(limiter._counts) <= 100


@pytest.mark.parametrize("window_s", [60, 600])
@pytest.mark.parametrize("through", ["redis", "postgresql"])
def test_two_processes_count_together(
    redis_url: str,
    settings: Settings,
    patient: None,
    clock: Clock,
    through: str,
    window_s: int,
) -> None:
    settings.REDIS_URL, settings.COORDINATION = redis_url, through
    one, other, name = Limiter(clock), Limiter(clock), f"user:{uuid4().hex}"

    async def meet() -> None:
        for limiter in (one, other, one):
            limiter.take(name, 0, window_s)
            await rate_limits.sync_counts(limiter)
        await connection.close()
        await database.close()

    assert [one.take(name, 10, window_s) for _ in range(6)] == [0] * 6
    assert [other.take(name, 10, window_s) for _ in range(4)] == [0] * 4
    asyncio.run(meet())
    assert one.take(name, 10, window_s) > 0
    assert other.take(name, 10, window_s) > 0
    assert other.take(name, 12) == 0


def test_counts_in_postgresql_go_when_their_windows_are_over(settings: Settings) -> None:
    settings.COORDINATION = "postgresql"
    young, old = Window(f"user:{uuid4().hex}", 60, 1), Window(f"user:{uuid4().hex}", -60, 1)

    async def play() -> list[dict[Window, int]]:
        await shared_counts.add({young: 2, old: 3})
        await shared_counts.expire()
        return [await shared_counts.add({young: -1, old: 0})]

    assert database.run_sync(play()) == [{young: 1, old: 0}]


def test_while_counts_cannot_be_exchanged_a_process_counts_alone(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    settings.COORDINATION = "postgresql"
    monkeypatch.setattr(shared_counts, "_is_down", False)
    with monkeypatch.context() as broken, lines_about("counts") as lines:
        broken.setattr(shared_counts, "_ADD", "SELECT 1 / 0 WHERE %s <> %s OR %s <> %s")
        limiter = Limiter(clock)
        assert [limiter.take("a", 2) for _ in range(2)] == [0, 0]
        for _ in range(3):
            database.run_sync(rate_limits.sync_counts(limiter))
            assert limiter.take("a", 2) > 0
    assert [line["event"] for line in lines] == ["counts not exchanged"]
    database.run_sync(rate_limits.sync_counts(limiter))  # what failed goes with the next
    assert not shared_counts._is_down


@pytest.mark.parametrize("kind", ["refused", "silent"])
def test_without_redis_one_asks_and_the_others_do_not_wait(
    settings: Settings, fresh: None, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(connection, "PAUSE_S", 60.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        if kind == "refused":
            silent.close()
        settings.REDIS_URL = f"redis://127.0.0.1:{port}/0"

        asked: list[Redis] = []

        def look(redis: Redis) -> Awaitable[Any]:
            asked.append(redis)
            return redis.get("x")

        async def ask() -> None:
            for _ in range(20):
                assert await connection.query(look) is None
            await connection.close()

        asyncio.run(ask())
    assert len(asked) == 1


# --- over HTTP ------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/api/v1/agent/runs/0", "/api/v1/llm/models"])
def test_a_user_is_limited_at_both_doors(
    make_client: Callable[..., Client], settings: Settings, path: str
) -> None:
    settings.RATE_USER_PER_MINUTE = 3
    busy, other = make_client(), make_client()
    answers = [busy.http.get(path) for _ in range(5)]
    assert [answer.status_code == 429 for answer in answers] == [False] * 3 + [True] * 2
    assert answers[-1].json()["code"] == "too_many_requests"
    assert 1 <= int(answers[-1].headers["Retry-After"]) <= 60
    assert other.http.get(path).status_code != 429


def test_posts_of_runs_are_limited(client: Client, settings: Settings) -> None:
    settings.RATE_USER_PER_MINUTE = 2
    body = {"model": "demo", "text": "hi"}
    statuses = [client.http.post("/api/v1/agent/runs", json=body).status_code for _ in range(3)]
    assert statuses == [202, 202, 429]


def test_guests_count_for_themselves_and_for_their_address(
    issuer: object,
    server: Server,
    settings: Settings,
) -> None:
    settings.RATE_GUEST_PER_MINUTE, settings.RATE_IP_PER_MINUTE = 2, 5
    settings.TRUSTED_PROXIES = [ip_network("127.0.0.0/8")]
    address = f"2001:db8:{uuid4().hex[:4]}:{uuid4().hex[:4]}::1"

    def ask(header: str) -> int:
        headers = {"Authorization": header, "X-Forwarded-For": address}
        return httpx.get(f"{server.url}/api/v1/llm/models", headers=headers, trust_env=False).status_code

    guest = EC.sign(is_anonymous=True)
    assert [ask(guest) for _ in range(3)] == [200, 200, 429]
    others = [ask(EC.sign(is_anonymous=True)) for _ in range(4)]
    assert others == [200, 200, 200, 429]
    assert ask("Bearer nonsense") == 429  # strangers share the address's count
    assert ask(EC.sign()) == 200  # who has an account does not


# --- whose address --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("peer", "forwarded", "proxies", "tls", "address"),
    [
        ("1.2.3.4", "", [], False, "1.2.3.4"),
        ("1.2.3.4", "9.9.9.9", [], False, "1.2.3.4"),
        ("10.0.0.1", "9.9.9.9", ["10.0.0.0/8"], False, "9.9.9.9"),
        ("10.0.0.1", "6.6.6.6, 9.9.9.9, 10.0.0.2", ["10.0.0.0/8"], False, "9.9.9.9"),
        ("1.2.3.4", "9.9.9.9", ["10.0.0.0/8"], True, "1.2.3.4"),
        ("10.0.0.1", "6.6.6.6, 9.9.9.9", [], True, "9.9.9.9"),
        ("10.0.0.1", "nonsense", ["10.0.0.0/8"], False, "10.0.0.1"),
        ("10.0.0.1", "10.0.0.7", ["10.0.0.0/8"], False, "10.0.0.7"),
        ("", "9.9.9.9", [], True, "9.9.9.9"),
        ("", "", [], False, "None"),
        ("2001:db8::1", "", [], False, "2001:db8::/64"),
        ("::ffff:1.2.3.4", "", [], False, "1.2.3.4"),
    ],
)
def test_only_trusted_proxies_name_the_client(
    settings: Settings, peer: str, forwarded: str, proxies: list[str], tls: bool, address: str
) -> None:
    settings.TRUSTED_PROXIES, settings.BEHIND_TLS = [ip_network(p) for p in proxies], tls
    meta = {"REMOTE_ADDR": peer, "HTTP_X_FORWARDED_FOR": forwarded}
    assert client_address(meta) == address


def test_zero_is_no_limit(settings: Settings) -> None:
    settings.RATE_USER_PER_MINUTE = settings.RATE_IP_PER_MINUTE = settings.RATE_SIGN_IN_PER_MINUTE = 0
    for _ in range(5_000):
        rate_limits.admit(uuid4(), is_guest=False, meta={})
        rate_limits.admit_anonymous({"REMOTE_ADDR": "192.0.2.1"})
        rate_limits.admit_sign_in({"REMOTE_ADDR": "192.0.2.1"})
    settings.RATE_IP_PER_MINUTE = 1
    rate_limits.admit_anonymous({"REMOTE_ADDR": "192.0.2.2"})
    with pytest.raises(TooManyRequests):
        rate_limits.admit_anonymous({"REMOTE_ADDR": "192.0.2.2"})
