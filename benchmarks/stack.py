"""Parley in the one-host shape, started for a benchmark and ended with it: loopback only, by pid.

PostgreSQL and Redis are private ones in a temporary folder, or those of DATABASE_URL (a database is
made in it and dropped again) and REDIS_URL (give one that nothing else uses). Without a
`redis-server` the embedded shape (`manage.py up`) is measured instead, unless the one without Redis
(`with_redis=False`) is asked for.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from secrets import token_hex
from types import TracebackType
from typing import Any, Self

import psutil
import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from benchmarks.ports import free_port
from config.process import embedded_postgres

ROOT = Path(__file__).resolve().parent.parent
PYTHON = sys.executable
START_S = 120
STOP_S = 15


@dataclass(frozen=True)
class Stack:
    """What is running: where it listens, who may call it, and which processes it consists of."""

    shape: str
    web_port: int
    token: str
    pids: tuple[int, ...]
    web_pid: int
    worker_pids: tuple[int, ...]
    database_url: str
    model_port: int
    proxy_port: int
    view_port: int
    model_pid: int
    proxy_pid: int
    view_pid: int

    @property
    def all_pids(self) -> tuple[int, ...]:
        """Every process but the load client."""
        return *self.pids, self.model_pid, self.proxy_pid, self.view_pid


class CannotStart(Exception):
    """A part of the stack did not start; the message ends with its log."""


@contextmanager
def running(
    *,
    server: str = "uvicorn",
    say: Callable[[str], None],
    workers: int = 1,
    settings: Mapping[str, str] | None = None,
    model_url: str = "",
    counts_statements: bool = False,
    with_redis: bool = True,
    together: bool = False,
) -> Iterator[Stack]:
    """Start everything, with these settings of Parley, and end it again whatever happens.

    `together` starts the processes by `manage.py serve` in place of one command each.
    With `counts_statements` the private PostgreSQL has `pg_stat_statements`, which costs it a little.
    `bench` is served by the model at `model_url`, or by a fake one that is started too.
    """
    with ExitStack() as opened:
        opened.enter_context(_ended_by_sigterm())
        folder = Path(tempfile.mkdtemp(prefix="parley-bench-"))
        opened.callback(shutil.rmtree, folder, ignore_errors=True)
        folder.chmod(0o711)  # PostgreSQL's user passes through
        parts = opened.enter_context(Parts(folder))
        model_port, proxy_port, view_port = free_port(), free_port(), free_port()
        model = parts.start(
            "fake model", PYTHON, "-m", "benchmarks.fake_model", "--port", str(model_port)
        )
        proxy, view = (
            parts.start(name, *_uvicorn(name, port), env={"MODEL_PORT": str(model_port)})
            for name, port in (("json_proxy", proxy_port), ("django_view", view_port))
        )
        base_url = model_url or f"http://127.0.0.1:{model_port}/v1"
        there = os.environ.get("REDIS_URL") or shutil.which("redis-server")
        shape = (
            embedded_shape
            if with_redis and not there
            else partial(_one_host, with_redis=with_redis, together=together)
        )
        env = environment(parts, free_port(), server) | dict(settings or {})
        parts.counts_statements = counts_statements
        started = shape(parts, opened, base_url=base_url, env=env, workers=workers, say=say)
        yield Stack(*started, model_port, proxy_port, view_port, model.pid, proxy.pid, view.pid)


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Inside the block SIGTERM ends this process as Ctrl-C does, with all that it has started."""
    if threading.current_thread() is not threading.main_thread():  # only that one may set handlers
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


Shape = tuple[str, int, str, tuple[int, ...], int, tuple[int, ...], str]


def _one_host(
    parts: Parts,
    opened: ExitStack,
    *,
    base_url: str,
    env: dict[str, str],
    workers: int,
    say: Callable[[str], None],
    with_redis: bool,
    together: bool,
) -> Shape:
    say("PostgreSQL and Redis" if with_redis else "PostgreSQL")
    database_url, database = _database(parts, opened)
    redis_url, redis = start_redis(parts) if with_redis else ("", ())
    env |= {"DATABASE_URL": database_url, "REDIS_URL": redis_url, "CELERY_BROKER_URL": redis_url}
    say("migrations")
    parts.finish("migrate", PYTHON, "manage.py", "migrate", "--no-input", env=env)
    token = parts.finish("prepare", PYTHON, "-m", "benchmarks.prepare", base_url, env=env)
    say("serve" if together else "web, worker, beat")
    numbered = [f"worker-{number}" for number in range(1, workers + 1)]
    names = ["serve"] if together else ["web", "beat", *numbered]
    more = [f"--workers={workers}"] if together else []
    web, *others = (
        parts.start(name, PYTHON, "manage.py", name.partition("-")[0], *more, env=env).pid
        for name in names
    )
    _wait_for_health(parts, names[0], int(env["PORT"]))
    counted = bool(database and (redis or not with_redis))
    shape = "one host" if with_redis else "PostgreSQL only"
    shape += "" if counted else "; a given PostgreSQL or Redis is not counted in the CPU"
    pids = (web, *others, *database, *redis)
    return shape, int(env["PORT"]), token, pids, web, tuple(others[1:]) or (web,), database_url


