"""A PostgreSQL of one's own whose WAL is archived, its base backups, and restores to a moment.

The commands are those of docs/operating/backup.md. Everything is in one folder, on loopback.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg import sql

from benchmarks.ports import free_port
from benchmarks.stack import Parts, give_to_postgres

DATABASE: Final = "parley"
_STOP_S: Final = 30
_ARCHIVED_S: Final = 60.0


@dataclass
class Cluster:
    """A PostgreSQL in `data`, which archives its WAL into `archive` if there is one."""

    parts: Parts
    data: Path
    archive: Path | None = None
    port: int = field(default_factory=free_port)
    settings: Mapping[str, str] = field(default_factory=dict)
    _process: subprocess.Popen[bytes] | None = None

    def __post_init__(self) -> None:
        found = programs()
        if found is None:
            raise FileNotFoundError(missing())
        self.programs = found
        self.data.mkdir(mode=0o700, exist_ok=True)
        self.identity = give_to_postgres(self.data)

    @property
    def name(self) -> str:
        return f"postgres-{self.data.name}"

    @property
    def url(self) -> str:
        return f"postgresql://parley@127.0.0.1:{self.port}/{DATABASE}"

    def create(self) -> None:
        """Make the cluster and its database, and start it."""
        layout = ("-D", str(self.data), "-U", "parley", "--auth=trust", "-E", "UTF8", "--locale=C")
        self.run("initdb", *layout, "--data-checksums")
        if self.archive is not None:
            self.archive.mkdir(mode=0o700)
            give_to_postgres(self.archive)
        self.start()
        with self.connect("postgres") as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))

    def start(self) -> None:
        """Start it, and return when it takes writes: after a recovery, if it has one to do."""
        options = {"listen_addresses": "127.0.0.1", "port": str(self.port), "max_connections": "200"}
        options |= {"unix_socket_directories": "", "archive_mode": "off"} | dict(self.settings)
        if self.archive is not None:
            kept = f"test ! -f {self.archive}/%f && cp %p {self.archive}/%f.part"
            kept += f" && mv {self.archive}/%f.part {self.archive}/%f"
            options |= {"archive_mode": "on", "archive_command": kept, "archive_timeout": "60s"}
        switches = [f"--{name}={value}" for name, value in options.items()]
        command = (str(self.programs / "postgres"), "-D", str(self.data), *switches)
        self._process = self.parts.start(
            self.name, *command, stop_by=signal.SIGINT, cwd=self.data, **self.identity
        )
        self.parts.wait(self.name, self._takes_writes)

    def stop(self) -> None:
        """End it in fast mode."""
        assert self._process is not None
        self._process.send_signal(signal.SIGINT)
        self._process.wait(_STOP_S)

    def connect(self, database: str = DATABASE) -> psycopg.Connection[Any]:
        """A connection in autocommit."""
        address = f"postgresql://parley@127.0.0.1:{self.port}/{database}"
        return psycopg.connect(address, autocommit=True, connect_timeout=5)

    def back_up(self, target: Path) -> None:
        """Copy the running cluster, which goes on; `target` is made."""
        target.mkdir(mode=0o700)
        give_to_postgres(target)
        source = ("--host=127.0.0.1", f"--port={self.port}", "--username=parley")
        how = ("--wal-method=stream", "--checkpoint=fast")
        self.run("pg_basebackup", *source, f"--pgdata={target}", *how)

    def archive_rest(self) -> None:
        """Return when all that is committed is in the archive."""
        with self.connect() as connection:
            (needed,) = _row(connection, "SELECT pg_walfile_name(pg_switch_wal())")
            until = time.monotonic() + _ARCHIVED_S
            while not self._is_archived(connection, needed):
                if time.monotonic() > until:
                    raise TimeoutError(f"{needed} was not archived")
                time.sleep(0.05)

    def restored(self, base: Path, data: Path, moment: float) -> Cluster:
        """Start what this cluster was at a moment (epoch seconds), from a base backup and the archive.

        The new cluster archives nothing: its timeline does not get among the files of this one.
        """
        assert self.archive is not None
        copy = Cluster(self.parts, data)
        copy.run("cp", "-a", f"{base}/.", str(data))
        target = datetime.fromtimestamp(moment, UTC).isoformat(sep=" ", timespec="microseconds")
        lines = {
            "restore_command": f"cp {self.archive}/%f %p",
            "recovery_target_time": target,
            "recovery_target_action": "promote",
        }
        with (data / "postgresql.auto.conf").open("a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in lines.items())
        (data / "recovery.signal").touch()
        copy.start()
        return copy

    def remove(self) -> None:
        """Stop it and delete its data."""
        self.stop()
        shutil.rmtree(self.data)

    def run(self, program: str, *arguments: str) -> None:
        """Run a program of PostgreSQL, or another one, as the user of the cluster."""
        own = self.programs / program
        command = (str(own) if own.exists() else program, *arguments)
        done = subprocess.run(
            command, cwd=self.data, capture_output=True, text=True, check=False, **self.identity
        )
        if done.returncode:
            raise RuntimeError(f"{program}: {done.stdout}{done.stderr}")

    def _is_archived(self, connection: psycopg.Connection[Any], needed: str) -> bool:
        (last,) = _row(connection, "SELECT last_archived_wal FROM pg_stat_archiver")
        return bool(last and last >= needed)

    def _takes_writes(self) -> bool:
        try:
            with self.connect("postgres") as connection:
                return _row(connection, "SELECT pg_is_in_recovery()") == (False,)
        except psycopg.OperationalError:
            return False


@contextmanager
def restored(cluster: Cluster, base: Path, data: Path, moment: float) -> Iterator[Cluster]:
    """Inside the block the cluster runs as it was at the moment; afterwards its data are deleted."""
    copy = cluster.restored(base, data, moment)
    try:
        yield copy
    finally:
        copy.remove()


def programs() -> Path | None:
    """Return the folder of the newest PostgreSQL's programs, if it can take base backups."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_basebackup"))
    if not found and (server := shutil.which("postgres")):
        found = list(Path(server).resolve().parent.glob("pg_basebackup"))
    return found[-1].parent if found else None


def missing() -> str:
    """Return why there is no cluster here, or nothing."""
    found = programs() is not None
    return "" if found else "there is no PostgreSQL with pg_basebackup here (apt-get install postgresql)"


def _row(connection: psycopg.Connection[Any], statement: str) -> tuple[Any, ...]:
    row = connection.execute(sql.SQL(statement)).fetchone()
    assert row is not None
    return tuple(row)
