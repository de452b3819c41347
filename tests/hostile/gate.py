"""A server process of its own, watched from outside: what a request costs it, and what stays.

Every limit is one of the server's own processor time, so that a busy machine is no fault: what took
long while the process got no processor did not take the process long. The helpers that evaluate JSON
Schemas are processes of their own with a limit of their own and do not count.
"""

from __future__ import annotations

import http.client
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx
import psutil
import psycopg
from psycopg import sql

from tests.hostile.prepare import KEY

ANSWER_CPU_S: Final = 1.0
HEALTH_CPU_S: Final = 0.4 if "PYTEST_XDIST_WORKER" in os.environ else 0.25
"""The same work costs up to half as much again where another worker's tests use the machine's caches."""
GROWTH: Final = 32 * 1024 * 1024
GROWTH_OF_ALL: Final = 192 * 1024 * 1024
ENDED_WITHIN_S: Final = 60.0
_PATIENCE_S: Final = 60.0
_RETURNED_WITHIN_S: Final = 20.0
_NEWEST: Final = "SELECT id, thread_id FROM conversations_run ORDER BY created_at DESC LIMIT 1"
_TABLES: Final = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
_LIVE: Final = "SELECT count(*) FROM conversations_run WHERE status IN ('queued', 'running')"


@dataclass
class Health:
    """Asks for /health all the time on a connection of its own, and notes what came late."""

    port: int
    process: psutil.Process
    late: list[str] = field(default_factory=list)
    asked: int = 0
    _stopping: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(_PATIENCE_S)

    def _watch(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=_PATIENCE_S)
        while not self._stopping.wait(0.05):
            cpu_s, begun = _cpu_s(self.process), time.monotonic()
            status = _status(connection)
            cpu_s, wall_s = _cpu_s(self.process) - cpu_s, time.monotonic() - begun
            if is_late(status, wall_s=wall_s, cpu_s=cpu_s):
                self.late.append(f"/health: {status} after {wall_s:.2f} s, {cpu_s:.2f} s of CPU")
            self.asked += 1


def is_late(status: int, *, wall_s: float, cpu_s: float) -> bool:
    """Whether /health failed, or waited for what the process computed.

    Where the process got less than three quarters of a processor, it waited for the machine, too; a loop
    that was held then is still found by the watchdog's line in the log.
    """
    had_the_processor = 4 * cpu_s > 3 * wall_s
    return status != 200 or (had_the_processor and min(cpu_s, wall_s) > HEALTH_CPU_S)


def _status(connection: http.client.HTTPConnection) -> int:
    try:
        connection.request("GET", "/health")
        answer = connection.getresponse()
        answer.read()
    except (OSError, http.client.HTTPException):
        connection.close()
        return 0
    return answer.status


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


