"""The bookkeeping: what the database says about accepted runs, and whether it keeps the promises.

It reads rows and JSON by itself and shares no code with what it judges.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

import psycopg

TERMINAL: Final = frozenset({"run.completed", "run.failed"})
_RUNS: Final = "SELECT * FROM conversations_run WHERE id = ANY(%s) ORDER BY created_at"
_BATCHES: Final = """
SELECT run_id, first_seq, last_seq, events::text AS events FROM conversations_eventbatch
WHERE run_id = ANY(%s) ORDER BY run_id, first_seq
"""
_MESSAGES: Final = """
SELECT run_id, seq, role, content, metadata FROM conversations_message
WHERE run_id = ANY(%s) ORDER BY run_id, seq
"""
_THREADS: Final = """
SELECT thread.id, thread.last_seq, count(message.seq) AS messages, max(message.seq) AS highest,
    (SELECT count(*) FROM conversations_run live
     WHERE live.thread_id = thread.id AND live.status IN ('queued', 'running')) AS live
FROM conversations_thread thread JOIN conversations_message message ON message.thread_id = thread.id
WHERE thread.id = ANY(%s) GROUP BY thread.id
"""


@dataclass(frozen=True)
class Logged:
    """An event as it is stored."""

    seq: int
    type: str
    data: dict[str, Any]


@dataclass
class Account:
    """What is stored of one run."""

    row: Any
    events: list[Logged] = field(default_factory=list)
    gaps: int = 0
    messages: list[Any] = field(default_factory=list)

    @property
    def text(self) -> str:
        """What the deltas give."""
        return "".join(e.data["text"] for e in self.events if e.type == "message.delta")

    @property
    def attempts(self) -> int:
        return sum(event.type == "run.started" for event in self.events)

    def faults(self) -> Iterable[str]:
        """Every promise that this run breaks, by name."""
        types = [event.type for event in self.events]
        ends = [place for place, type_ in enumerate(types) if type_ in TERMINAL]
        if not ends:
            yield "no terminal event"
            return
        if len(ends) > 1:
            yield "several terminal events"
        if ends[-1] != len(types) - 1:
            yield "events after the terminal one"
        if self.gaps:
            yield "gap or repeat in seq"
        if self.row.status != _status(self.events[-1]):
            yield f"row {self.row.status}, log {_status(self.events[-1])}"
        if self.row.last_seq != self.events[-1].seq:
            yield "row's last_seq is not the log's"
        if self.row.error_code != self.events[-1].data.get("code", ""):
            yield "row's error is not the log's"
        if self.row.lease_until is not None or self.row.finished_at is None:
            yield "ended, but the row does not say so"
        if "".join(m.content for m in self.messages if m.role == "assistant") != self.text:
            yield "stored message is not what was streamed"
        if "message.delta" in types and "run.started" in types[types.index("message.delta") :]:
            yield "run again after words"
        if self.row.model == "global:bench" and not _numbered(self.text):
            yield "tokens lost, repeated or out of order"


def _status(last: Logged) -> str:
    if last.type == "run.completed":
        return "completed"
    return "cancelled" if last.data.get("code") == "cancelled" else "failed"


def _numbered(text: str) -> bool:
    """Whether the text is `t0 t1 t2 …` as far as it goes."""
    return text == "".join(f"t{number} " for number in range(text.count(" ")))


@dataclass
class Findings:
    """All accounts of some runs, and how often which promise is broken."""

    accounts: dict[UUID, Account]
    faults: Counter[str]

    @property
    def count(self) -> int:
        return self.faults.total()

    def of(self, run_id: str) -> Account:
        return self.accounts[UUID(run_id)]

    @property
    def ends(self) -> Counter[str]:
        """How the runs ended: status, or the code of the failure."""
        rows = [account.row for account in self.accounts.values()]
        return Counter(row.error_code or row.status for row in rows)


def examine(connection: psycopg.Connection[Any], run_ids: Iterable[str]) -> Findings:
    """Account for accepted runs; a run that is not there at all is a fault, too."""
    ids = [UUID(run_id) for run_id in run_ids]
    accounts = {row.id: Account(row) for row in connection.execute(_RUNS, [ids])}
    for batch in connection.execute(_BATCHES, [ids]):
        _enter(accounts[batch.run_id], batch)
    for message in connection.execute(_MESSAGES, [ids]):
        accounts[message.run_id].messages.append(message)
    faults = Counter(fault for account in accounts.values() for fault in account.faults())
    faults["accepted run is gone"] += len(set(ids) - accounts.keys())
    threads = list({account.row.thread_id for account in accounts.values()})
    for thread in connection.execute(_THREADS, [threads]):
        faults["busy thread without a live run"] += thread.live
        faults["thread's messages not counted through"] += not (
            thread.last_seq == thread.messages == thread.highest
        )
    return Findings(accounts, +faults)


def _enter(account: Account, batch: Any) -> None:
    expected = account.events[-1].seq + 1 if account.events else 1
    some = [one for _, stored in json.loads(batch.events) for one in _spread(stored)]
    account.gaps += batch.first_seq != expected or len(some) != batch.last_seq - batch.first_seq + 1
    account.events += [Logged(seq, data["type"], data) for seq, data in enumerate(some, batch.first_seq)]


def _spread(stored: dict[str, Any]) -> list[dict[str, Any]]:
    """Deltas that follow each other are stored as one entry."""
    if "texts" not in stored:
        return [stored]
    kind = {"type": stored["type"].removesuffix("s"), "message_id": stored["message_id"]}
    return [kind | {"text": text} for text in stored["texts"]]


def unsettled(connection: psycopg.Connection[Any], run_ids: Iterable[str]) -> int:
    """How many of the runs have not ended."""
    row = connection.execute(
        "SELECT count(*) AS n FROM conversations_run"
        " WHERE id = ANY(%s) AND status IN ('queued', 'running')",
        [[UUID(run_id) for run_id in run_ids]],
    ).fetchone()
    assert row is not None
    return int(row.n)


def everything(connection: psycopg.Connection[Any], run_ids: Iterable[str]) -> dict[str, list[Any]]:
    """All that is stored of the runs, to compare one moment with another."""
    ids = [UUID(run_id) for run_id in run_ids]
    found: dict[str, list[Any]] = defaultdict(list)
    for name, statement in {"runs": _RUNS, "events": _BATCHES, "messages": _MESSAGES}.items():
        found[name] = connection.execute(statement, [ids]).fetchall()
    return found
