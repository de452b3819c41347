"""`manage.py up` as a user meets it: real processes, each with a VAR_DIR and a port of its own."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.processes.place import STOP_S, Place, fresh

READY_S = 60

pytestmark = pytest.mark.timeout(240)


@pytest.fixture
def empty() -> Iterator[Place]:
    with fresh() as made:
        yield made


@pytest.fixture(scope="module")
def started_once() -> Iterator[Path]:
    """A folder that the first start has made; it stopped cleanly."""
    with fresh() as made:
        process = made.up()
        made.wait_until_ready(process)
        assert _stop(process, signal.SIGINT)[0] == 0
        assert made.postgres() == []
        yield made.folder


@pytest.fixture
def place(started_once: Path) -> Iterator[Place]:
    """A machine on which Parley has run before."""
    with fresh() as made:
        subprocess.run(["cp", "-a", f"{started_once}/.", made.folder], check=True)
        yield made


@dataclass(frozen=True)
class Ready:
    """A Parley that runs, for tests that only look at it, and what it printed."""

    place: Place
    process: subprocess.Popen[str]
    said: str


@pytest.fixture(scope="module")
def ready() -> Iterator[Ready]:
    """It listens on every address of the machine."""
    with fresh() as place:
        process = place.up(HOST="0.0.0.0")
        said = place.wait_until_ready(process)
        yield Ready(place, process, said)
        assert _stop(process, signal.SIGTERM)[0] == 0


def _eventually(holds: Callable[[], bool]) -> bool:
    """Whether it comes to hold while a start would still be in time."""
    until = time.monotonic() + READY_S
    while time.monotonic() < until:
        if holds():
            return True
        time.sleep(0.1)
    return False


def _finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    said, _ = process.communicate(timeout=STOP_S)
    return process.returncode, said


def _stop(process: subprocess.Popen[str], number: signal.Signals) -> tuple[int, str]:
    process.send_signal(number)
    return _finish(process)


def test_up_answers_and_says_how_to_use_it(ready: Ready) -> None:
    place, notes = ready.place, ready.place.notes
    assert {**notes, "started_at": ""} == {
        "url": place.url,
        "admin": {"username": "admin", "password": notes["admin"]["password"]},
        "client_token": notes["client_token"],
        "pid": ready.process.pid,
        "started_at": "",
    }
    assert (place.folder / "up.json").stat().st_mode & 0o777 == 0o600
    assert httpx.get(f"{place.url}/health").status_code == 200
    for word in (place.url, notes["admin"]["password"], notes["client_token"], "/api/v1/agent/runs"):
        assert word in ready.said


def test_a_second_up_says_where_the_first_one_is(ready: Ready) -> None:
    assert _finish(ready.place.up()) == (
        0,
        f"Parley is already running at {ready.place.url} (pid {ready.process.pid}). "
        "Ctrl-C stops it there. A second one beside it needs a folder and a port of its own: "
        "VAR_DIR=var2 PORT=8001.\n",
    )


def test_the_printed_commands_work_when_pasted(ready: Ready) -> None:
    assert "event: completed" in paste(ready.said)


def paste(said: str) -> str:
    """What the printed commands print."""
    commands = [line for line in said.splitlines() if line.startswith(("  TOKEN=", "  RUN=", "  curl"))]
    assert len(commands) == 3
    return subprocess.run(
        ["sh", "-c", "\n".join(commands)], capture_output=True, text=True, timeout=30, check=True
    ).stdout


def test_up_stops_cleanly_and_the_next_start_keeps_everything_even_after_a_kill(place: Place) -> None:
    place.wait_until_ready(place.up())
    notes = place.notes
    run = httpx.post(
        f"{place.url}/api/v1/agent/runs",
        headers={"Authorization": f"Bearer {notes['client_token']}"},
        json={"model": "demo", "text": "Which exercises train the glutes?"},
    ).json()
    place.processes[0].kill()
    place.processes[0].wait()
    assert len(place.postgres()) > 0  # it outlives the killed process and is joined by the next

    second = place.up()
    said = place.wait_until_ready(second)
    secrets = (notes["admin"]["password"], notes["client_token"])
    assert [secret for secret in secrets if secret in said] == []  # it was printed at the first start
    assert "event: completed" in paste(said)
    assert {**place.notes, "pid": 0, "started_at": ""} == {**notes, "pid": 0, "started_at": ""}
    answer = httpx.get(
        f"{place.url}/api/v1/agent/runs/{run['run_id']}",
        headers={"Authorization": f"Bearer {notes['client_token']}"},
    )
    assert answer.status_code == 200
    before = place.notes
    code, last_words = _stop(second, signal.SIGINT)
    assert (code, last_words.split("\n")[-2:]) == (0, ["Parley has stopped.", ""])
    assert place.postgres() == []
    assert place.notes == before | {"pid": None}


def test_up_survives_a_crash_of_everything(place: Place) -> None:
    place.wait_until_ready(place.up())
    token = place.notes["client_token"]
    place.processes[0].kill()
    for pid in place.postgres():
        os.kill(pid, signal.SIGKILL)
    (place.folder / "postgres" / "postmaster.pid").write_text(f"{os.getpid()}\n")  # a pid of another

    second = place.up(ASGI_SERVER="daphne")
    place.wait_until_ready(second)
    assert place.notes["client_token"] == token
    assert _stop(second, signal.SIGTERM)[0] == 0


def test_a_killed_database_is_started_again_and_one_that_cannot_be_does_not_hold_up_the_end(
    place: Place,
) -> None:
    process = place.up(DRAIN_S="1")
    place.wait_until_ready(process)
    os.kill(place.postmaster(), signal.SIGKILL)
    assert _eventually(lambda: httpx.get(f"{place.url}/health", timeout=30).status_code == 200)
    asked = {"model": "demo", "text": "Which exercises train the glutes?"}
    headers = {"Authorization": f"Bearer {place.notes['client_token']}"}
    run = httpx.post(f"{place.url}/api/v1/agent/runs", headers=headers, json=asked, timeout=30).json()
    address = f"{place.url}/api/v1/agent/runs/{run['run_id']}"
    assert _eventually(
        lambda: httpx.get(address, headers=headers, timeout=30).json()["status"] == "completed"
    )

    with (place.folder / "postgres" / "postgresql.conf").open("a") as settings:
        settings.write("no_such_setting = 1\n")
    os.kill(place.postmaster(), signal.SIGKILL)
    assert _eventually(lambda: place.postgres() == [])
    code, printed = _stop(process, signal.SIGTERM)
    assert (code, "embedded database runs again" in printed) == (0, True)
    assert "Traceback" not in printed


def test_a_password_that_somebody_changed_is_left_alone(place: Place) -> None:
    (place.folder / "up.json").write_text(
        json.dumps(place.notes | {"admin": {"username": "admin", "password": "what it was before"}})
    )
    process = place.up()
    assert "password as you changed it" in place.wait_until_ready(process)
    assert place.notes["admin"] == {"username": "admin", "password": ""}
    assert _stop(process, signal.SIGINT)[0] == 0


def test_a_taken_port_is_said_before_anything_else_happens(empty: Place) -> None:
    with socket.create_server(("127.0.0.1", empty.port)):
        assert _finish(empty.up()) == (
            1,
            f"Port {empty.port} is taken by another program. "
            f"Choose another: PORT={empty.port + 1} make up\n",
        )
    assert not (empty.folder / "postgres").exists()


@pytest.mark.parametrize(("name", "value"), [("HOST", "192.0.2.1"), ("PORT", "http")])
def test_a_wrong_address_is_said_by_name(empty: Place, name: str, value: str) -> None:
    code, said = _finish(empty.up(**{name: value}))
    assert (code, name in said, "Traceback" in said) == (1, True, False)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("VAR_DIR", "/dev/null/var"),
        ("DATABASE_URL", "postgresql://parley:hunter2@127.0.0.1:9/parley"),
    ],
)
def test_a_folder_or_database_that_is_not_there_is_said_by_name(
    empty: Place, name: str, value: str
) -> None:
    code, said = _finish(empty.up(**{name: value}))
    assert (code, name in said, "Traceback" in said, "hunter2" in said) == (1, True, False, False)


def test_every_address_of_the_machine_may_be_used(ready: Ready) -> None:
    place = ready.place
    assert place.notes["url"] == place.url
    assert "0.0.0.0" not in ready.said
    for host in ("localhost", socket.gethostname()):
        answer = httpx.get(f"{place.url}/admin/login/", headers={"Host": f"{host}:{place.port}"})
        assert answer.status_code == 200
