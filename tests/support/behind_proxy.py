"""What the tests of Parley behind a proxy do: start runs, read them in several ways, and sign in."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import httpx
import psycopg
import websocket

from benchmarks import stack
from benchmarks.fronts import HOST, Front
from benchmarks.http2 import Arrivals, Connection, Exchange
from tests.support.client import read_sse

RUNS: Final = "/api/v1/agent/runs"


@dataclass(frozen=True)
class Parley:
    """The web process behind the proxies."""

    parts: stack.Parts
    port: int
    token: str
    password: str
    database: str

    @property
    def headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.token}"}

    def addresses(self) -> list[str]:
        """Whose sign-ins are in the audit log, in order."""
        with psycopg.connect(self.database) as connection:
            rows = connection.execute(
                "SELECT after->>'address' FROM audit_auditentry WHERE action = 'signed in' ORDER BY id"
            ).fetchall()
        return [address for (address,) in rows]

    def sign_in(self, url: str, source: str, verify: Any, **headers: str) -> httpx.Response:
        """Sign in from this address of the machine."""
        transport = httpx.HTTPTransport(local_address=source, verify=verify, http2=True, trust_env=False)
        with httpx.Client(transport=transport, base_url=url, timeout=30) as client:
            body = {"username": "admin", "password": self.password}
            return client.post("/api/v1/auth/token", json=body, headers=headers)


def trust(front: Front) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(front.certificate))


async def served_anew(front: Front) -> None:
    """Be answered on a new connection; one that went to a worker about to leave is closed unused."""
    for _ in range(50):
        new = await connect(front, 2)
        try:
            assert (await new.fetch("/health", headers={}))["status"] == "ok"
        except ConnectionError:
            await asyncio.sleep(0.05)
        else:
            return
        finally:
            await new.close()
    raise AssertionError("no new connection is served")


async def connect(front: Front, number: int = 1) -> Connection:
    """A connection from an address of its own."""
    return await Connection.to(
        front.port, source=f"127.0.1.{number}", certificate=str(front.certificate)
    )


async def start(parley: Parley, connection: Connection, tokens: int, delay_ms: int) -> str:
    """Start a run of so many numbered tokens; its id."""
    body = {"model": "bench", "text": f"tokens={tokens} delay_ms={delay_ms}"}
    return str((await connection.fetch(RUNS, headers=parley.headers, payload=body))["run_id"])


def follow(
    parley: Parley, connection: Connection, run_id: str, *, after: int = 0
) -> tuple[Arrivals, Exchange]:
    """Read a run's frames, after the one of this id."""
    arrivals, resumed = Arrivals(), {"last-event-id": str(after)} if after else {}
    path = f"{RUNS}/{run_id}/events"
    return arrivals, connection.request(path, arrivals.feed, headers=parley.headers | resumed)


def cancel(parley: Parley, run_id: str) -> None:
    """End a run, beside the proxy."""
    address = f"http://{HOST}:{parley.port}{RUNS}/{run_id}/cancel"
    httpx.post(address, headers=parley.headers, json={}, trust_env=False, timeout=30).raise_for_status()


def whole(parley: Parley, run_id: str) -> list[int]:
    """The ids of all frames of a run that has ended, from Parley itself."""
    address = f"http://{HOST}:{parley.port}{RUNS}/{run_id}/events"
    with httpx.stream("GET", address, headers=parley.headers, trust_env=False, timeout=30) as response:
        return [frame.id for frame in read_sse(response) if frame.id is not None]


async def until(is_so: Callable[[], bool], seconds: float = 30) -> None:
    async with asyncio.timeout(seconds):
        while not is_so():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def hear(
    parley: Parley,
    front: Front,
    run_id: str,
    at: Callable[[int], None] = lambda _: None,
    *,
    after: int = 0,
) -> tuple[list[int], bool]:
    """Read a run by a WebSocket; return the frames' ids, and whether the run's end closed it."""
    socket = websocket.create_connection(
        f"{front.url.replace('https', 'wss')}/ws/agent/runs/{run_id}?token={parley.token}&after={after}",
        timeout=30,
        sslopt={"ca_certs": str(front.certificate)},
    )
    ids, code = list[int](), 0
    with suppress(websocket.WebSocketConnectionClosedException, ConnectionError):
        while not code:
            opcode, body = socket.recv_data()
            if opcode == websocket.ABNF.OPCODE_CLOSE:
                code = int.from_bytes(body[:2])
            elif (frame := json.loads(body)).get("id") is not None:
                ids.append(frame["id"])
                at(frame["id"])
    socket.shutdown()  # type: ignore[no-untyped-call]
    return ids, code == 1000
