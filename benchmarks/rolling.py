"""From one release to the next, a process at a time, under load: is a frame lost, does a run fail?

    .venv/bin/python -m benchmarks.rolling OLD [RATE] [SECONDS]

OLD is a checkout of the release before (its `.venv` runs it, if there is one). Three web, three worker
and a beat process of it serve RATE runs a second (20) of ten seconds each: 200 streams that are open at
any time. After SECONDS (15) the new release's migrations are applied, and then each process is replaced:
SIGTERM, and when it has ended the new one is started in its place. A client whose stream ends early goes
on at another web process by its Last-Event-ID, as a proxy's client would. Each text must be whole, each
frame's number larger than the one before, and each run completed.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

import psycopg
import uvloop

from benchmarks import load, stack
from benchmarks.clusters import Cluster, missing
from benchmarks.lock_watch import APPLICATION, Watch
from benchmarks.ports import free_port
from benchmarks.restores import BROKEN_ENDS, BROKEN_LOGS
from benchmarks.stack import PYTHON, ROOT, Parts, healthy_at
from config.process.server import allow_many_files

RUNS: Final = "/api/v1/agent/runs"
TOKENS: Final = 20
DELAY_MS: Final = 500
EACH: Final = 3
LIMIT_S: Final = 90.0
ENDED_S: Final = 60
_TEXT: Final = "".join(f"t{number} " for number in range(TOKENS))
_ID: Final = re.compile(rb"^id: ?(\d+)\r?$", re.M)
_DELTA: Final = re.compile(rb'"delta": ?"([^"\\]*)"')
_ENDS: Final = """
SELECT coalesce(nullif(error_code, ''), status), count(*) FROM conversations_run GROUP BY 1
"""


@dataclass
class Story:
    """What one client met."""

    run_id: str = ""
    text: bytes = b""
    last_id: int = 0
    resumed: int = 0
    posted_again: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    ended: bool = False


class Committed:
    """Takes frames in groups that end with an `id:`; what came after the last one will come again."""

    def __init__(self, story: Story) -> None:
        self._story, self._rest, self._group = story, b"", b""

    def feed(self, data: bytes) -> None:
        whole, end, self._rest = (self._rest + data).rpartition(load.FRAME_END)
        for frame in whole.split(load.FRAME_END) if end else ():
            self._take(frame + load.FRAME_END)

    def _take(self, frame: bytes) -> None:
        self._group += frame
        if found := _ID.search(frame):
            number = int(found[1])
            self._story.faults["a frame came twice or out of order"] += number <= self._story.last_id
            self._story.last_id = number
            self._story.text += b"".join(_DELTA.findall(self._group))
            self._group = b""
        if b"event: error\n" in frame:
            self._story.faults["an error frame"] += 1
        if b"event: completed\n" in frame:
            self._story.ended = True


class Clients:
    """Those who start and read runs, each at a web process that answers."""

    def __init__(self, ports: list[int], token: str) -> None:
        self._ports, self._token, self._random = ports, token, Random(7)
        self.stories: list[Story] = []
        self.open = 0
        self.most_open = 0
        self.leaving = asyncio.Event()

    async def offer(self, rate: float) -> None:
        """Start so many runs a second until `leaving`, then wait for the ends of all."""
        begun, reading = time.monotonic(), list[asyncio.Task[None]]()
        while not self.leaving.is_set():
            due = begun + len(reading) / rate
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, due - time.monotonic())):
                    await self.leaving.wait()
            self.stories.append(Story())
            reading.append(asyncio.create_task(self._live(self.stories[-1])))
        await asyncio.gather(*reading)

    async def _live(self, story: Story) -> None:
        try:
            async with asyncio.timeout(LIMIT_S):
                await self._start(story)
                self.open += 1
                self.most_open = max(self.most_open, self.open)
                try:
                    await self._read(story)
                finally:
                    self.open -= 1
        except Exception as error:
            story.faults[f"{type(error).__name__}: {error}"[:120]] += 1

    async def _start(self, story: Story) -> None:
        prompt = f"tokens={TOKENS} delay_ms={DELAY_MS}"
        call = load.Call(RUNS, {"model": "bench", "text": prompt}, self._token)
        while not story.run_id:
            body = bytearray()
            try:
                exchange, _ = await load.send(self._random.choice(self._ports), call, body.extend)
                status = await exchange.status
                await exchange.ended
                exchange.close()
            except ConnectionRefusedError:  # a proxy asks the next one
                continue
            except OSError:
                story.posted_again += 1
                continue
            if status == 202:
                story.run_id = json.loads(body)["run_id"]
            elif status == 503:
                await asyncio.sleep(0.1)
            else:
                raise RuntimeError(f"POST: HTTP {status} {bytes(body[:100])!r}")

    async def _read(self, story: Story) -> None:
        while not story.ended:
            committed = Committed(story)
            path = f"{RUNS}/{story.run_id}/events"
            call = load.Call(path, token=self._token, last_id=story.last_id)
            with suppress(OSError):
                exchange, _ = await load.send(self._random.choice(self._ports), call, committed.feed)
                status = await exchange.status
                if status not in (200, 503):
                    raise RuntimeError(f"GET events: HTTP {status}")
                with suppress(OSError):
                    await exchange.ended
                exchange.close()
                story.resumed += not story.ended
            if not story.ended:
                await asyncio.sleep(0.05)


@dataclass
class Process:
    """One place of the deployment: the release before runs in it, then the next."""

    parts: Parts
    name: str
    command: str
    env: dict[str, str]
    generation: int = 0
    running: subprocess.Popen[bytes] | None = None

    def start(self, checkout: Path) -> None:
        self.generation += 1
        program = python_of(checkout)
        self.running = self.parts.start(
            self._log, program, "manage.py", self.command, env=self.env, cwd=checkout
        )

    def wait_ready(self) -> None:
        self.parts.wait(self._log, self._is_ready)

    def replace(self, checkout: Path) -> float:
        """End it, start the new one; return how long the old one took to end."""
        assert self.running is not None
        begun = time.monotonic()
        self.running.send_signal(signal.SIGTERM)
        self.running.wait(ENDED_S)
        took = time.monotonic() - begun
        self.start(checkout)
        self.wait_ready()
        return took

    def _is_ready(self) -> bool:
        assert self.running is not None
        match self.command:
            case "web":
                return healthy_at(int(self.env["PORT"]))
            case "worker":
                return "worker ready" in self.parts.tail(self._log, 10_000)
        return self.running.poll() is None

    @property
    def _log(self) -> str:
        return f"{self.name}.{self.generation}"


def python_of(checkout: Path) -> str:
    own = checkout / ".venv" / "bin" / "python"
    return str(own) if own.exists() else PYTHON


async def roll(
    clients: Clients, processes: list[Process], parts: Parts, url: str, seconds: float
) -> Watch:
    """Migrate, and replace each process; return what the migration kept others from."""
    await asyncio.sleep(seconds)
    _say(f"{clients.open} streams open: migrating")
    env = processes[0].env | APPLICATION
    with Watch(url) as watch:
        migrate = (PYTHON, "manage.py", "migrate", "--no-input")
        await asyncio.to_thread(parts.finish, "migrate-new", *migrate, env=env)
    for process in processes:
        took = await asyncio.to_thread(process.replace, ROOT)
        _say(f"{process.name} replaced, ended within {took:.1f} s; {clients.open} streams open")
        await asyncio.sleep(1)
    await asyncio.sleep(seconds)
    clients.leaving.set()
    return watch


def main(old: Path, rate: float, seconds: float) -> None:
    if reason := missing():
        sys.exit(reason)
    allow_many_files()
    with ExitStack() as opened:
        folder = Path(tempfile.mkdtemp(prefix="parley-rolling-"))
        opened.callback(shutil.rmtree, folder, ignore_errors=True)
        folder.chmod(0o711)  # PostgreSQL's user passes through
        parts = opened.enter_context(Parts(folder))
        cluster, env = _surroundings(parts)
        command = (python_of(old), "manage.py", "migrate", "--no-input")
        parts.finish("migrate-old", *command, env=env, cwd=old)
        model = env["MODEL"]
        token = parts.finish(
            "prepare", python_of(old), "-m", "benchmarks.prepare", model, env=env, cwd=old
        )
        processes = [
            Process(parts, f"{kind}-{number}", kind, env | {"PORT": str(free_port())})
            for kind, count in (("worker", EACH), ("web", EACH), ("beat", 1))
            for number in range(1, count + 1)
        ]
        for process in processes:
            process.start(old)
        for process in processes:
            process.wait_ready()
        ports = [int(process.env["PORT"]) for process in processes if process.command == "web"]
        clients, watch = uvloop.run(_both(ports, token, rate, processes, cluster, seconds))
        faults = _report(clients, watch, cluster, parts)
    sys.exit(bool(faults))


async def _both(
    ports: list[int],
    token: str,
    rate: float,
    processes: list[Process],
    cluster: Cluster,
    seconds: float,
) -> tuple[Clients, Watch]:
    clients = Clients(ports, token)
    async with asyncio.TaskGroup() as group:
        group.create_task(clients.offer(rate))
        rolling = group.create_task(roll(clients, processes, cluster.parts, cluster.url, seconds))
    return clients, rolling.result()


def _surroundings(parts: Parts) -> tuple[Cluster, dict[str, str]]:
    slow = {"log_lock_waits": "on", "deadlock_timeout": "100ms"}
    cluster = Cluster(parts, parts.folder / "postgres", settings=slow)
    cluster.create()
    model = free_port()
    parts.start("model", PYTHON, "-m", "benchmarks.fake_model", "--port", str(model))
    env = stack.environment(parts, free_port(), "uvicorn") | {"LOG_LEVEL": "INFO"}
    env |= {"DATABASE_URL": cluster.url, "REDIS_URL": stack.start_redis(parts)[0]}
    env |= {"MODEL": f"http://127.0.0.1:{model}/v1"}
    return cluster, env


def _report(clients: Clients, watch: Watch, cluster: Cluster, parts: Parts) -> Counter[str]:
    faults: Counter[str] = Counter()
    for story in clients.stories:
        faults += story.faults
        faults["a text is not whole"] += story.text.decode() != _TEXT
    with cluster.connect() as connection:
        ends: dict[str, int] = dict(connection.execute(_ENDS).fetchall())
        faults["a run did not complete"] += sum(ends.values()) - ends.get("completed", 0)
        faults["a log with a gap"] += _count(connection, BROKEN_LOGS)
        faults["an end that is not one and last"] += _count(connection, BROKEN_ENDS)
    logged = parts.tail(cluster.name, 100_000).splitlines()
    waits = [line.partition("LOG:  ")[2] for line in logged if "still waiting for" in line]
    resumed = sum(story.resumed for story in clients.stories)
    again = sum(story.posted_again for story in clients.stories)
    print(f"{len(clients.stories)} runs, at most {clients.most_open} streams open, {resumed} resumed")
    print(f"{again} POSTs sent again after their connection broke; ends {ends}")
    print(
        f"while it migrated: longest wait of others {watch.longest_wait_s * 1000:.0f} ms, longest lock "
        f"held {watch.longest_held_s * 1000:.0f} ms ({watch.looks} looks)"
    )
    print(f"waits over 100 ms in PostgreSQL's log, all the time: {len(waits)} {waits}")
    print(f"faults: {dict(+faults) or 0}")
    return +faults


def _count(connection: psycopg.Connection[tuple[object, ...]], statement: str) -> int:
    row = connection.execute(statement).fetchone()
    return int(str(row[0])) if row else 0


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


if __name__ == "__main__":
    os.environ.pop("DATABASE_URL", None)
    given = [float(text) for text in sys.argv[2:]]
    main(Path(sys.argv[1]).resolve(), *(given + [20.0, 15.0][len(given) :]))
