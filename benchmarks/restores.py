"""Base backup and point-in-time recovery, under load: is each thing that was promised there?

    .venv/bin/python -m benchmarks.restores [TIMES] [RATE] [SECONDS]

A PostgreSQL of our own archives its WAL while RATE runs a second (20) are offered for SECONDS (60), each
read to its end. A base backup is taken meanwhile. Then TIMES (20) times the database is brought back as
it was at a random moment after the backup, and Parley is started on it. What the clients had seen by
then must be there, and nothing that they sent later; what was interrupted must end; metrics must be what
the rows add up to; and the providers' keys must open with the keys file.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final
from uuid import UUID

import psycopg
import uvloop
from cryptography.fernet import Fernet, InvalidToken

from benchmarks import load, stack
from benchmarks.clusters import Cluster, missing, restored
from benchmarks.ports import free_port
from benchmarks.stack import PYTHON, Parts, healthy_at
from config.process.server import allow_many_files

RUNS: Final = "/api/v1/agent/runs"
PROMPTS: Final = ("tokens=1 delay_ms=0", "tokens=40 delay_ms=50", "tokens=100 delay_ms=10")
LIMIT_S: Final = 60.0
SETTLED_S: Final = 60.0
_LIVE: Final = "SELECT count(*) FROM conversations_run WHERE status IN ('queued', 'running')"
_ROWS: Final = "SELECT id, status FROM conversations_run"
_TEXTS: Final = """
SELECT run_id, string_agg(content, '' ORDER BY seq) FROM conversations_message
WHERE role = 'assistant' GROUP BY run_id
"""
BROKEN_LOGS: Final = """
WITH placed AS (
    SELECT run_id, first_seq, last_seq,
        lag(last_seq, 1, 0) OVER (PARTITION BY run_id ORDER BY first_seq) AS before
    FROM conversations_eventbatch),
logs AS (
    SELECT run_id, bool_or(first_seq <> before + 1) AS gap, max(last_seq) AS last_seq
    FROM placed GROUP BY run_id)
SELECT count(*) FROM conversations_run run LEFT JOIN logs ON logs.run_id = run.id
WHERE logs.run_id IS NULL OR logs.gap
    OR (run.finished_at IS NOT NULL AND logs.last_seq <> run.last_seq)
"""
BROKEN_ENDS: Final = """
WITH said AS (
    SELECT batch.run_id, batch.first_seq, entry.place,
        entry.event->1->>'type' IN ('run.completed', 'run.failed') AS ends,
        row_number() OVER (PARTITION BY batch.run_id
            ORDER BY batch.first_seq DESC, entry.place DESC) AS from_end
    FROM conversations_eventbatch batch, json_array_elements(batch.events)
        WITH ORDINALITY entry(event, place)),
ended AS (
    SELECT run_id, count(*) FILTER (WHERE ends) AS ends, bool_or(ends AND from_end = 1) AS at_end
    FROM said GROUP BY run_id)
SELECT count(*) FROM conversations_run run LEFT JOIN ended ON ended.run_id = run.id
WHERE (run.status IN ('queued', 'running') AND ended.ends > 0)
    OR (run.status NOT IN ('queued', 'running') AND NOT coalesce(ended.ends = 1 AND ended.at_end, false))
"""
_ENDS: Final = """
SELECT coalesce(nullif(error_code, ''), status), count(*) FROM conversations_run GROUP BY 1
"""
_COUNTED: Final = """
SELECT count(*), count(*) FILTER (WHERE status = 'completed'), count(*) FILTER (WHERE status = 'failed'),
    coalesce(sum(input_tokens), 0), coalesce(sum(output_tokens), 0) FROM conversations_run
