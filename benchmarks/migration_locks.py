"""What each migration keeps others from, on a database of a million messages that is in use.

    .venv/bin/python -m benchmarks.migration_locks OLD [MESSAGES]

OLD is a checkout of the release before (its `.venv` runs it, if there is one), which makes a database
and fills it with MESSAGES (1,000,000). Then each migration of this checkout is applied by itself while
others read and write runs, messages and threads without a pause. Prints for each how long it took, the
longest that a statement of the others took and waited for a lock, and how long a table was kept.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psycopg

from benchmarks import stack
from benchmarks.clusters import Cluster, missing
from benchmarks.lock_watch import APPLICATION, Watch
from benchmarks.ports import free_port
from benchmarks.rolling import python_of
from benchmarks.stack import PYTHON, ROOT, Parts

_SEED_S: Final = 3_600
_QUIET_S: Final = 2.0
_STATEMENTS: Final = {
    "read": """SELECT run.id, message.content FROM conversations_message message
        JOIN conversations_run run ON run.id = message.run_id
        WHERE run.id = (SELECT id FROM conversations_run ORDER BY id OFFSET %(n)s LIMIT 1)""",
    "run": """UPDATE conversations_run SET last_seq = last_seq + 1
        WHERE id = (SELECT id FROM conversations_run ORDER BY id OFFSET %(n)s LIMIT 1)""",
    "message": """UPDATE conversations_message SET created_at = created_at
        WHERE id = (SELECT id FROM conversations_message ORDER BY id OFFSET %(n)s LIMIT 1)""",
    "thread": """UPDATE conversations_thread SET updated_at = updated_at
        WHERE id = (SELECT id FROM conversations_thread ORDER BY id OFFSET %(n)s LIMIT 1)""",
}


@dataclass
class Others:
    """Those who use the database meanwhile: one connection for each statement."""

    url: str
    worst_s: float = 0.0
    statements: int = 0
    _leaving: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        threads = [
            threading.Thread(target=self._repeat, args=(statement,), daemon=True)
            for statement in _STATEMENTS.values()
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._leaving.set()
            for thread in threads:
                thread.join()

    def begin_again(self) -> None:
        self.worst_s, self.statements = 0.0, 0

    def _repeat(self, statement: str) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            number = 0
            while not self._leaving.is_set():
                number = (number + 37) % 1_000
                since = time.monotonic()
                connection.execute(statement, {"n": number})
                self.worst_s = max(self.worst_s, time.monotonic() - since)
                self.statements += 1
                time.sleep(0.001)


def measure(parts: Parts, cluster: Cluster, env: dict[str, str]) -> None:
    """Apply each migration that is left, and print what it cost the others."""
    print("| migration | took | statements of others: worst | lock waited for | table kept |")
    print("|---|---|---|---|---|")
    others = Others(cluster.url)
    with others.at_work():
        time.sleep(_QUIET_S)
        print(f"| none, {_QUIET_S:.0f} s | | {others.worst_s * 1000:.0f} ms | | |", flush=True)
        for app, name in waiting(env):
            others.begin_again()
            since = time.monotonic()
            with Watch(cluster.url) as watch:
                command = (PYTHON, "manage.py", "migrate", app, name, "--no-input")
                parts.finish(f"{app}.{name}", *command, env=env | APPLICATION)
            took = time.monotonic() - since
            kept = max(watch.held_s, key=lambda table: watch.held_s[table], default="none")
            print(
                f"| `{app}.{name}` | {took:.1f} s | {others.worst_s * 1000:.0f} ms "
                f"| {watch.longest_wait_s * 1000:.0f} ms "
                f"| {watch.longest_held_s * 1000:.0f} ms ({kept}) |",
                flush=True,
            )


def waiting(env: dict[str, str]) -> list[tuple[str, str]]:
    """Return the migrations that are not applied, in their order."""
    plan = subprocess.run(
        [PYTHON, "manage.py", "showmigrations", "--plan"],
        env=os.environ | env,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    names = [line.split()[2] for line in plan.splitlines() if line.startswith("[ ]")]
    return [(app, name) for app, _, name in (full.partition(".") for full in names)]


def main(old: Path, messages: int) -> None:
    if reason := missing():
        sys.exit(reason)
    with ExitStack() as opened:
        folder = Path(tempfile.mkdtemp(prefix="parley-locks-"))
        opened.callback(shutil.rmtree, folder, ignore_errors=True)
        folder.chmod(0o711)  # PostgreSQL's user passes through
        parts = opened.enter_context(Parts(folder))
        cluster = Cluster(parts, folder / "postgres", settings={"max_wal_size": "4GB"})
        cluster.create()
        env = stack.environment(parts, free_port(), "uvicorn")
        env |= {"DATABASE_URL": cluster.url, "REDIS_URL": "", "LOG_LEVEL": "WARNING"}
        command = (python_of(old), "manage.py", "migrate", "--no-input")
        parts.finish("migrate-old", *command, env=env, cwd=old)
        since = time.monotonic()
        command = (python_of(old), "-m", "benchmarks.seed_history", str(messages))
        if parts.start("seed", *command, env=env, cwd=old).wait(_SEED_S):
            sys.exit(parts.tail("seed"))
        print(f"{messages} messages in {time.monotonic() - since:.0f} s", file=sys.stderr, flush=True)
        measure(parts, cluster, env)


if __name__ == "__main__":
    os.environ.pop("DATABASE_URL", None)
    main(Path(sys.argv[1]).resolve(), int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000)
