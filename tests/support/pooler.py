"""PgBouncer in front of a PostgreSQL of this machine, with the very file of `deploy/`."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Final

import pytest
from psycopg.conninfo import conninfo_to_dict

from benchmarks.ports import free_port
from tests.support.paths import ROOT

FILE: Final = ROOT / "deploy" / "pgbouncer" / "pgbouncer.ini"
PROGRAM: Final = shutil.which(
    os.environ.get("PGBOUNCER", "pgbouncer"), path=f"{os.environ['PATH']}:/usr/sbin"
)
PASSWORD: Final = "pooled"
_HOST: Final = "127.0.0.1"
_START_S: Final = 10
needs_session: Final = pytest.mark.skipif(
    "POOLER" in os.environ, reason="the test itself needs a session of the server"
)


def missing() -> str:
    """Why PgBouncer cannot be started here, or ""."""
    return "" if PROGRAM else "PgBouncer is not installed (on Debian: apt-get install pgbouncer)"


def version() -> tuple[int, ...]:
    assert PROGRAM is not None
    shown = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, check=True).stdout
    return tuple(int(part) for part in shown.split()[1].split(".")[:2])


class PgBouncer:
    """A PgBouncer of all databases of the server at `server`, an address without a password.

    `changes` are settings of its file; None takes one away.
    """

    def __init__(self, folder: Path, server: str, **changes: str | None) -> None:
        self.port = free_port()
        self.folder = folder
        self.server = server
        self._process: subprocess.Popen[bytes] | None = None
        given = conninfo_to_dict(server)
        sockets = str(given.get("host", ""))
        self._user = Path(sockets).owner() if sockets.startswith("/") else "nobody"
        folder.mkdir(parents=True, exist_ok=True)
        users = folder / "userlist.txt"
        users.write_text(f'"{given.get("user", "postgres")}" "{PASSWORD}"\n')
        own: dict[str, str | None] = {"listen_port": str(self.port), "auth_file": str(users)}
        own |= {"max_prepared_statements": "200"} if version() >= (1, 22) else {}
        settings = {name: value for name, value in changes.items() if name != "connect_query"}
        query = f" connect_query='{changes['connect_query']}'" if changes.get("connect_query") else ""
        text = _changed(FILE.read_text(), own | {"unix_socket_dir": ""} | settings)
        name = "parley = host=127.0.0.1 port=5432 dbname=parley"
        assert name in text
        host, port = given.get("host", _HOST), given.get("port", "5432")
        text = text.replace(name, f"* = host={host} port={port}")
        if "connect_query" in changes:
            begin, end = text.index(" connect_query="), text.index("\n\n[pgbouncer]")
            text = text[:begin] + query + text[end:]
        (folder / "pgbouncer.ini").write_text(text)
        for path in (folder, users, folder / "pgbouncer.ini"):
            path.chmod(0o755)

    def url(self, database: str) -> str:
        user = conninfo_to_dict(self.server).get("user", "postgres")
        return f"postgresql://{user}:{PASSWORD}@{_HOST}:{self.port}/{database}"

    def start(self) -> None:
        """Start it, and return when it listens."""
        assert PROGRAM is not None
        command = [PROGRAM, *(["-u", self._user] if os.getuid() == 0 else []), "pgbouncer.ini"]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log)
        until = time.monotonic() + _START_S
        while time.monotonic() < until and self._process.poll() is None:
            try:
                socket.create_connection((_HOST, self.port)).close()
            except OSError:
                time.sleep(0.02)
            else:
                return
        raise AssertionError((self.folder / "log").read_text())

    def kill(self) -> None:
        """End it at once, with all its connections."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def _changed(text: str, changes: dict[str, str | None]) -> str:
    """The file with these values in its last section."""
    lines = [line for line in text.splitlines() if line.partition(" = ")[0].lstrip(";") not in changes]
    lines += [f"{name} = {value}" for name, value in changes.items() if value is not None]
    return "\n".join(lines) + "\n"