def embedded_shape(
    parts: Parts,
    opened: ExitStack,
    *,
    base_url: str,
    env: dict[str, str],
    workers: int,
    say: Callable[[str], None],
) -> Shape:
    say("no redis-server: the embedded shape, one process")
    up = parts.start("up", PYTHON, "manage.py", "up", env=env)
    _wait_for_health(parts, "up", int(env["PORT"]))
    token = parts.finish("prepare", PYTHON, "-m", "benchmarks.prepare", base_url, env=env)
    pids = (up.pid, *_postmaster(parts.folder / "var"))
    address = embedded_postgres.Server(parts.folder / "var").url(embedded_postgres.DATABASE)
    return "embedded (no redis-server found)", int(env["PORT"]), token, pids, up.pid, (up.pid,), address


def environment(parts: Parts, port: int, server: str) -> dict[str, str]:
    own = {"HOST": "127.0.0.1", "PORT": str(port), "VAR_DIR": str(parts.folder / "var")}
    unbound = {"STREAMS_PER_USER": "0", "STREAMS_PER_CONVERSATION": "0"}  # one token holds thousands
    unbound |= {"RATE_USER_PER_MINUTE": "0", "CONNECTIONS_PER_ADDRESS": "0", "COORDINATION": ""}
    return own | unbound | {"ASGI_SERVER": server}


# --- PostgreSQL and Redis -------------------------------------------------------------------------


def _database(parts: Parts, opened: ExitStack) -> tuple[str, tuple[int, ...]]:
    """The address of a fresh database, and the server's pid if it is ours."""
    given = os.environ.get("DATABASE_URL", "")
    if given:
        return fresh_database(given, opened), ()
    if binaries := sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres")):
        return _system_postgres(parts, binaries[-1].parent, opened)
    server = embedded_postgres.Server(parts.folder)
    opened.callback(server.stop)
    return server.start(), _postmaster(parts.folder)


def fresh_database(server_url: str, opened: ExitStack) -> str:
    name = f"parley_bench_{os.getpid()}_{token_hex(4)}"
    _run_sql(server_url, "CREATE DATABASE {}", name)
    opened.callback(_run_sql, server_url, "DROP DATABASE {} WITH (FORCE)", name)
    address, _, query = server_url.partition("?")
    scheme, _, rest = address.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}/{name}" + (f"?{query}" if query else "")


def _run_sql(url: str, statement: Any, name: str) -> None:
    with psycopg.connect(make_conninfo(url), autocommit=True, connect_timeout=5) as connection:
        connection.execute(sql.SQL(statement).format(sql.Identifier(name)))


def _system_postgres(parts: Parts, binaries: Path, opened: ExitStack) -> tuple[str, tuple[int, ...]]:
    data, port = parts.folder / "postgres", free_port()
    data.mkdir(mode=0o700)
    identity = give_to_postgres(data)
    layout = ("-D", str(data), "-U", "bench", "--auth=trust", "-E", "UTF8", "--locale=C")
    parts.finish("initdb", str(binaries / "initdb"), *layout, **identity)
    options = {"listen_addresses": "127.0.0.1", "port": port, "unix_socket_directories": ""}
    options |= {"max_connections": 200}
    if parts.counts_statements:
        options |= {"shared_preload_libraries": "pg_stat_statements"}
    switches = [f"--{name}={value}" for name, value in options.items()]
    command = (str(binaries / "postgres"), "-D", str(data), *switches)
    process = parts.start("postgres", *command, stop_by=signal.SIGINT, **identity)  # INT: fast shutdown
    url = f"postgresql://bench@127.0.0.1:{port}"
    parts.wait("postgres", lambda: _answers(f"{url}/postgres"))
    return fresh_database(f"{url}/postgres", opened), (process.pid,)


