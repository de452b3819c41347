"""Parley in the one-host shape, made to be broken: every part can be killed, frozen and started again.

PostgreSQL (the embedded one, durable) and Redis are private, so nothing of this machine's own is
disturbed; processes are ended by pid. Two workers, so that there is always somebody to take over.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psutil
import psycopg
import pytest
from psycopg.rows import namedtuple_row

from benchmarks.ports import free_port
from benchmarks.stack import PYTHON, START_S, Parts
from config.process import embedded_postgres
from tests.schema_true.recording import records
from tests.support.fakes.fake_model import FakeModel

FULL: Final = os.environ.get("FAULTS") == "full"
SEED: Final = int(os.environ.get("FAULTS_SEED", "1"))
OFFERED_S: Final = 1.5
"""For so long web processes may assign runs to a worker that has gone."""
LEASE_S: Final = 10 if FULL else 3
DRAIN_S: Final = 2
# How much longer than promised things may take: machines are busy with other things, and with us.
SLACK: Final = float(os.environ.get("FAULTS_SLACK", "1" if FULL else "2"))
only_in_full: Final = pytest.mark.skipif(not FULL, reason="takes too long: make faults runs it")
SCRIPTED: Final = ("hang", "hang-midway", "endless", "script:wakes", "script:never")
ENVIRONMENT: Final = {
    "ALLOWED_HOSTS": "",
    "CELERY_BROKER_URL": "",
    "COORDINATION": "",
    "DATABASE_POOL_SIZE": "",
    "DEMO_TOKEN_S": "0.01",
    "DRAIN_S": str(DRAIN_S),
    "HEARTBEAT_S": "1",
    "HOST": "127.0.0.1",
    "LEASE_S": str(LEASE_S),
    "RUN_ANSWER_KB": "65536",  # as large as a log may be: what is lost is large
    "LOG_LEVEL": "INFO",
    "PLUGIN_REFRESH_S": "1",
    "PLUGIN_WAIT_S": "8",
    "PUBLIC_URL": "",
    "STREAMS_PER_CONVERSATION": "100000",
    "STREAMS_PER_USER": "100000",
}


class Part:
    """One process of the stack; a new one each time it is started."""

    def __init__(
        self, parts: Parts, name: str, command: tuple[str, ...], env: Mapping[str, str], ready: Ready
    ) -> None:
        self.name = name
        self._parts, self._command, self._env, self._ready = parts, command, env, ready
        self._process: subprocess.Popen[bytes] | None = None
        self._generation = 0
        self.launched_at = 0.0

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def frozen(self) -> bool:
        return self.alive and psutil.Process(self.pid).status() == psutil.STATUS_STOPPED

    def start(self, **env: str) -> None:
        """Start it and return when it is ready."""
        self.launch(**env)
        self.wait_ready()

    def launch(self, **env: str) -> None:
        """Start it without waiting."""
        self._generation += 1
        self.launched_at = time.monotonic()
        self._process = self._parts.start(self._log_name, *self._command, env={**self._env, **env})

    def wait_ready(self) -> None:
        self._parts.wait(self._log_name, lambda: self._ready(self))

    def kill(self) -> None:
        """SIGKILL: it has no chance to do anything more."""
        self._end(signal.SIGKILL, 10)

    def terminate(self) -> None:
        """SIGTERM, without waiting."""
        os.kill(self.pid, signal.SIGTERM)

    def wait_ended(self, seconds: float) -> int:
        """Its exit code; raises TimeoutExpired when it goes on."""
        assert self._process is not None
        return self._process.wait(seconds)

    def freeze(self) -> None:
        """SIGSTOP: it stands still, its connections stay open."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def log(self, lines: int = 100_000) -> str:
        """What this generation has logged."""
        return self._parts.tail(self._log_name, lines)

    def _end(self, number: signal.Signals, seconds: float) -> None:
        if self.alive:
            os.kill(self.pid, number)
            self.wait_ended(seconds)

    @property
    def _log_name(self) -> str:
        return f"{self.name}.{self._generation}"


Ready = Callable[[Part], bool]