"""
_ADDED_UP: Final = """
SELECT sum(runs), sum(completed), sum(failed), sum(input_tokens), sum(output_tokens)
FROM conversations_runrollup WHERE grain = 'hour'
"""
_ROLLUPS: Final = (
    "conversations_runrollup",
    "conversations_steprollup",
    "conversations_threadday",
    "conversations_memberset",
)


@dataclass
class Seen:
    """What a client knows of one run; epoch seconds, 0 for what did not happen."""

    posted_at: float
    run_id: str = ""
    accepted_at: float = 0.0
    ended_at: float = 0.0
    text: str = ""
    error: str = ""


@dataclass
class Restore:
    """What was found in the database as it was at one moment."""

    faults: Counter[str] = field(default_factory=Counter)
    promised: int = 0
    ended: int = 0
    interrupted: int = 0
    recovered_s: float = 0.0
    settled_s: float = 0.0
    statuses: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Place:
    """Where everything is: the folder, the processes, the model, and Parley's environment."""

    parts: Parts
    folder: Path
    env: dict[str, str]
    commands: tuple[str, ...]

    def settings(self, cluster: Cluster) -> dict[str, str]:
        return self.env | {"DATABASE_URL": cluster.url, "PORT": str(free_port())}


@contextmanager
def place(commands: tuple[str, ...] = ("web", "worker", "beat")) -> Iterator[Place]:
    """A folder with a Redis and the fake model, and the environment of Parley's processes.

    The one process of the command `up` needs no Redis.
    """
    with ExitStack() as opened:
        folder = Path(tempfile.mkdtemp(prefix="parley-restores-"))
        opened.callback(shutil.rmtree, folder, ignore_errors=True)
        folder.chmod(0o711)  # PostgreSQL's user passes through
        parts = opened.enter_context(Parts(folder))
        env = stack.environment(parts, 0, "uvicorn") | {"LEASE_S": "3", "LOG_LEVEL": "WARNING"}
        model = free_port()
        parts.start("model", PYTHON, "-m", "benchmarks.fake_model", "--port", str(model))
        env |= {"MODEL": f"http://127.0.0.1:{model}/v1", "REDIS_URL": ""}
        if commands != ("up",):
            env["REDIS_URL"] = stack.start_redis(parts)[0]
        yield Place(parts, folder, env, commands)


@contextmanager
def parley(at: Place, cluster: Cluster, name: str) -> Iterator[int]:
    """Parley's processes on this database; yields the port at which they answer."""
    env = at.settings(cluster)
    with Parts(at.folder) as parts:
        for command in at.commands:
            parts.start(f"{command}-{name}", PYTHON, "manage.py", command, env=env)
        parts.wait(f"{at.commands[0]}-{name}", lambda: healthy_at(int(env["PORT"])))
        yield int(env["PORT"])


# --- the load -------------------------------------------------------------------------------------


async def offer(port: int, token: str, rate: float, until: float, seen: list[Seen]) -> None:
    """Start so many runs a second until then (epoch seconds), and read each to its end."""
    begun, reading = time.time(), list[asyncio.Task[None]]()
    number = 0
    while (due := begun + number / rate) < until:
        await asyncio.sleep(max(0.0, due - time.time()))
        seen.append(Seen(time.time()))
        prompt = PROMPTS[number % len(PROMPTS)]
        reading.append(asyncio.create_task(_read(port, token, prompt, seen[-1])))
        number += 1
    await asyncio.gather(*reading)


async def _read(port: int, token: str, prompt: str, seen: Seen) -> None:
    try:
        async with asyncio.timeout(LIMIT_S):
            await _follow(port, token, prompt, seen)
    except Exception as error:
        seen.error = f"{type(error).__name__}: {error}"[:200]


async def _follow(port: int, token: str, prompt: str, seen: Seen) -> None:
    body = bytearray()
    call = load.Call(RUNS, {"model": "bench", "text": prompt}, token)
    exchange, _ = await load.send(port, call, body.extend)
    status = await exchange.status
    await exchange.ended
    answered = time.time()
    exchange.close()
    if status != 202:
        raise RuntimeError(f"HTTP {status}")
    seen.run_id, seen.accepted_at = json.loads(body)["run_id"], answered
    target, run = load.parley(port, token, "bench"), load.Run()
    reader = load.Reader(target, run)
    exchange, _ = await load.send(
        port, load.Call(f"{RUNS}/{seen.run_id}/events", token=token), reader.feed
    )
    await reader.finished
    seen.ended_at, seen.text, seen.error = time.time(), run.text.decode(), run.error
    exchange.close()


# --- what a restored database must have -----------------------------------------------------------