def give_to_postgres(folder: Path) -> dict[str, Any]:
    """Return as whom PostgreSQL runs, who owns the folder then: it refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    user = pwd.getpwnam("postgres")
    os.chown(folder, user.pw_uid, user.pw_gid)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _answers(url: str) -> bool:
    try:
        psycopg.connect(url, connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True


def start_redis(parts: Parts) -> tuple[str, tuple[int, ...]]:
    """Return the address of a Redis that holds nothing, and its pid if it is ours."""
    given = os.environ.get("REDIS_URL", "")
    if given:
        return given, ()
    url, process = private_redis(parts)
    return url, (process.pid,)


def private_redis(parts: Parts) -> tuple[str, subprocess.Popen[bytes]]:
    """Start a Redis that nothing else uses. Return its address and its process."""
    port = free_port()
    options = ("--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", str(parts.folder))
    process = parts.start("redis", "redis-server", "--port", str(port), *options)
    parts.wait("redis", lambda: _listens(port))
    return f"redis://127.0.0.1:{port}/0", process


def _postmaster(folder: Path) -> tuple[int, ...]:
    return (int((folder / "postgres" / "postmaster.pid").read_text().split()[0]),)


# --- processes ------------------------------------------------------------------------------------


class Parts:
    """The processes of a stack, each with a log of its own, ended in reverse order."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.counts_statements = False
        self._started: dict[str, tuple[subprocess.Popen[bytes], signal.Signals]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process, stop_by in reversed(self._started.values()):
            _end(process, stop_by)

    def start(
        self,
        name: str,
        *command: str,
        env: Mapping[str, str] | None = None,
        stop_by: signal.Signals = signal.SIGTERM,
        cwd: Path = ROOT,
        **identity: Any,
    ) -> subprocess.Popen[bytes]:
        """Start a process that stays; it does not see the terminal's Ctrl-C, we end it ourselves."""
        with self._log(name).open("wb") as log:
            process = subprocess.Popen(
                command,
                cwd=cwd,
                env=os.environ | dict(env or {}),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                **identity,
            )
        self._started[name] = process, stop_by
        return process

    def finish(
        self,
        name: str,
        *command: str,
        env: Mapping[str, str] | None = None,
        cwd: Path = ROOT,
        **identity: Any,
    ) -> str:
        """Run a command to its end; the last line it printed."""
        process = self.start(name, *command, env=env, cwd=cwd, **identity)
        if process.wait(START_S):
            raise self._failure(name)
        lines = self._log(name).read_text().split()
        return lines[-1] if lines else ""

    def wait(self, name: str, ready: Callable[[], bool]) -> None:
        """Return when it is ready; complain when it has ended or takes too long."""
        process, _ = self._started[name]
        deadline = time.monotonic() + START_S
        while not ready():
            if process.poll() is not None or time.monotonic() > deadline:
                raise self._failure(name)
            time.sleep(0.05)

    def _failure(self, name: str) -> CannotStart:
        return CannotStart(f"{name} did not start:\n{self.tail(name)}")

    def tail(self, name: str, lines: int = 30) -> str:
        """The end of a process's log."""
        return "\n".join(self._log(name).read_text(errors="replace").splitlines()[-lines:])

    def _log(self, name: str) -> Path:
        return self.folder / f"{name.replace(' ', '-')}.log"


def _end(process: subprocess.Popen[bytes], stop_by: signal.Signals) -> None:
    if process.poll() is not None:
        return
    family = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(stop_by)
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for orphan in family:
        if orphan.is_running():  # compares the start time too: never a stranger with the same pid
            orphan.kill()


def _uvicorn(module: str, port: int) -> tuple[str, ...]:
    options = ("--host", "127.0.0.1", "--port", str(port), "--loop", "uvloop", "--http", "httptools")
    quiet = ("--no-access-log", "--log-level", "warning", "--backlog", "4096", "--lifespan", "off")
    return (PYTHON, "-m", "uvicorn", f"benchmarks.{module}:app", *options, *quiet)


def _wait_for_health(parts: Parts, name: str, port: int) -> None:
    parts.wait(name, lambda: healthy_at(port))


def healthy_at(port: int, *, host: str = "127.0.0.1") -> bool:
    try:
        with urllib.request.urlopen(f"http://{host}:{port}/health", timeout=2) as response:
            return bool(response.status == 200)
    except (OSError, urllib.error.HTTPError):
        return False


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
