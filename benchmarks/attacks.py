"""What hostile requests of one user cost everybody else, in the shape that `make up` starts.

    .venv/bin/python -m benchmarks.attacks [TIMES]

Sends the attacks of the audit (`nothing` is the measure of the machine) TIMES (1) each to a server of
its own, while another thread asks for /health every 20 ms, each time on a new connection, and prints
the worst answer, the memory that stayed and what the attacker got. At last another user's ten runs go on
beside all attacks together, and the runs that completed are counted. The goal is 250 ms.
"""

from __future__ import annotations

import shutil
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import httpx
import psutil

from benchmarks.ports import free_port
from benchmarks.stack import PYTHON, Parts, environment

_GOAL_MS: Final = 250
_NEIGHBOURS: Final = 10
_PATIENCE_S: Final = 120.0
_ENDED: Final = ("completed", "failed")


@dataclass(frozen=True)
class Target:
    """The server under attack; `web` is the attacker's client, `neighbour` another user's."""

    port: int
    process: psutil.Process
    web: httpx.Client
    neighbour: httpx.Client


Attack = Callable[[Target], str]


# --- the attacks ----------------------------------------------------------------------------------


def nothing(target: Target) -> str:
    time.sleep(3)
    return "-"


def data_urls(target: Target) -> str:
    """C1: an image whose address begins again and again."""
    source = {"type": "data", "mimeType": "image/png", "value": "data:" * 1_300}
    return _ag_ui(target, [{"type": "image", "source": source}])


def blanks(target: Target) -> str:
    """C2 a: a question of blanks for the offline model."""
    return _run(target, text=f"a{' ' * 50_000}b", enable_exercise_search=False)


def braces(target: Target) -> str:
    """C2 b: braces for a tool of the offline model."""
    return _responses(target, input=f"toolx {'{' * 200_000}", tools=[_TOOL])


def arrays(target: Target) -> str:
    """C2 c: an answer of a thousand arrays of a thousand arrays."""
    schema: dict[str, Any] = {"type": "integer"}
    for _ in range(3):
        schema = {"type": "array", "items": schema, "minItems": 1_000}
    return _formed(target, {"type": "object", "required": ["a"], "properties": {"a": schema}})


def doubled(target: Target) -> str:
    """C2 d: a schema of which each level asks the next one twice."""
    names = [f"l{level}" for level in range(40)]
    defined: dict[str, Any] = {
        one: {"anyOf": [{"$ref": f"#/$defs/{deeper}"}] * 2} for one, deeper in pairwise(names)
    }
    defined[names[-1]] = {"type": "integer", "minimum": 10**9}
    return _formed(target, {"type": "object", "properties": {"a": {"$ref": "#/$defs/l0"}},
                            "required": ["a"], "$defs": defined})  # fmt: skip


def headers(target: Target) -> str:
    """H3: 200 MB of header lines of nobody."""
    sent, line = 0, b"X-Odd: " + b"a" * 1_000 + b"\r\n"
    with socket.create_connection(("127.0.0.1", target.port), 30) as raw:
        raw.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n")
        with suppress(OSError):
            while sent < 200_000_000:
                raw.sendall(line * 100)
                sent += len(line) * 100
        with suppress(OSError):
            return f"{raw.recv(64)[9:12].decode()} after {sent / 2**20:.1f} MiB"
    return f"cut after {sent / 2**20:.1f} MiB"


def stalled(target: Target) -> str:
    """H4: eight large bodies that never come; what an honest history gets meanwhile."""
    token = target.web.headers["Authorization"]
    head = (
        f"POST /process HTTP/1.1\r\nHost: x\r\nAuthorization: {token}\r\n"
        "Content-Type: application/json\r\nContent-Length: 9000000\r\n\r\n"
    )
    with ExitStack() as held:
        for _ in range(8):
            raw = held.enter_context(socket.create_connection(("127.0.0.1", target.port), 30))
            with suppress(OSError):
                raw.sendall(head.encode() + b" " * 300_000)
        honest = [{"id": uuid4().hex, "role": "user", "content": "x" * 10_000} for _ in range(36)]
        body = {"threadId": str(uuid4()), "runId": uuid4().hex, "messages": honest}
        return f"honest: {target.neighbour.post('/api/v1/agent/ag-ui', json=body).status_code}"


def lists(target: Target) -> str:
    """L7: half a million lists as a state."""
    body = _body([]) | {"state": [[] for _ in range(500_000)]}
    return str(target.web.post("/api/v1/agent/ag-ui", json=body).status_code)


ATTACKS: Final[tuple[Attack, ...]] = (
    nothing, data_urls, blanks, braces, arrays, doubled, headers, stalled, lists,
)  # fmt: skip
_TOOL: Final = {
    "type": "function",
    "name": "toolx",
    "parameters": {"type": "object", "properties": {}},
}


def _body(content: list[Any]) -> dict[str, Any]:
    message = {"id": "m1", "role": "user", "content": content or "hello"}
    return {"threadId": str(uuid4()), "runId": uuid4().hex, "messages": [message]}