def check_rows(
    connection: psycopg.Connection[Any], seen: list[Seen], moment: float, keys: str
) -> Restore:
    """Compare the database, before Parley starts, with what the clients had seen by the moment."""
    found = Restore()
    rows = {run_id.hex: status for run_id, status in connection.execute(_ROWS)}
    texts = {run_id.hex: text for run_id, text in connection.execute(_TEXTS)}
    for one in seen:
        run_id = UUID(one.run_id).hex if one.run_id else ""
        if 0 < one.accepted_at <= moment:
            found.promised += 1
            found.faults["an accepted run is not there"] += run_id not in rows
        if one.posted_at > moment:
            found.faults["a run of later is there"] += run_id in rows
        if 0 < one.ended_at <= moment and not one.error:
            found.ended += 1
            found.faults["an end that was seen is not there"] += rows.get(run_id) != "completed"
            found.faults["a text is another"] += texts.get(run_id, "") != one.text
    found.interrupted = _number(connection, _LIVE)
    found.faults["a log with a gap"] += _number(connection, BROKEN_LOGS)
    found.faults["an end that is not one and last"] += _number(connection, BROKEN_ENDS)
    found.faults["a key that does not open"] += count_unopened(connection, keys)
    return found


def count_unopened(connection: psycopg.Connection[Any], keys: str) -> int:
    """Return how many stored keys this sealing key does not open; -1 if none is stored."""
    sealed = [text for (text,) in connection.execute("SELECT sealed FROM prompts_secret")]
    unopened = 0
    for text in sealed:
        try:
            unopened += Fernet(keys).decrypt(text.encode()) != b"sk-bench"
        except InvalidToken:
            unopened += 1
    return unopened if sealed else -1


def settle(connection: psycopg.Connection[Any]) -> float:
    """Return after how many seconds no run was live any more, and the numbers agreed with the rows."""
    begun = time.monotonic()
    while _number(connection, _LIVE) or not numbers_agree(connection):
        if time.monotonic() - begun > SETTLED_S:
            return -1.0
        time.sleep(0.1)
    return time.monotonic() - begun


def numbers_agree(connection: psycopg.Connection[Any]) -> bool:
    """Return whether the hours of metrics are what the rows of runs add up to."""
    counted = connection.execute(_COUNTED).fetchone()
    return counted == connection.execute(_ADDED_UP).fetchone()


def fingerprint(connection: psycopg.Connection[Any]) -> dict[str, str]:
    """Return a digest of each table of metrics."""
    statement = "SELECT md5(coalesce(string_agg(t::text, '|' ORDER BY t::text), '')) FROM {} t"
    return {table: str(_value(connection, statement.format(table))) for table in _ROLLUPS}


def check_again(at: Place, cluster: Cluster, name: str, token: str, found: Restore) -> None:
    """Start Parley on the restored database, and look at what became of the interrupted runs."""
    with parley(at, cluster, name) as port, cluster.connect() as connection:
        found.settled_s = settle(connection)
        found.faults["interrupted runs or numbers are not settled"] += found.settled_s < 0
        found.faults["a log with a gap"] += _number(connection, BROKEN_LOGS)
        found.faults["an end that is not one and last"] += _number(connection, BROKEN_ENDS)
        new = Seen(time.time())
        uvloop.run(_read(port, token, PROMPTS[0], new))
        found.faults["a new run does not complete"] += bool(new.error) or new.text != "t0 "
        found.faults["numbers are not settled"] += settle(connection) < 0
    with cluster.connect() as connection:
        before = fingerprint(connection)
        at.parts.finish(f"rollup-{name}", PYTHON, "manage.py", "rollup", env=at.settings(cluster))
        found.faults["adding up again gives other numbers"] += before != fingerprint(connection)
        query = (
            "SELECT coalesce(nullif(error_code, ''), status), count(*) FROM conversations_run GROUP BY 1"
        )
        found.statuses = dict(connection.execute(query).fetchall())


def _number(connection: psycopg.Connection[Any], statement: str) -> int:
    return int(_value(connection, statement))


def _value(connection: psycopg.Connection[Any], statement: str) -> Any:
    row = connection.execute(statement).fetchone()
    assert row is not None
    return row[0]


