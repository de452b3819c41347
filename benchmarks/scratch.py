"""A migrated database for a benchmark that needs no web and no worker.

DATABASE_URL names one that nothing else uses; without it an embedded PostgreSQL is made in a
temporary folder, with fsync, and removed at the end.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import django


@contextmanager
def scratch_database() -> Iterator[None]:
    """Set Django up on a migrated scratch database; import models only inside."""
    from config.process import embedded_postgres

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    os.environ.setdefault("LOG_LEVEL", "WARNING")
    with ExitStack() as opened:
        if not os.environ.get("DATABASE_URL"):
            folder = Path(tempfile.mkdtemp(prefix="parley-scratch-"))
            opened.callback(shutil.rmtree, folder, ignore_errors=True)
            folder.chmod(0o711)  # PostgreSQL's user passes through
            server = embedded_postgres.Server(folder)
            os.environ |= {"DATABASE_URL": server.start(), "VAR_DIR": str(folder / "var")}
            opened.callback(server.stop)
        django.setup()
        from django.core.management import call_command

        call_command("migrate", interactive=False, verbosity=0)
        yield
