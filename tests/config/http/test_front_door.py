"""The front door: what anybody can send without an account keeps nobody else out and fills no memory."""

from __future__ import annotations

import asyncio
import functools
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from ipaddress import ip_network
from typing import Any
from uuid import uuid4

import httpx
import psutil
import pytest
import uvicorn
import websocket
from pytest_django import Settings

from config.auth import bearer
from config.errors import TooManyRequests, Unavailable
from config.http import body_limits
from config.process import server_protocols
from config.process.bootstrap import bind
from tests.config.http.histories import AG_UI, RUNS, history
from tests.conftest import Server
from tests.support.client import Client
from tests.support.streams import held, run, until  # noqa: F401

pytestmark = pytest.mark.once

STRANGER = "127.0.0.2"  # an address of its own: what others hold open does not count for it
PATIENCE_S = 20.0


@contextmanager
def connection(url: str, *, source: str = "") -> Iterator[socket.socket]:
    """A plain connection to the server."""
    at = httpx.URL(url)
    own = (source, 0) if source else None
    with socket.create_connection((at.host, at.port or 80), PATIENCE_S, source_address=own) as raw:
        yield raw


def rest(raw: socket.socket) -> bytes:
    """What the server still sends, until it hangs up."""
    found = b""
    with suppress(ConnectionError):
        while some := raw.recv(65_536):
            found += some
    return found


def one(raw: socket.socket) -> bytes:
    """One answer in chunks, to its last."""
    found = b""
    while not found.endswith(b"\r\n0\r\n\r\n"):
        found += raw.recv(65_536)
    return found