# --- the proof ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Recorded:
    """A cluster that was under load, a base backup of it, and what clients had seen meanwhile."""

    cluster: Cluster
    base: Path
    token: str
    seen: list[Seen]
    first: float
    last: float

    @property
    def keys(self) -> str:
        """The sealing key in the keys file."""
        path = Path(self.cluster.parts.folder) / "var" / "keys.json"
        return str(json.loads(path.read_text())["SEALING_KEYS"])


def record(
    at: Place, rate: float, seconds: float, say: Callable[[str], None], *, under_load: bool = True
) -> Recorded:
    """Offer the load, and take the base backup a quarter of the time later, or before it."""
    cluster = Cluster(at.parts, at.folder / "primary", at.folder / "archive")
    cluster.create()
    env = at.settings(cluster)
    if at.commands != ("up",):  # which migrates itself
        say("migrations")
        at.parts.finish("migrate", PYTHON, "manage.py", "migrate", "--no-input", env=env)
    base, seen = at.folder / "base", list[Seen]()
    with parley(at, cluster, "primary") as port:
        prepare = (PYTHON, "-m", "benchmarks.prepare", at.env["MODEL"])
        token = at.parts.finish("prepare", *prepare, env=env)
        say(f"{rate:g} runs/s for {seconds:g} s")

        async def both() -> float:
            offering = asyncio.create_task(offer(port, token, rate, time.time() + seconds, seen))
            await asyncio.sleep(seconds / 4)
            await asyncio.to_thread(cluster.back_up, base)
            taken = time.time()
            await offering
            return taken

        if under_load:
            first = uvloop.run(both())
        else:
            cluster.back_up(base)
            first = time.time()
            uvloop.run(offer(port, token, rate, first + seconds, seen))
        last = time.time()
        uvloop.run(_read(port, token, PROMPTS[0], Seen(time.time())))  # a commit after the last moment
    cluster.archive_rest()
    cluster.stop()
    return Recorded(cluster, base, token, seen, first, last)


def restore(at: Place, recorded: Recorded, moment: float, name: str) -> Restore:
    """Bring the database back to the moment, and judge it."""
    begun = time.monotonic()
    with restored(recorded.cluster, recorded.base, at.folder / name, moment) as cluster:
        recovered = time.monotonic() - begun
        with cluster.connect() as connection:
            found = check_rows(connection, recorded.seen, moment, recorded.keys)
        found.recovered_s = recovered
        check_again(at, cluster, name, recorded.token, found)
    found.faults = +found.faults
    return found


def main(times: int, rate: float, seconds: float) -> None:
    if reason := missing():
        sys.exit(reason)
    allow_many_files()
    random, faults = Random(), Counter[str]()
    with place() as at:
        recorded = record(at, rate, seconds, _say)
        ended = sum(bool(one.ended_at) and not one.error for one in recorded.seen)
        errors = Counter(one.error for one in recorded.seen if one.error)
        _say(f"{len(recorded.seen)} runs offered, {ended} read to their ends, errors {dict(errors)}")
        size = sum(file.stat().st_size for file in recorded.base.rglob("*") if file.is_file())
        wal = len(list((at.folder / "archive").iterdir()))
        _say(f"base backup {size / 2**20:.0f} MiB, {wal} files of WAL")
        for number in range(1, times + 1):
            moment = random.uniform(recorded.first, recorded.last)
            found = restore(at, recorded, moment, f"restore-{number}")
            faults += found.faults
            print(
                f"{number:2}. {moment - recorded.first:5.1f} s after the backup: "
                f"{found.promised} promised, {found.ended} ended, {found.interrupted} interrupted; "
                f"recovered in {found.recovered_s:.1f} s, settled in {found.settled_s:.1f} s, then "
                f"{found.statuses}; faults {dict(found.faults) or 0}",
                flush=True,
            )
    print(f"{times} restores, faults: {dict(faults) or 0}")
    sys.exit(bool(faults))


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


if __name__ == "__main__":
    os.environ.pop("DATABASE_URL", None)
    given = [float(text) for text in sys.argv[1:]]
    main(int(given[0]) if given else 20, *(given[1:] or (20.0, 60.0)))
