"""The front door: what anybody can send without an account keeps nobody else out and fills no memory."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from ipaddress import ip_network

import httpx
import psutil
import pytest
import websocket
from pytest_django import Settings

from config import protocol
from tests.client import Client
from tests.conftest import Server
from tests.test_guards import until

RUNS = "/api/v1/agent/runs"
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
    monkeypatch.setattr(protocol, "HEAD_S", 0.5)
    with connection(server.url) as silent, connection(server.url) as half:
        half.sendall(b"GET /health HTTP/1.1\r\nHost: ")
        assert code_of(rest(half)) == (408, "request_timeout")
        assert rest(silent) == b""


def test_a_connection_may_rest_between_two_requests(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "HEAD_S", 0.3)
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
        assert rest(raw).count(b"HTTP/1.1 200 ") <= protocol.MOST_PIPELINED + 1


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
        until(lambda: protocol.connections._held[STRANGER] == 1)
        second.sendall(head("GET", "/health", "Connection: close"))
        assert rest(second).startswith(b"HTTP/1.1 200 ")
    until(lambda: STRANGER not in protocol.connections._held)


def test_a_socket_counts_for_its_address_until_it_is_closed(client: Client) -> None:
    run_id = client.start()["run_id"]
    url = client.url.replace("http", "ws") + f"/ws/agent/runs/{run_id}"
    with connection(client.url, source=STRANGER) as raw:
        web = websocket.create_connection(
            url, header=[f"Authorization: Bearer {client.token}"], socket=raw, timeout=PATIENCE_S
        )
        web.recv()
        assert protocol.connections._held[STRANGER] == 1
    until(lambda: STRANGER not in protocol.connections._held)


def test_a_trusted_proxy_holds_as_many_as_its_clients_need(server: Server, settings: Settings) -> None:
    settings.CONNECTIONS_PER_ADDRESS = 1
    settings.TRUSTED_PROXIES = [ip_network(f"{STRANGER}/32")]
    with ExitStack() as open_:
        raws = [open_.enter_context(connection(server.url, source=STRANGER)) for _ in range(3)]
        for raw in raws:
            raw.sendall(head("GET", "/health", "Connection: close"))
            assert rest(raw).startswith(b"HTTP/1.1 200 ")