def head(method: str, path: str, *lines: str) -> bytes:
    return "\r\n".join((f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", *lines, "", "")).encode()


def code_of(answer: bytes) -> tuple[int, str]:
    top, _, body = answer.partition(b"\r\n\r\n")
    return int(top.split()[1]), json.loads(body)["code"]


# --- heads ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "begun",
    [
        b"GET /health HTTP/1.1\r\nHost: x\r\n" + b"X-Odd: 1\r\n" * 7_000,
        b"GET /health HTTP/1.1\r\nHost: x\r\nX-Odd: " + b"a" * 70_000 + b"\r\n\r\n",
        b"GET /health?" + b"a" * 70_000,
    ],
    ids=["lines", "line", "address"],
)
def test_a_head_over_64_kib_is_refused_and_hung_up_on(server: Server, begun: bytes) -> None:
    with connection(server.url) as raw:
        raw.sendall(begun)
        answer = rest(raw)
    assert code_of(answer) == (431, "headers_too_large")
    assert b"connection: close" in answer


def test_a_head_of_60_kib_is_taken(server: Server) -> None:
    with connection(server.url) as raw:
        raw.sendall(head("GET", "/health", "X-Large: " + "a" * 60_000, "Connection: close"))
        assert rest(raw).startswith(b"HTTP/1.1 200 ")


ENDLESS = {
    "lines": (head("GET", "/health")[:-2], b"X-Odd: 1\r\n" * 6_000),
    "line": (head("GET", "/health")[:-2] + b"X-Odd: ", b"a" * 60_000),
    "trailers": (head("POST", RUNS, "Transfer-Encoding: chunked") + b"0\r\n", b"X-Odd: 1\r\n" * 6_000),
    "trailer": (head("POST", RUNS, "Transfer-Encoding: chunked") + b"0\r\nX-Odd: ", b"a" * 60_000),
    "extension": (head("POST", RUNS, "Transfer-Encoding: chunked") + b"5;a=", b"a" * 60_000),
    "blank lines": (b"", b"\r\n" * 30_000),
}


@pytest.mark.parametrize(("begun", "more"), ENDLESS.values(), ids=ENDLESS.keys())
def test_what_never_ends_is_not_read_and_not_kept(server: Server, begun: bytes, more: bytes) -> None:
    before = psutil.Process().memory_info().rss
    sent = 0
    with connection(server.url) as raw:
        raw.sendall(begun)
        with suppress(ConnectionError):
            while sent < 200_000_000:
                raw.sendall(more)
                sent += len(more)
        assert sent < 100_000_000
    assert psutil.Process().memory_info().rss - before < 32 * 2**20


def test_who_sends_no_head_or_half_of_one_is_hung_up_on(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_protocols, "HEAD_S", 0.5)
    with connection(server.url) as silent, connection(server.url) as half:
        half.sendall(b"GET /health HTTP/1.1\r\nHost: ")
        assert code_of(rest(half)) == (408, "request_timeout")
        assert rest(silent) == b""


def test_a_connection_may_rest_between_two_requests(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_protocols, "HEAD_S", 0.3)
    with connection(server.url) as raw:
        raw.sendall(head("GET", "/health"))
        assert one(raw).startswith(b"HTTP/1.1 200 ")
        time.sleep(1)  # longer than a head may take
        raw.sendall(head("GET", "/health"))
        assert one(raw).startswith(b"HTTP/1.1 200 ")
        raw.sendall(b"\r\n")  # the beginning of nothing
        assert rest(raw) == b""


def test_a_trailer_is_no_header(client: Client) -> None:
    trailer = f"0\r\nAuthorization: Bearer {client.token}\r\n\r\n".encode()
    with connection(client.url) as raw:
        raw.sendall(head("POST", RUNS, "Transfer-Encoding: chunked", "Connection: close") + trailer)
        assert code_of(httpx_body(rest(raw))) == (401, "token_missing")


def httpx_body(answer: bytes) -> bytes:
    """The answer without the marks of its one chunk."""
    top, _, body = answer.partition(b"\r\n\r\n")
    return top + b"\r\n\r\n" + body[body.index(b"{") : body.rindex(b"}") + 1]


def test_requests_that_wait_for_each_other_are_few(server: Server) -> None:
    with connection(server.url) as raw:
        with suppress(ConnectionError):
            raw.sendall(head("GET", "/health") * 10_000)
        assert rest(raw).count(b"HTTP/1.1 200 ") <= server_protocols.MOST_PIPELINED + 1


def test_a_reader_that_asked_for_more_and_left_holds_no_place(
    client: Client,
    run: dict[str, Any],  # noqa: F811
    settings: Settings,
) -> None:
    settings.HEARTBEAT_S = 0.5  # by which the server sees that nobody is there
    events = head("GET", f"{RUNS}/{run['run_id']}/events", f"Authorization: Bearer {client.token}")
    with connection(client.url) as raw:
        raw.sendall(events)
        until(lambda: held(client) == 1)
        raw.sendall(head("GET", "/health"))
        raw.recv(65_536)
    until(lambda: held(client) == 0)


# --- bodies ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/chat/login/", "/admin/login/", "/api/v1/auth/token", RUNS, AG_UI])
def test_half_a_body_is_waited_for_only_so_long(
    server: Server, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr(body_limits, "BODY_S", 0.5)
    with connection(server.url) as raw:
        raw.sendall(head("POST", path, "Content-Length: 100") + b"username=")
        assert code_of(rest(raw)) == (408, "request_timeout")


@pytest.mark.parametrize("path", ["/chat/login/", RUNS])
def test_a_body_that_comes_slowly_but_comes_is_read(
    server: Server, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr(body_limits, "BODY_S", 0.5)
    monkeypatch.setattr(body_limits, "BODY_RATE", 10)
    with connection(server.url) as raw:
        raw.sendall(head("POST", path, "Content-Length: 50", "Connection: close"))
        for _ in range(5):
            time.sleep(0.2)
            raw.sendall(b"username=x")
        status = int(rest(raw).split()[1])
    assert status in (401, 403)  # without a token, without CSRF's: read and judged


@contextmanager
def stalled(client: Client, *, token: str = "") -> Iterator[socket.socket]:
    """A request with a large body of which only the beginning comes."""
    with connection(client.url) as raw:
        lines = [f"Authorization: Bearer {token}"] if token else []
        raw.sendall(head("POST", AG_UI, "Content-Length: 9000000", *lines) + b"x" * 1_000)
        yield raw


def accepted(client: Client, body: dict[str, Any]) -> httpx.Response:
    return client.http.post(AG_UI, json=body, headers={"Accept": "application/json"})


@pytest.mark.parametrize("count", [8, 16])
def test_one_account_with_stalled_bodies_keeps_nobody_else_out(
    make_client: Callable[..., Client], count: int
) -> None:
    greedy, modest = make_client(), make_client()
    with ExitStack() as open_:
        for _ in range(body_limits.LARGE_PER_ACCOUNT):
            open_.enter_context(stalled(greedy, token=greedy.token))
        until(lambda: body_limits._places._taken == body_limits.LARGE_PER_ACCOUNT)
        late = range(count - body_limits.LARGE_PER_ACCOUNT)
        raws = [open_.enter_context(stalled(greedy, token=greedy.token)) for _ in late]
        for raw in raws:
            assert code_of(rest(raw)) == (429, "too_many_large_requests")
        assert accepted(modest, history(353)).status_code == 202
        assert accepted(greedy, history(353)).status_code == 429
    until(lambda: accepted(greedy, history(353)).status_code == 202)


def test_an_address_has_a_share_of_the_large_bodies(make_client: Callable[..., Client]) -> None:
    one, other, third = (make_client() for _ in range(3))
    with ExitStack() as open_:
        for client in (one, other):
            for _ in range(body_limits.LARGE_PER_ADDRESS // 2):
                open_.enter_context(stalled(client, token=client.token))
        until(lambda: body_limits._places._taken == body_limits.LARGE_PER_ADDRESS)
        assert accepted(third, history(353)).json()["code"] == "too_many_large_requests"
        assert accepted(third, history(3)).status_code == 202
    until(lambda: accepted(third, history(353)).status_code == 202)


@pytest.mark.parametrize("token", ["", "nonsense"])
def test_a_large_body_of_nobody_is_refused_before_it_is_read(client: Client, token: str) -> None:
    with ExitStack() as open_:
        for raw in [open_.enter_context(stalled(client, token=token)) for _ in range(8)]:
            status, _ = code_of(rest(raw))
            assert status == 401
        assert body_limits._places._taken == 0
        assert accepted(client, history(353)).status_code == 202


def test_who_sends_a_large_body_is_looked_up_once(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str | None] = []
    authenticate = bearer.authenticate

    async def noted(header: str | None, *, begins: bool = False) -> bearer.Caller:
        asked.append(header)
        return await authenticate(header, begins=begins)

    monkeypatch.setattr(bearer, "authenticate", noted)
    assert accepted(client, history(353)).status_code == 202
    assert asked.count(f"Bearer {client.token}") == 1


def test_the_guests_of_an_address_are_one_account() -> None:
    places = body_limits._Places()

    def guest() -> bearer.Caller:
        return bearer.Caller(
            uuid4(), False, True, scopes=frozenset(), namespace=uuid4(), named_by_id=False
        )

    leaves = [places.take(guest(), "10.0.0.1") for _ in range(body_limits.LARGE_PER_ACCOUNT)]
    with pytest.raises(TooManyRequests):
        places.take(guest(), "10.0.0.1")
    more = body_limits.LARGE_AT_ONCE - body_limits.LARGE_PER_ACCOUNT
    leaves += [places.take(guest(), "10.0.0.2") for _ in range(more)]
    with pytest.raises(Unavailable):
        places.take(guest(), "10.0.0.3")
    for leave in leaves:
        leave()
    assert (places._taken, places._held) == (0, {})


def test_a_large_body_without_a_length_is_refused_once_it_is_large(client: Client) -> None:
    pieces = iter([b"x" * 65_536] * 8)
    response = httpx.post(client.url + AG_UI, content=pieces, trust_env=False)
    assert (response.status_code, response.json()["code"]) == (401, "token_missing")


# --- connections ----------------------------------------------------------------------------------


def test_an_address_holds_only_so_many_connections(client: Client, settings: Settings) -> None:
    settings.CONNECTIONS_PER_ADDRESS = 2
    with ExitStack() as open_:
        first, second, third = (
            open_.enter_context(connection(client.url, source=STRANGER)) for _ in range(3)
        )
        assert code_of(rest(third)) == (429, "too_many_connections")
        assert client.http.get("/health").status_code == 200  # from another address
        first.close()
        until(lambda: server_protocols.connections._held[STRANGER] == 1)
        second.sendall(head("GET", "/health", "Connection: close"))
        assert rest(second).startswith(b"HTTP/1.1 200 ")
    until(lambda: STRANGER not in server_protocols.connections._held)


def test_a_socket_counts_for_its_address_until_it_is_closed(client: Client) -> None:
    run_id = client.start()["run_id"]
    url = client.url.replace("http", "ws") + f"/ws/agent/runs/{run_id}"
    with connection(client.url, source=STRANGER) as raw:
        web = websocket.create_connection(
            url, header=[f"Authorization: Bearer {client.token}"], socket=raw, timeout=PATIENCE_S
        )
        web.recv()
        assert server_protocols.connections._held[STRANGER] == 1
    until(lambda: STRANGER not in server_protocols.connections._held)


def test_a_trusted_proxy_holds_as_many_as_its_clients_need(server: Server, settings: Settings) -> None:
    settings.CONNECTIONS_PER_ADDRESS = 1
    settings.TRUSTED_PROXIES = [ip_network(f"{STRANGER}/32")]
    with ExitStack() as open_:
        raws = [open_.enter_context(connection(server.url, source=STRANGER)) for _ in range(3)]
        for raw in raws:
            raw.sendall(head("GET", "/health", "Connection: close"))
            assert rest(raw).startswith(b"HTTP/1.1 200 ")


# --- idle connections -----------------------------------------------------------------------------


@contextmanager
def greeting(
    *, keep_alive_s: int = 5, turn_away: server_protocols.TurnAway = server_protocols.let_in
) -> Iterator[tuple[str, asyncio.AbstractEventLoop]]:
    """A server that answers everything; its address and its loop."""
    listener = bind("127.0.0.1", 0)
    options: dict[str, Any] = {
        "http": functools.partial(server_protocols.HttpProtocol, turn_away=turn_away),
        "lifespan": "off",
        "log_config": None,
    }
    web = uvicorn.Server(uvicorn.Config(_greet, timeout_keep_alive=keep_alive_s, **options))
    web.capture_signals = nullcontext  # type: ignore[method-assign,assignment]
    started: Future[asyncio.AbstractEventLoop] = Future()

    async def main() -> None:
        started.set_result(asyncio.get_running_loop())
        await web.serve(sockets=[listener])

    thread = threading.Thread(target=asyncio.run, args=(main(),), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}", started.result(10)
    web.should_exit = True
    thread.join(10)


async def _greet(_scope: Any, _receive: Any, send: Any) -> None:
    headers = [(b"content-length", b"5")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"hello"})


def test_a_request_that_comes_while_the_loop_is_held_is_answered() -> None:
    """The time of the idle connection is over then, and the loop looks at timers before sockets."""
    with greeting(keep_alive_s=1) as (url, loop), connection(url) as raw:
        for seconds in (0.0, 1.5):
            loop.call_soon_threadsafe(time.sleep, seconds)
            time.sleep(seconds / 2)
            raw.sendall(head("GET", "/"))
            answer = b""
            while not answer.endswith(b"hello"):
                some = raw.recv(65_536)
                assert some, "the server has hung up"
                answer += some
        assert rest(raw) == b""  # but nobody stays for ever


# --- a crowd at the door --------------------------------------------------------------------------


def _closed(scope: Any) -> server_protocols.Answer | None:
    return (
        (503, {"Retry-After": "1", "content-length": "4"}, b"full")
        if scope["method"] == "POST"
        else None
    )


def test_who_is_turned_away_is_answered_at_once_and_unheard() -> None:
    with greeting(turn_away=_closed) as (url, _), connection(url) as raw:
        raw.sendall(head("POST", RUNS, "Content-Length: 2") + b"{}")
        answer = rest(raw)  # to the end of the connection
        assert answer.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
        assert b"\r\nRetry-After: 1\r\n" in answer
        assert answer.endswith(b"\r\nconnection: close\r\n\r\nfull")
        assert httpx.get(f"{url}/health", trust_env=False).text == "hello"


def test_nobody_is_turned_away_in_the_middle_of_a_sentence() -> None:
    """A connection that is closed over unread bytes loses its answer: the application lets them come."""
    with greeting(turn_away=_closed) as (url, _), connection(url) as raw:
        raw.sendall(head("POST", RUNS, "Content-Length: 2") + b"{")
        answer = b""
        while not answer.endswith(b"hello"):
            answer += raw.recv(65_536)
        assert answer.startswith(b"HTTP/1.1 200 ")
