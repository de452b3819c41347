"""The first part of `manage.py up`, before Django's settings are imported.

It ensures that this is the only Parley of its VAR_DIR and that the port is free, and starts the
embedded PostgreSQL unless DATABASE_URL is set. The second part, with Django, is
`config/management/commands/up.py`.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

import psutil

from config import env
from config.process import embedded_postgres, installation

_ANY_ADDRESS: Final = {"0.0.0.0", "::"}


class CannotStart(Exception):
    """Parley cannot start; the text contains the reason and the fix."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The resources of this process from start to end: port, folder and database.

    `local` is the address for this machine, `address` the public one, `others` those for other machines.
    """

    listener: socket.socket
    local: tuple[str, int]
    lock: IO[str]
    database: embedded_postgres.Server | None
    address: str
    others: list[str]
    since: float = field(default_factory=time.monotonic)

    @property
    def notes(self) -> Path:
        """The file with the address and the credentials, for people and scripts."""
        return installation.var_folder() / "up.json"


claim: Claim | None = None


def prepare() -> None:
    """Claim folder, port and database for `up`; exit at once if Parley already runs."""
    global claim
    since = time.monotonic()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # until a loop handles it
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
    host, port = env.text("HOST", "127.0.0.1"), env.integer("PORT", 8000, minimum=1, maximum=65535)
    lock = _claim_folder(installation.var_folder())
    listener = bind(host, port)
    os.environ.setdefault("LOG_LEVEL", "WARNING")  # the terminal shows the progress
    if not env.text("REDIS_URL"):
        os.environ["COORDINATION"] = env.text("COORDINATION", "memory")  # there is no other process
    if sys.stderr.isatty():
        os.environ.setdefault("LOG_FORMAT", "console")
    others = _prepare_for_any_address(port) if host in _ANY_ADDRESS else []
    claim = Claim(
        listener=listener,
        local=({"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host), port),
        lock=lock,
        database=_provide_database(),
        address=env.text("PUBLIC_URL") or f"http://{_format_host(host)}:{port}",
        others=others,
        since=since,
    )


@contextmanager
def report_step(text: str) -> Iterator[None]:
    """Print a step and its duration."""
    since = time.monotonic()
    if sys.stdout.isatty():
        print(f"  {text} …", end="\r", flush=True)
    yield
    print(f"✓ {text} ({time.monotonic() - since:.1f} s)", flush=True)


def bind(host: str, port: int) -> socket.socket:
    """Return a listening socket of the address, so that no other process can take it."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError:
        raise CannotStart(
            f"HOST={host} is not an address of this machine. Try HOST=127.0.0.1."
        ) from None
    family, kind, protocol, _name, address = min(found)  # IPv4 first
    bound = socket.socket(family, kind, protocol)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind(address)
        bound.listen(2048)
    except OSError as error:
        bound.close()
        raise CannotStart(_explain_bind_error(error, host, port)) from None
    return bound


def read_notes(path: Path) -> dict[str, Any]:
    """Return the notes of `up`, or {} if the file is missing or unreadable."""
    try:
        notes: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return notes


def write_notes(path: Path, notes: dict[str, Any]) -> None:
    """Replace the file atomically; only its owner may read it."""
    handle, draft = tempfile.mkstemp(dir=path.parent)  # mode 600
    with os.fdopen(handle, "w") as file:
        json.dump(notes, file, indent=1, ensure_ascii=False)
    os.replace(draft, path)


def _claim_folder(folder: Path) -> IO[str]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / "up.lock").open("a")
    except OSError as error:
        raise CannotStart(
            f"VAR_DIR={folder} cannot be written: {error.strerror}. Name a folder of yours, "
            "like VAR_DIR=var, or leave it unset."
        ) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print(_describe_running(read_notes(folder / "up.json")))
        raise SystemExit(0) from None
    return lock


def _describe_running(notes: dict[str, Any]) -> str:
    if not notes.get("pid"):
        return "Parley is starting here. Wait a moment."
    return (
        f"Parley is already running at {notes['url']} (pid {notes['pid']}). Ctrl-C stops it there. "
        "A second one beside it needs a folder and a port of its own: VAR_DIR=var2 PORT=8001."
    )


def _provide_database() -> embedded_postgres.Server | None:
    if env.text("DATABASE_URL"):
        return None
    with report_step("PostgreSQL ready"):
        return embedded_postgres.start_for_process()


def _prepare_for_any_address(port: int) -> list[str]:
    """Allow every host name of this machine; return its addresses for other machines."""
    addresses = [
        address.address
        for addresses in psutil.net_if_addrs().values()
        for address in addresses
        if address.family == socket.AF_INET and not address.address.startswith("127.")
    ]
    names = ["localhost", "127.0.0.1", "[::1]", socket.gethostname(), *addresses]
    os.environ.setdefault("ALLOWED_HOSTS", ",".join(names))
    os.environ.setdefault("PUBLIC_URL", f"http://127.0.0.1:{port}")
    return [f"http://{address}:{port}" for address in addresses]


def _explain_bind_error(error: OSError, host: str, port: int) -> str:
    match error:
        case PermissionError():
            return (
                f"Port {port} needs more rights than this user has. "
                f"Choose another: PORT=8000 {installation.UP}"
            )
        case OSError(errno=98 | 48):
            another = port + 1 if port < 65535 else 8000
            return (
                f"Port {port} is taken by another program. "
                f"Choose another: PORT={another} {installation.UP}"
            )
    return f"HOST={host} is not an address of this machine. Try HOST=127.0.0.1."


def _format_host(host: str) -> str:
    return f"[{host}]" if ":" in host else host