class Postgres:
    """The private PostgreSQL."""

    def __init__(self, folder: Path) -> None:
        self._server = embedded_postgres.Server(folder)
        self.url = self._server.start()
        self.alive = True

    def stop(self) -> None:
        """Fast mode: open transactions are rolled back, connections are cut."""
        self._server.stop()
        self.alive = False

    def start(self) -> None:
        self._server.start()
        self.alive = True

    def kill(self) -> None:
        """SIGKILL of the postmaster: its children notice and end, the next start recovers."""
        pid = int((self._server.data / "postmaster.pid").read_text().split()[0])
        children = psutil.Process(pid).children()
        os.kill(pid, signal.SIGKILL)
        psutil.wait_procs(children, timeout=10)
        self.stop()  # gives up our share of the folder, so that `start` takes it anew

    def cut_connections(self) -> int:
        """Terminate every backend but ours; how many there were."""
        with self.connect() as connection:
            row = connection.execute(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            ).fetchone()
        assert row is not None
        return int(row[0])

    def connect(self) -> psycopg.Connection[Any]:
        """A connection of the test's own, in autocommit, rows by name."""
        return psycopg.connect(self.url, autocommit=True, row_factory=namedtuple_row, connect_timeout=10)


@dataclass
class Stack:
    """Everything that runs, and how to call it."""

    postgres: Postgres
    redis: Part
    redis_url: str
    web: Part
    workers: tuple[Part, Part]
    beat: Part
    port: int
    token: str
    scripted: FakeModel
    folder: Path

    host: str = "127.0.0.1"

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    def mend(self) -> None:
        """Bring back whatever a test has broken."""
        if not self.postgres.alive:
            self.postgres.start()
        everything = (self.redis, self.web, *self.workers, self.beat)
        broken = [part for part in everything if part.frozen or not part.alive]
        for part in broken:
            if part.frozen:
                part.thaw()
            if not part.alive:
                part.launch()
        for part in everything:
            part.wait_ready()
        since = time.monotonic() if broken else max(part.launched_at for part in everything)
        time.sleep(max(0.0, since + OFFERED_S - time.monotonic()))


@contextmanager
def running() -> Iterator[Stack]:
    """Start everything, and end it again whatever happens."""
    with ExitStack() as opened:
        folder = Path(tempfile.mkdtemp(prefix="parley-faults-"))
        opened.callback(shutil.rmtree, folder, ignore_errors=True)
        folder.chmod(0o711)  # PostgreSQL's user passes through
        postgres = Postgres(folder)
        opened.callback(postgres.stop)
        parts = opened.enter_context(Parts(folder))
        scripted = opened.enter_context(FakeModel())
        redis_port, port, model_port = free_port(), free_port(), free_port()
        redis = Part(parts, "redis", _redis(folder, redis_port), {}, lambda _: listens(redis_port))
        redis.launch()
        parts.start("model", PYTHON, "-m", "benchmarks.fake_model", "--port", str(model_port))
        redis_url = f"redis://127.0.0.1:{redis_port}/0"
        addresses = {"DATABASE_URL": postgres.url, "REDIS_URL": redis_url, "PORT": str(port)}
        env = ENVIRONMENT | addresses | {"VAR_DIR": str(folder / "var")}
        parts.finish("migrate", PYTHON, "manage.py", "migrate", "--no-input", env=env)
        models = (f"http://127.0.0.1:{model_port}/v1", scripted.base_url, *SCRIPTED)
        token = parts.finish("prepare", PYTHON, "-m", "tests.faults.prepare", *models, env=env)

        def part(name: str, ready: Ready) -> Part:
            made = Part(parts, name, (PYTHON, "manage.py", name.partition("-")[0]), env, ready)
            opened.callback(made.kill)  # a frozen one cannot be asked to end
            made.launch()
            return made

        workers = part("worker-1", _says("worker ready")), part("worker-2", _says("worker ready"))
        web = part("web", lambda _: healthy(port))
        beat = part("beat", lambda beat: beat.alive)
        for one in (redis, web, *workers):
            one.wait_ready()
        records.servers.add(f"127.0.0.1:{port}")
        yield Stack(postgres, redis, redis_url, web, workers, beat, port, token, scripted, folder)


def _redis(folder: Path, port: int) -> tuple[str, ...]:
    options = ("--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", str(folder))
    return ("redis-server", "--port", str(port), *options)


def _says(words: str) -> Ready:
    return lambda part: words in part.log()


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def healthy(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as response:
            return bool(response.status == 200)
    except OSError:
        return False


def wait_until(ready: Callable[[], object], *, seconds: float = START_S, what: str = "it") -> float:
    """Wait for something; the seconds it took."""
    since = time.monotonic()
    while not ready():
        assert time.monotonic() - since < seconds, f"waited {seconds:g} s for {what}"
        time.sleep(0.02)
    return time.monotonic() - since
