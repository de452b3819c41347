"""Parley behind nginx and Caddy, each with the files of `deploy/`, by TLS and HTTP/2 on loopback."""

from __future__ import annotations

import asyncio
import json
import shutil
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from io import BytesIO
from itertools import count, repeat, takewhile
from pathlib import Path
from typing import Any, Final

import httpx
import psycopg
import pytest
import websocket

from benchmarks import fronts, stack
from benchmarks.fronts import HOST, Front
from benchmarks.http2 import Arrivals, Connection, Exchange, delays
from config.http.body_limits import HISTORY_LIMIT
from config.http.streamed_body import FILE_LIMIT
from tests.support.client import read_sse
from tests.support.pictures import large_jpeg
from tests.support.refusals import check_error
from tests.support.shell import needs_curl

pytestmark = [
    pytest.mark.timeout(180),
    pytest.mark.skipif(sys.platform != "linux", reason="clients need more addresses of loopback"),
]

RUNS: Final = "/api/v1/agent/runs"
STREAMS: Final = 24
ENDLESS: Final = 4_000  # tokens: a run that a test cancels when it has seen enough
SPOOFED: Final = "203.0.113.7"
SIGN_INS: Final = 6
_source = count(10)


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


@pytest.fixture(scope="module")
def parley() -> Iterator[Parley]:
    with ExitStack() as opened:
        folder = Path(tempfile.mkdtemp(prefix="parley-proxies-"))
        opened.callback(shutil.rmtree, folder, ignore_errors=True)
        folder.chmod(0o711)  # the users of PostgreSQL and nginx pass through
        parts = opened.enter_context(stack.Parts(folder))
        model = stack.free_port()
        parts.start("model", stack.PYTHON, "-m", "benchmarks.fake_model", "--port", str(model))
        env = stack.environment(parts, stack.free_port(), "uvicorn") | {
            "DATABASE_URL": "",
            "REDIS_URL": "",
            "PUBLIC_URL": "https://parley.example",
            "ALLOWED_HOSTS": HOST,
            "TRUSTED_PROXIES": HOST,
            "RATE_SIGN_IN_PER_MINUTE": str(SIGN_INS),
            "LOG_LEVEL": "WARNING",
        }
        _, port, token, *_, database = stack.embedded_shape(
            parts,
            opened,
            base_url=f"http://{HOST}:{model}/v1",
            env=env,
            workers=1,
            say=lambda _: None,
        )
        notes = json.loads((folder / "var" / "up.json").read_text())
        yield Parley(parts, port, token, notes["admin"]["password"], database)


@pytest.fixture(scope="module", params=fronts.KINDS)
def front(parley: Parley, request: pytest.FixtureRequest) -> Iterator[Front]:
    if reason := fronts.missing(request.param):
        pytest.skip(reason)
    made = Front(request.param, parley.parts.folder / request.param, parley.parts, parley.port)
    made.check()
    made.start()
    yield made
    made.stop()


@pytest.fixture
def client(parley: Parley, front: Front) -> Iterator[httpx.Client]:
    """A client with a token that speaks HTTP/2 with the proxy."""
    with httpx.Client(
        base_url=front.url,
        headers=parley.headers,
        verify=trust(front),
        http2=True,
        timeout=60,
        trust_env=False,
    ) as made:
        yield made


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


# --- streams --------------------------------------------------------------------------------------


def test_a_frame_that_was_held_back_is_seen() -> None:
    """`benchmarks.proxies` counts those that came after both readers had begun."""
    here, there = Arrivals(), Arrivals()
    here.at, there.at = {1: 1.0, 2: 2.0, 3: 3.5}, {2: 1.5, 3: 3.25}
    assert delays(here, there) == [(0.25, 3.5)]


def test_frames_leave_while_the_model_is_silent(parley: Parley, front: Front) -> None:
    """Behind a proxy that waits for more, the first word would come with the second, an hour later."""

    async def play() -> None:
        through = await connect(front)
        runs = [await start(parley, through, 2, 3_600_000) for _ in range(STREAMS)]
        readers = [follow(parley, through, run) for run in runs]
        await until(lambda: all(b"t0 " in arrivals.body for arrivals, _ in readers))
        for run in runs:
            await through.fetch(f"{RUNS}/{run}/cancel", headers=parley.headers, payload={})
        await asyncio.gather(*(exchange.ended for _, exchange in readers))
        assert not any(b"t1 " in arrivals.body for arrivals, _ in readers)
        await through.close()

    asyncio.run(play())


