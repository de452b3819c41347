"""A conversation for staff: a page of its messages by run, with each run's time and cost.

Four statements per page, whatever its content: messages, runs, their stages' notes, feedback; with
branches two more, and one branch is shown. Files are signed and cards compiled at each reading;
arguments and results are shown by their beginning.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit
from uuid import UUID

from django.conf import settings
from django.utils.safestring import SafeString
from msgspec.structs import replace

from config import sql
from conversations.cards.html import card_html
from conversations.models import Feedback, Message, Run
from conversations.runs.client_queries import milliseconds_between
from conversations.threads import history_message
from conversations.threads.branches import IN_BRANCH, OF_BRANCH, TIPS, Tip
from conversations.threads.history_message import FileBlock, Stored
from conversations.usage import usd

PAGE: Final = 100
_LONGEST: Final = 4_000
_LONGEST_TEXT: Final = 20_000
_PAGE: Final = f"""
SELECT id, client_id, seq, role, left(content, {_LONGEST_TEXT}), created_at,
    ({history_message.RELEVANT})::text,
    run_id, tool_name, latency_ms, left(jsonb_pretty(metadata -> 'tool_arguments'), {_LONGEST}),
    left(jsonb_pretty(coalesce(metadata #> '{{tool_agent_output,result}}',
        metadata #> '{{tool_agent_output,error}}')), {_LONGEST}),
    metadata #> '{{tool_agent_output,error}}' IS NULL,
    left(jsonb_pretty(metadata -> 'tool_calls'), {_LONGEST}),
    (SELECT CASE WHEN fork_run_id IS NOT NULL THEN head_run_id END
        FROM conversations_thread WHERE id = %(thread_id)s)
FROM conversations_message message WHERE thread_id = %(thread_id)s AND seq < %(before)s
"""
_OF_THREAD: Final = f"{_PAGE} ORDER BY seq DESC LIMIT {PAGE + 1}"
_OF_BRANCH: Final = f"""
{OF_BRANCH} {_PAGE} AND (run_id IS NULL OR EXISTS (
    SELECT FROM conversations_run run WHERE run.id = message.run_id AND {IN_BRANCH}))
ORDER BY seq DESC LIMIT {PAGE + 1}
"""


class _Row(NamedTuple):
    stored: Stored
    run_id: UUID | None
    tool_name: str | None
    latency_ms: int | None
    arguments: str | None
    answer: str | None
    ok: bool
    calls: str | None
    branch: UUID | None


@dataclass(frozen=True)
class MessageEntry:
    """A message as it is shown; of a tool's the call and its answer."""

    seq: int
    role: str
    content: str
    at: datetime
    files: tuple[FileBlock, ...] = ()
    card: SafeString | None = None
    tool_name: str = ""
    latency_ms: int | None = None
    arguments: str = ""
    answer: str = ""
    ok: bool = True


@dataclass(frozen=True)
class RunEntry:
    """A run, its time and cost, users' feedback, and its messages."""

    run: Run | None
    stages: Sequence[tuple[str, int]]
    feedback: Sequence[Feedback]
    messages: Sequence[MessageEntry]

    @property
    def facts(self) -> list[tuple[str, str]]:
        """Return the known facts as names and values; the cost where the price is known."""
        run = self.run
        if run is None:
            return []
        total = milliseconds_between(run.created_at, run.finished_at)
        first = milliseconds_between(run.created_at, run.first_token_at)
        cost = usd(run.cost_usd)
        known = {
            "first token": None if first is None else f"{first} ms",
            "total": None if total is None else f"{total} ms",
            "tokens": f"{run.input_tokens} → {run.output_tokens}",
            "cost": None if cost is None else f"${cost}",
            "prompts": ", ".join(f"{used['name']} v{used['number']}" for used in run.prompt_versions),
        }
        return [(name, value) for name, value in known.items() if value]


@dataclass(frozen=True)
class ConversationPage:
    """The newest runs before a place, oldest first; `older` is the place to go on from.

    `branches` are the thread's if it has more than one, and `branch` is the last run of the one shown.
    """

    runs: list[RunEntry]
    older: int | None
    branches: Sequence[Tip] = ()
    branch: UUID | None = None


def fetch_page(
    thread_id: UUID, *, before: int | None = None, branch: UUID | None = None
) -> ConversationPage:
    """Return the newest page of the thread's messages before a place in it.

    With branches, of the one that ends with the run `branch`, or of the one last continued.
    """
    arguments = {"thread_id": thread_id, "before": before or 2**31 - 1}
    rows = _fetch_rows(_OF_THREAD, arguments)
    shown = rows[0].branch if rows else None
    branches: Sequence[Tip] = ()
    if shown:
        branches = [Tip(*row) for row in sql.fetch(TIPS, {"thread_id": thread_id})]
        shown = branch if any(tip.run_id == branch for tip in branches) else shown
        rows = _fetch_rows(_OF_BRANCH, arguments | {"branch": shown})
    page = rows[:PAGE]
    older = page[-1].stored.seq if len(rows) > PAGE else None
    ids = {row.run_id for row in page if row.run_id}
    runs = {run.pk: run for run in Run.objects.filter(pk__in=ids).defer("request", "state")}
    page.sort(key=lambda row: _sort_key(runs.get(row.run_id) if row.run_id else None, row))
    return ConversationPage(_group_by_run(page, runs), older, branches, shown)


def _fetch_rows(statement: str, arguments: dict[str, Any]) -> list[_Row]:
    return [_Row(Stored(*row[:7]), *row[7:]) for row in sql.fetch(statement, arguments)]


def _sort_key(run: Run | None, row: _Row) -> tuple[int, str, int]:
    """Return the place: a message queued behind a running answer stands after that answer."""
    return (run.thread_seq, run.pk.hex, row.stored.seq) if run else (row.stored.seq, "", 0)


def _group_by_run(page: Sequence[_Row], runs: dict[UUID, Run]) -> list[RunEntry]:
    stages, feedback = _fetch_stages(runs), _fetch_feedback(runs)
    entries: list[RunEntry] = []
    for run_id, rows in groupby(page, key=lambda row: row.run_id):
        run = runs.get(run_id) if run_id else None
        of_run = (stages.get(run.pk, ()), feedback.get(run.pk, ())) if run else ((), ())
        entries.append(RunEntry(run, *of_run, [_make_entry(row) for row in rows]))
    return entries


def _fetch_stages(runs: Iterable[UUID]) -> dict[UUID, list[tuple[str, int]]]:
    """Return the latencies of each run's stages, from its messages and the notes beside them."""
    known = Message.objects.filter(run_id__in=list(runs), stage__isnull=False).order_by("seq")
    found: dict[UUID, dict[str, int]] = {}
    for run_id, stage, latency_ms in known.values_list("run_id", "stage", "latency_ms"):
        of_run = found.setdefault(run_id, {})
        of_run[stage] = of_run.get(stage, 0) + (latency_ms or 0) if stage == _TOOLS else latency_ms or 0
    return {run_id: list(stages.items()) for run_id, stages in found.items()}


_TOOLS: Final = "tool_execution"


def _fetch_feedback(runs: Iterable[UUID]) -> dict[UUID, list[Feedback]]:
    found: dict[UUID, list[Feedback]] = {}
    for feedback in Feedback.objects.filter(run_id__in=list(runs)).select_related("user"):
        found.setdefault(feedback.run_id, []).append(feedback)
    return found


def _make_entry(row: _Row) -> MessageEntry:
    stored = row.stored
    shown = history_message.show_message(stored, "blocks")
    blocks = shown.content if isinstance(shown.content, list) else []
    return MessageEntry(
        seq=stored.seq,
        role=stored.role,
        content=stored.content,
        at=stored.created_at,
        files=tuple(
            replace(block, url=_local_path(block.url))
            for block in blocks
            if isinstance(block, FileBlock)
        ),
        card=card_html(shown.ui_schema or None),
        tool_name=row.tool_name or ("asks for a tool" if row.calls else ""),
        latency_ms=row.latency_ms,
        arguments=row.arguments or row.calls or "",
        answer=row.answer or "",
        ok=row.ok,
    )


def _local_path(url: str) -> str:
    """Return a URL of this server as a path, whatever address staff use for it."""
    parts = urlsplit(url)
    ours = url.startswith(f"{settings.PUBLIC_URL}/")
    return f"{parts.path}?{parts.query}" if ours else url
