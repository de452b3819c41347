"""Parley behind nginx and Caddy, each with the files of `deploy/`, by TLS and HTTP/2 on loopback."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from io import BytesIO
from itertools import count, repeat, takewhile
from pathlib import Path
from typing import Final

import httpx
import pytest

from benchmarks import fronts, stack
from benchmarks.fronts import HOST, Front
from benchmarks.http2 import Arrivals, Connection, delays
from benchmarks.ports import free_port
from config.http.body_limits import HISTORY_LIMIT
from config.http.streamed_body import FILE_LIMIT
from tests.support.behind_proxy import (
    RUNS,
    Parley,
    cancel,
    connect,
    follow,
    hear,
    served_anew,
    start,
    trust,
    until,
    whole,
)
from tests.support.pictures import large_jpeg
from tests.support.refusals import check_error
from tests.support.shell import needs_curl

pytestmark = [
    pytest.mark.timeout(180),
    pytest.mark.skipif(sys.platform != "linux", reason="clients need more addresses of loopback"),
]

STREAMS: Final = 24
ENDLESS: Final = 4_000  # tokens: a run that a test cancels when it has seen enough
SPOOFED: Final = "203.0.113.7"
SIGN_INS: Final = 6
_source = count(10)


@pytest.fixture(scope="module")
def parley() -> Iterator[Parley]:
    with ExitStack() as opened:
        folder = Path(tempfile.mkdtemp(prefix="parley-proxies-"))
        opened.callback(shutil.rmtree, folder, ignore_errors=True)
        folder.chmod(0o711)  # the users of PostgreSQL and nginx pass through
        parts = opened.enter_context(stack.Parts(folder))
        model = free_port()
        parts.start("model", stack.PYTHON, "-m", "benchmarks.fake_model", "--port", str(model))
        env = stack.environment(parts, free_port(), "uvicorn") | {
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


@pytest.mark.parametrize("renew", [Front.reload, Front.replace])
def test_a_proxy_that_is_renewed_cuts_no_stream(
    parley: Parley, front: Front, renew: Callable[[Front], None]
) -> None:
    async def play() -> None:
        old = await connect(front)
        runs = [await start(parley, old, ENDLESS, 25) for _ in range(STREAMS)]
        readers = [follow(parley, old, run) for run in runs]
        await until(lambda: all(len(arrivals.at) > 10 for arrivals, _ in readers))
        await asyncio.to_thread(renew, front)
        await served_anew(front)
        seen = [len(arrivals.at) for arrivals, _ in readers]
        await until(lambda: all(len(one.at) > n + 10 for (one, _), n in zip(readers, seen, strict=True)))
        for run, (arrivals, exchange) in zip(runs, readers, strict=True):
            await asyncio.to_thread(cancel, parley, run)
            await exchange.ended
            assert list(arrivals.at) == await asyncio.to_thread(whole, parley, run)
        await old.close()

    asyncio.run(play())
    front.wait_for_replaced()


def test_after_the_end_of_the_proxy_a_reader_goes_on_where_it_stopped(
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
    assert hear(parley, front, started["run_id"]) == (whole(parley, started["run_id"]), True)
    log = front.folder / "access.log"
    assert parley.token not in (log.read_text() if log.exists() else "")


@pytest.mark.parametrize("renew", [Front.reload, Front.replace])
def test_a_web_socket_outlives_nginx_or_goes_on_where_caddy_closed_it(
    parley: Parley, front: Front, client: httpx.Client, renew: Callable[[Front], None]
) -> None:
    run_id = client.post(RUNS, json={"model": "bench", "text": f"tokens={ENDLESS} delay_ms=25"}).json()[
        "run_id"
    ]
    seen = list[int]()
    client.close()

    def at(number: int) -> None:
        seen.append(number)
        if len(seen) == 10:
            renew(front)
        if len(seen) == 20:
            cancel(parley, run_id)

    ids, ended = hear(parley, front, run_id, at)
    if front.kind == "nginx":
        assert ended
    while not ended:
        more, ended = hear(parley, front, run_id, at, after=ids[-1])
        ids += more
    assert ids == whole(parley, run_id)
    front.wait_for_replaced()


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