def test_a_reload_of_the_proxy_cuts_no_stream(parley: Parley, front: Front) -> None:
    async def play() -> None:
        old = await connect(front)
        runs = [await start(parley, old, ENDLESS, 25) for _ in range(STREAMS)]
        readers = [follow(parley, old, run) for run in runs]
        await until(lambda: all(len(arrivals.at) > 10 for arrivals, _ in readers))
        await asyncio.to_thread(front.reload)
        await served_anew(front)
        seen = [len(arrivals.at) for arrivals, _ in readers]
        await until(lambda: all(len(one.at) > n + 10 for (one, _), n in zip(readers, seen, strict=True)))
        for run, (arrivals, exchange) in zip(runs, readers, strict=True):
            await asyncio.to_thread(cancel, parley, run)
            await exchange.ended
            assert list(arrivals.at) == await asyncio.to_thread(whole, parley, run)
        await old.close()

    asyncio.run(play())


def test_after_a_restart_of_the_proxy_a_reader_goes_on_where_it_stopped(
    parley: Parley, front: Front
) -> None:
    async def play() -> tuple[str, list[int], list[int]]:
        old = await connect(front)
        run_id = await start(parley, old, ENDLESS, 25)
        begun, cut = follow(parley, old, run_id)
        await until(lambda: len(begun.at) > 10)
        await asyncio.to_thread(front.restart)
        with pytest.raises(ConnectionError):
            await cut.ended
        new = await connect(front, 2)
        rest, exchange = follow(parley, new, run_id, after=max(begun.at))
        await until(lambda: len(rest.at) > 10)
        await asyncio.to_thread(cancel, parley, run_id)
        await exchange.ended
        await new.close()
        return run_id, list(begun.at), list(rest.at)

    run_id, begun, rest = asyncio.run(play())
    assert begun + rest == whole(parley, run_id)


def test_a_reader_that_leaves_is_no_longer_read_for(parley: Parley, front: Front) -> None:
    """Else it would keep its stream slot until the run ends."""

    async def play() -> None:
        through = await connect(front)
        run_id = await start(parley, through, 100, 200)
        readers = [follow(parley, through, run_id)[0] for _ in range(3)]
        await until(lambda: all(arrivals.at for arrivals in readers))
        open_then = len(upstream(parley))
        await through.close()
        await until(lambda: len(upstream(parley)) <= open_then - 3, 5)
        again = await connect(front, 2)
        detail = await again.fetch(f"{RUNS}/{run_id}", headers=parley.headers)
        assert detail["status"] == "running"
        await again.fetch(f"{RUNS}/{run_id}/cancel", headers=parley.headers, payload={})
        await again.close()

    asyncio.run(play())


def upstream(parley: Parley) -> list[str]:
    """The connections to the web process that are open, by the kernel's table."""
    port = f":{parley.port:04X}"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return [row[2] for row in rows if row[1].endswith(port) and row[3] == "01"]


def test_a_web_socket_passes(parley: Parley, front: Front, client: httpx.Client) -> None:
    started = client.post(RUNS, json={"model": "bench", "text": "tokens=20 delay_ms=5"}).json()
    socket = websocket.create_connection(
        f"{front.url.replace('https', 'wss')}/ws/agent/runs/{started['run_id']}?token={parley.token}",
        timeout=30,
        sslopt={"ca_certs": str(front.certificate)},
    )
    ids, closed = list[int](), 0
    while not closed:
        opcode, body = socket.recv_data()
        if opcode == websocket.ABNF.OPCODE_CLOSE:
            closed = int.from_bytes(body[:2])
        elif (frame := json.loads(body)).get("id") is not None:
            ids.append(frame["id"])
    socket.shutdown()  # type: ignore[no-untyped-call]
    assert closed == 1000
    assert ids == whole(parley, started["run_id"])
    log = front.folder / "access.log"
    assert parley.token not in (log.read_text() if log.exists() else "")


# --- bodies ---------------------------------------------------------------------------------------


def test_the_largest_file_passes_and_its_signed_url_opens_it(client: httpx.Client) -> None:
    data = large_jpeg(FILE_LIMIT)
    answer = client.post("/api/v1/agent/attachments", files={"file": ("a.jpg", BytesIO(data))})
    assert answer.status_code == 201, answer.text
    assert answer.http_version == "HTTP/2"
    url = httpx.URL(answer.json()["url"])
    assert url.host == "parley.example"
    opened = client.get(url.raw_path.decode(), headers={"Authorization": ""})
    assert (opened.status_code, len(opened.content)) == (200, int(opened.headers["content-length"]))
    part = client.get(url.raw_path.decode(), headers={"Range": "bytes=100-199"})
    assert (part.status_code, part.content) == (206, opened.content[100:200])
    changed = client.get(url.raw_path.decode()[:-1] + ("a" if str(url)[-1] != "a" else "b"))
    assert changed.status_code == 400


