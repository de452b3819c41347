"""A PostgreSQL and a `var/` of its own for each test session, ready before the settings are read.

Loaded early (`-p tests.database` in pyproject.toml). With DATABASE_URL set, that server is used
instead; pytest-django makes the database `test_<name>` in it. Workers of xdist inherit the variables.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from config.embedded import Server

_folder: Path | None = None
_server: Server | None = None


def _provide() -> None:
    global _folder, _server
    if "PARLEY_TESTING" in os.environ:
        return  # a worker of xdist
    os.environ["PARLEY_TESTING"] = "1"
    os.environ.setdefault("LOG_LEVEL", "WARNING")
    os.environ.setdefault("DEMO_TOKEN_S", "0.002")
    _folder = Path(tempfile.mkdtemp(prefix="parley-tests-"))
    os.environ["VAR_DIR"] = str(_folder)
    if not os.environ.get("DATABASE_URL"):
        _server = Server(_folder, durable=False)
        os.environ["DATABASE_URL"] = _server.start()


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    if _server is not None:
        _server.stop()
    if _folder is not None:
        shutil.rmtree(_folder, ignore_errors=True)


_provide()