@dataclass
class Gate:
    """The server, and the three limits that hold whatever it is sent."""

    port: int
    token: str
    pid: int
    database_url: str
    log: Path
    level: int = 0

    def __post_init__(self) -> None:
        self.process = psutil.Process(self.pid)
        self.health = Health(self.port, self.process)
        self.http = httpx.Client(
            base_url=f"http://127.0.0.1:{self.port}",
            headers={"Authorization": f"Bearer {self.token}", "Accept": "application/json"},
            timeout=_PATIENCE_S,
            trust_env=False,
        )
        self._rows = psycopg.connect(self.database_url, autocommit=True)
        self._read = 0

    def close(self) -> None:
        self.health.stop()
        self.http.close()
        self._rows.close()

    def settle(self) -> None:
        """Take the memory of now as the level near which everything has to stay."""
        self.wait_for_ends()
        self.level = max(_every(0.1, 10, lambda: self.process.memory_info().rss))
        self._new_holds()
        self.health.late.clear()

    @contextmanager
    def held_to_limits(self, what: str) -> Iterator[None]:
        """Inside the block the server may be sent anything; afterwards the limits are asserted.

        The memory is that of before within GROWTH, and that of the settled server within GROWTH_OF_ALL:
        pools of connections keep the buffers that their largest statement took.
        """
        before = max(self._memory(), self.level)
        self.health.late.clear()  # what came late before was not for what is sent now
        yield
        asked = self.health.asked
        self.wait_for_ends()
        wait(lambda: self.health.asked > asked + 1, _PATIENCE_S)
        held = [f"{line['frame']} {line['cpu_seconds']} s" for line in self._new_holds()]
        late = self.health.late.copy()
        assert late + held == [], f"{what}: {late}; the loop was held by {held}"
        most = min(before + GROWTH, self.level + GROWTH_OF_ALL)
        returned = wait(lambda: self._memory() <= most, _RETURNED_WITHIN_S)
        assert returned, f"{what}: {(self._memory() - before) >> 20} MiB more than before"

    def send(self, path: str, body: bytes) -> int:
        """Post a body and return the status, once the answer is whole and within its limits."""
        with self.held_to_limits(f"{path} {len(body)} bytes {body[:300]!r}"):
            cpu_s = _cpu_s(self.process)
            headers = {"Content-Type": "application/json"}
            with self.http.stream("POST", path, content=body, headers=headers) as answer:
                cpu_s = _cpu_s(self.process) - cpu_s
                text = answer.read()
            assert cpu_s <= ANSWER_CPU_S, f"{path} {body[:300]!r}: {cpu_s:.2f} s of CPU to an answer"
            check(answer, text)
        return answer.status_code

    @contextmanager
    def switched_on(self, table: str, column: str, name: str) -> Iterator[None]:
        """Inside the block the server is connected to this MCP server or plugin runtime."""
        switch = f"UPDATE {table} SET is_active = %s WHERE {column} = %s"
        self._rows.execute(switch, (True, name))
        try:
            yield
        finally:
            self._rows.execute(switch, (False, name))

    def written(self, text: str) -> list[str]:
        """The tables in which the text stands somewhere, and `log` if it is in the server's log."""
        tables = [name for (name,) in self._rows.execute(_TABLES).fetchall()]
        found = "SELECT EXISTS (SELECT FROM {} AS row WHERE row::text LIKE %s)"
        pattern = (f"%{text}%",)
        asked = {name: sql.SQL(found).format(sql.Identifier(name)) for name in tables}
        held = [
            name
            for name, query in asked.items()
            if (self._rows.execute(query, pattern).fetchone() or [0])[0]
        ]
        return held + ["log"] * (text.encode() in self.log.read_bytes())

    def wait_for_ends(self) -> None:
        """Return when no run is under way any more."""
        ended = wait(lambda: self._live() == 0, ENDED_WITHIN_S)
        assert ended, f"{self._live()} runs stay"

    def newest(self) -> tuple[str, str]:
        """The ids of the newest run and of its thread."""
        run_id, thread_id = self._rows.execute(_NEWEST).fetchone() or ("", "")
        return str(run_id), str(thread_id)

    def _live(self) -> int:
        (count,) = self._rows.execute(_LIVE).fetchone() or (0,)
        return int(count)

    def _memory(self) -> int:
        return int(self.process.memory_info().rss)

    def _new_holds(self) -> list[dict[str, Any]]:
        """The watchdog's lines since the last look, of which a processor was in use long enough."""
        with self.log.open("rb") as log:
            log.seek(self._read)
            lines = log.read().splitlines()
            self._read = log.tell()
        return [line for line in map(_line, lines) if line.get("cpu_seconds", 0) > HEALTH_CPU_S]


def check(answer: httpx.Response, text: bytes) -> None:
    """An answer of ours: success, or an error in our shape that a client can act on."""
    assert KEY.encode() not in text, "the key is in the answer"
    if answer.status_code < 400:
        return
    body = json.loads(text)
    assert answer.status_code < 500 or answer.status_code in (503, 507), body
    assert answer.status_code != 503 or "retry-after" in answer.headers
    assert body["code"]
    assert body["detail"]
    assert body["request_id"] == answer.headers["x-request-id"]
    assert b"Traceback" not in text


def _line(raw: bytes) -> dict[str, Any]:
    with suppress(ValueError):
        found = json.loads(raw)
        return found if isinstance(found, dict) else {}
    return {}


def _every(seconds: float, times: int, read: Callable[[], int]) -> Iterator[int]:
    for _ in range(times):
        yield read()
        time.sleep(seconds)


def wait(done: Callable[[], bool], seconds: float) -> bool:
    """Whether it became true in time."""
    until = time.monotonic() + seconds
    while not done():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True