def test_a_byte_too_many_is_refused_by_parley(client: httpx.Client) -> None:
    data = large_jpeg(FILE_LIMIT + 1)
    answer = client.post("/api/v1/agent/attachments", files={"file": ("a.jpg", BytesIO(data))})
    check_error(answer, 413, "payload_too_large")


def test_the_largest_history_passes(client: httpx.Client) -> None:
    pieces = repeat(
        b" " * 2**16, HISTORY_LIMIT // 2**16
    )  # of a whole body httpx copies the rest each time
    headers = {"Content-Type": "application/json", "Content-Length": str(HISTORY_LIMIT)}
    taken = client.post("/api/v1/agent/ag-ui", content=pieces, headers=headers)
    assert taken.status_code == 422, taken.text  # it was read to its end: this is no run


@needs_curl
def test_a_history_of_a_byte_too_many_is_refused_by_parley(
    parley: Parley, front: Front, tmp_path: Path
) -> None:
    body, told = tmp_path / "body", ("-H", "Content-Type: application/json", "-H", "Expect:")
    body.write_bytes(b" " * (HISTORY_LIMIT + 1))
    known = ("-H", f"Authorization: Bearer {parley.token}", "--cacert", str(front.certificate))
    sent = ("--data-binary", f"@{body}", f"{front.url}/api/v1/agent/ag-ui", "-w", "\n%{http_code}")
    command = ("curl", "--silent", "--http1.1", "--max-time", "30", *known, *told, *sent)
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    answer, status = done.stdout.rsplit("\n", 1)
    assert (json.loads(answer)["code"], status) == ("payload_too_large", "413")


def test_a_history_of_a_byte_too_many_is_refused_over_http2_by_its_head(
    parley: Parley, front: Front
) -> None:
    """Not asked by curl: its 7.88 may lose an answer whose stream is then reset, as RFC 9113 allows."""
    answer = bytearray()

    async def post() -> int:
        opened = await Connection.to(front.port, certificate=str(front.certificate))
        path, size = "/api/v1/agent/ag-ui", HISTORY_LIMIT + 1
        sent = opened.request(path, answer.extend, headers=parley.headers, announced=size)
        async with asyncio.timeout(30):
            await sent.ended
        await opened.close()
        return await sent.status

    assert (asyncio.run(post()), json.loads(answer)["code"]) == (413, "payload_too_large")


def test_metrics_stay_inside(client: httpx.Client) -> None:
    assert client.get("/metrics").status_code == 403


# --- addresses ------------------------------------------------------------------------------------


def test_nobody_writes_an_address_that_is_believed(parley: Parley, front: Front) -> None:
    """Neither through the proxy, nor to Parley itself from an address that is no proxy's."""
    behind, beside = (f"127.0.2.{next(_source)}" for _ in range(2))
    before, verify = len(parley.addresses()), trust(front)
    for name in ("X-Forwarded-For", "x-forwarded-for", "Forwarded", "X-Real-IP"):
        headers = {name: f"for={SPOOFED}" if name == "Forwarded" else f"{SPOOFED}, {HOST}"}
        assert parley.sign_in(front.url, behind, verify, **headers).status_code == 200
    direct = f"http://{HOST}:{parley.port}"
    answer = parley.sign_in(direct, beside, verify, **{"X-Forwarded-For": SPOOFED})
    assert answer.status_code == 200
    assert parley.addresses()[before:] == [behind] * 4 + [beside]


def test_limits_count_the_clients_and_not_the_proxy(parley: Parley, front: Front) -> None:
    mine, another = (f"127.0.2.{next(_source)}" for _ in range(2))
    verify = trust(front)
    answers = (
        parley.sign_in(
            front.url, mine, verify, **{"X-Forwarded-For": f"198.51.100.{number}"}
        ).status_code
        for number in range(2 * SIGN_INS + 1)  # a minute may begin among them, but not two
    )
    let_in = list(takewhile(lambda status: status != 429, answers))
    assert SIGN_INS <= len(let_in) <= 2 * SIGN_INS
    assert set(let_in) == {200}
    assert parley.sign_in(front.url, another, verify).status_code == 200