def _ag_ui(target: Target, content: list[Any]) -> str:
    return str(target.web.post("/api/v1/agent/ag-ui", json=_body(content)).status_code)


def _responses(target: Target, **more: Any) -> str:
    return str(target.web.post("/v1/responses", json={"model": "demo"} | more).status_code)


def _formed(target: Target, schema: dict[str, Any]) -> str:
    form = {"format": {"type": "json_schema", "name": "f", "schema": schema}}
    return _responses(target, input="fill it in", text=form)


def _run(target: Target, **body: Any) -> str:
    return _ended(target.web, _started(target.web, **body))


def _started(web: httpx.Client, **body: Any) -> str:
    return str(web.post("/api/v1/agent/runs", json={"model": "demo"} | body).json()["run_id"])


def _ended(web: httpx.Client, run_id: str) -> str:
    until = time.monotonic() + _PATIENCE_S
    while time.monotonic() < until:
        status = str(web.get(f"/api/v1/agent/runs/{run_id}").json()["status"])
        if status in _ENDED:
            return status
        time.sleep(0.1)
    return "not ended"


# --- what it costs others -------------------------------------------------------------------------


@dataclass
class Health:
    """How long the slowest answer of /health took, each on a connection of its own."""

    url: str
    worst_ms: float = 0.0
    asked: int = 0
    _stopping: threading.Event = field(default_factory=threading.Event)

    def watch(self) -> None:
        while not self._stopping.wait(0.02):
            since = time.monotonic()
            answer = httpx.get(self.url, timeout=_PATIENCE_S, trust_env=False)
            late_ms = (time.monotonic() - since) * 1_000
            self.worst_ms = max(self.worst_ms, late_ms if answer.status_code == 200 else 1e9)
            self.asked += 1

    @contextmanager
    def watching(self) -> Iterator[None]:
        thread = threading.Thread(target=self.watch)
        thread.start()
        try:
            yield
        finally:
            self._stopping.set()
            thread.join()


def measured(attack: Attack, target: Target) -> str:
    """One attack, as a line of the table."""
    health, before, since = (
        Health(f"http://127.0.0.1:{target.port}/health"),
        target.process.memory_info().rss,
        time.monotonic(),
    )
    with health.watching():
        got = attack(target)
        took_s = time.monotonic() - since
        time.sleep(1)
    grown = (target.process.memory_info().rss - before) / 2**20
    late = "" if health.worst_ms <= _GOAL_MS else "  over the goal"
    return f"{attack.__name__:<12} {health.worst_ms:>8.0f} {took_s:>8.2f} {grown:>+8.0f}  {got}{late}"


def neighbours(target: Target) -> str:
    """Ten runs of another user beside all attacks together."""
    runs = [
        _started(target.neighbour, text="Which exercises train the chest?") for _ in range(_NEIGHBOURS)
    ]
    attackers = [threading.Thread(target=attack, args=(target,)) for attack in ATTACKS[1:]]
    for one in attackers:
        one.start()
    statuses = [_ended(target.neighbour, run_id) for run_id in runs]
    for one in attackers:
        one.join()
    return f"{statuses.count('completed')} of {_NEIGHBOURS} completed"


@contextmanager
def started() -> Iterator[Target]:
    folder = Path(tempfile.mkdtemp(prefix="parley-attacks-"))
    folder.chmod(0o711)
    port = free_port()
    with ExitStack() as opened:
        opened.callback(shutil.rmtree, folder, ignore_errors=True)
        parts = opened.enter_context(Parts(folder))
        env = environment(parts, port, "uvicorn") | {"DATABASE_URL": "", "REDIS_URL": ""}
        up = parts.start("up", PYTHON, "manage.py", "up", env=env)
        parts.wait("up", lambda: _healthy(port))
        token, other = (
            parts.finish(name, PYTHON, "-m", "benchmarks.prepare", "http://127.0.0.1:9", name, env=env)
            for name in ("attacker", "neighbour")
        )
        web, neighbour = (opened.enter_context(_client(port, one)) for one in (token, other))
        yield Target(port, psutil.Process(up.pid), web, neighbour)


def _client(port: int, token: str) -> httpx.Client:
    authorization = {"Authorization": f"Bearer {token}"}
    address = f"http://127.0.0.1:{port}"
    return httpx.Client(base_url=address, headers=authorization, timeout=_PATIENCE_S, trust_env=False)


def _healthy(port: int) -> bool:
    with suppress(httpx.HTTPError):
        return httpx.get(f"http://127.0.0.1:{port}/health", timeout=2, trust_env=False).is_success
    return False


def main(times: int = 1) -> None:
    with started() as target:
        _ag_ui(target, [])
        _run(target, text="hello")
        print(f"{'attack':<12} {'worst ms':>8} {'took s':>8} {'MiB':>8}  answer")
        for _ in range(times):
            for attack in ATTACKS:
                print(measured(attack, target), flush=True)
        print(measured(neighbours, target))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
