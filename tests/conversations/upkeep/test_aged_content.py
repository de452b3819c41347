"""What was said goes after CONTENT_DAYS, or by command; numbers, younger words and live runs stay."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from io import StringIO
from typing import Any
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from pytest_django import Settings

from config.audit.models import AuditEntry
from config.database import run_sync
from conversations import attachments
from conversations.metrics import rollups
from conversations.models import Attachment, Feedback, Interrupt, Message, Run, Thread
from conversations.models.rollups import RunRollup, StepRollup
from conversations.runs import recent_starts
from conversations.upkeep import aged_content
from conversations.upkeep.aged_content import AgedCounts, Pass
from conversations.upkeep.rounds import run_upkeep_round
from tests.conversations.upkeep.erasing import (
    keep_in_every_room,
    new_canary,
    ran,
    run_again,
    tables_with,
)
from tests.support.client import Client

pytestmark = pytest.mark.once

AGE = """
UPDATE conversations_run SET created_at = created_at - make_interval(days => %(days)s),
    started_at = started_at - make_interval(days => %(days)s),
    first_token_at = first_token_at - make_interval(days => %(days)s),
    finished_at = finished_at - make_interval(days => %(days)s) WHERE id = %(run)s
"""


@pytest.fixture(autouse=True)
def first_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aged_content, "_daily", None)


def age(run: Run, *, days: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(AGE, {"days": days, "run": run.pk})


def erase(*options: str) -> str:
    out = StringIO()
    call_command("erase_content", *options, stdout=out)
    return out.getvalue()


def upkeep() -> None:
    until = time.monotonic() + 30
    while time.monotonic() < until:
        done = run_sync(run_upkeep_round())
        if done is not None and not done.more:
            return
        time.sleep(0.05)
    raise AssertionError("upkeep has no end")


def history(client: Client, thread_id: UUID) -> str:
    return json.dumps(client.history(str(thread_id)))


def numbers(run: Run) -> list[dict[str, Any]]:
    """The row of the run, and every rollup of its hour, computed anew."""
    fields = ("status", "model", "input_tokens", "output_tokens", "cost_usd", "finished_at", "runner")
    day = run.created_at.astimezone(rollups.zone()).date()
    run_sync(rollups.roll_up_range(day, day))
    begin = rollups.start_of_day(day)
    return [
        *Run.objects.filter(pk=run.pk).values(*fields),
        *RunRollup.objects.filter(bucket__gte=begin, bucket__lt=run.created_at).order_by("pk").values(),
        *StepRollup.objects.filter(bucket__gte=begin, bucket__lt=run.created_at).order_by("pk").values(),
    ]


def test_old_words_are_in_no_table_and_the_numbers_stay(
    client: Client, make_client: Callable[..., Client]
) -> None:
    canary = new_canary()
    staff = make_client(is_staff=True)
    run = ran(client, f"Which exercises train the glutes, {canary}?", metadata={"ticket": canary})
    keep_in_every_room(run, canary)
    Thread.objects.filter(pk=run.thread_id).update(title=f"My {canary}", state={"word": canary})
    again = run_again(staff, run)
    age(run, days=40)
    run.refresh_from_db()
    before = numbers(run)
    assert any(row.get("kind") == "tool" for row in before), "a run with a tool call is needed"
    messages = Message.objects.filter(run=run, seq__isnull=False).count()

    said = erase("--older-than", "30", "--user", client.user.username, "--dry-run")
    assert said.startswith(
        f"1 runs with {messages} messages and up to 0 files in 1 conversations, and 1"
    )
    assert Message.objects.filter(run=run, seq__isnull=False).count() == messages

    said = erase("--older-than", "30", "--user", str(client.user.pk))
    assert (
        f"1 runs with {messages} messages erased; 1 conversations are empty now, and 1 re-runs" in said
    )
    assert tables_with(canary) - {"agents_hoststate"} == set()
    assert tables_with(canary) == {"agents_hoststate"}, "the person's own state is no conversation's"
    assert not Run.objects.filter(pk=again.pk).exists()
    assert Run.objects.get(pk=run.pk).stored is False
    assert Feedback.objects.get(run=run).score == 1
    assert numbers(run) == before
    recent_starts.forget_thread(run.thread_id)  # which was not accepted a moment ago
    assert client.http.get(f"/api/v1/agent/runs/{run.pk.hex}/events").status_code == 404
    listed = client.http.get("/api/v1/agent/threads").json()["threads"]
    assert str(run.thread_id) not in [thread["id"] for thread in listed]
    entry = AuditEntry.objects.filter(action=aged_content.ACTION, object_id=str(client.user.pk)).get()
    assert (entry.after["runs"], entry.after["messages"]) == (1, messages)
    assert canary not in str(entry.after)
    assert erase("--older-than", "30", "--user", client.user.username).startswith("0 runs")


def test_a_conversation_that_goes_on_loses_its_oldest_words_alone(client: Client) -> None:
    old, young = new_canary(), new_canary()
    first = ran(client, f"First {old}")
    second = ran(client, f"Second {young}", conversation_id=str(first.thread_id))
    age(first, days=40)
    erase("--older-than", "30", "--user", client.user.username)
    assert tables_with(old) == set()
    said = history(client, first.thread_id)
    assert young in said
    assert Thread.objects.get(pk=first.thread_id).title == f"Second {young}"
    third = ran(client, "Third", conversation_id=str(first.thread_id))
    assert (third.thread_id, third.status) == (first.thread_id, "completed")
    assert history(client, first.thread_id).count("Third") >= 1
    assert client.watch(second.pk.hex)[-1].event == "completed"


def test_an_empty_conversation_can_be_gone_on_with(client: Client) -> None:
    first = ran(client, "First")
    erase("--user", client.user.username)
    second = ran(client, "Second", conversation_id=str(first.thread_id))
    assert second.status == "completed"
    said = history(client, first.thread_id)
    assert "Second" in said
    assert "First" not in said


def test_words_of_a_live_conversation_and_of_a_waiting_approval_stay(
    client: Client, scripted: Callable[..., Any]
) -> None:
    live, waiting = ran(client, "live"), ran(client, "waits")
    for run in (live, waiting):
        age(run, days=40)
    Interrupt.objects.create(
        owner=client.user, thread_id=waiting.thread_id, run=waiting, place=1, tool_call_id="c",
        tool_name="t", arguments={}, expires_at="2999-01-01T00:00:00Z",
    )  # fmt: skip
    model = scripted("endless").name
    accepted = client.start("on", model=model, conversation_id=str(live.thread_id))
    client.watch(accepted["run_id"], stop_after=6)
    assert erase("--older-than", "30", "--user", client.user.username).startswith("0 runs")
    assert Run.objects.get(pk=accepted["run_id"]).status == "running"
    client.http.post(f"/api/v1/agent/runs/{accepted['run_id']}/cancel")
    client.wait_for(accepted["run_id"], "cancelled")
    Interrupt.objects.filter(run=waiting).update(status="expired")
    assert erase("--older-than", "30", "--user", client.user.username).startswith("2 runs")


def test_the_setting_erases_once_a_day_and_says_so_in_the_audit_log(
    client: Client, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aged_content, "AT_ONCE", 2)
    monkeypatch.setattr(aged_content, "_DUE", re.sub(r"LIMIT \d+", "LIMIT 2", aged_content._DUE))
    canary = new_canary()
    runs = [ran(client, f"{number} {canary}") for number in range(5)]
    kept = ran(client, "young")
    for run in runs:
        age(run, days=31)
    settings.CONTENT_DAYS = 0
    upkeep()
    assert Run.objects.filter(pk__in=[run.pk for run in runs], stored=True).count() == 5
    settings.CONTENT_DAYS = 30
    noted = AuditEntry.objects.filter(action=aged_content.ACTION, object_id="").count()
    upkeep()
    assert tables_with(canary) == set()
    assert Run.objects.get(pk=kept.pk).stored
    entries = AuditEntry.objects.filter(action=aged_content.ACTION, object_id="").order_by("-pk")
    assert entries.count() == noted + 1
    assert entries[0].after["runs"] >= 5
    assert entries[0].object_name.startswith("before ")
    upkeep()
    assert entries.count() == noted + 1


def test_a_step_is_bounded_and_a_pass_goes_on_where_it_was(client: Client, monkeypatch: Any) -> None:
    monkeypatch.setattr(aged_content, "AT_ONCE", 2)
    monkeypatch.setattr(aged_content, "_DUE", re.sub(r"LIMIT \d+", "LIMIT 2", aged_content._DUE))
    runs = [ran(client, str(number)) for number in range(3)]
    for number, run in enumerate(runs):
        age(run, days=40 - number)
    before = Run.objects.get(pk=runs[2].pk).finished_at
    assert before is not None
    step = run_sync(aged_content.erase_step(Pass(before, client.user.pk)))
    assert (step.erased.runs, step.is_done) == (2, False)
    step = run_sync(aged_content.erase_step(step))
    assert (step.erased.runs, step.is_done) == (2, True), "the one at the limit is not older than it"
    assert step.erased == AgedCounts(2, step.erased.messages, 2, 0)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "--older-than DAYS, --user NAME, or both"),
        (("--older-than", "-1"), "from 0 to 36500, not -1"),
        (("--older-than", "99999"), "from 0 to 36500"),
        (("--user", "nobody-of-this-name"), "There is no user nobody-of-this-name"),
    ],
)
def test_what_cannot_be_meant_is_refused(client: Client, options: tuple[str, ...], said: str) -> None:
    with pytest.raises(CommandError, match=re.escape(said)):
        erase(*options)


def test_a_file_that_came_with_old_words_goes_with_them(client: Client) -> None:
    part = {"type": "input_file", "file_data": "c2VjcmV0", "filename": "a.txt"}
    body = {"model": "demo", "input": [{"role": "user", "content": [part]}]}
    answer = client.http.post(f"{client.url}/v1/responses", json=body)
    assert answer.status_code == 200, answer.text
    (file,) = Attachment.objects.filter(owner_id=client.user.pk)
    said = erase("--user", client.user.username, "--dry-run")
    assert "up to 1 files" in said
    erase("--user", client.user.username)
    with connection.cursor() as cursor:  # a minute after the run's end its request goes too
        cursor.execute(
            "UPDATE conversations_run SET finished_at = finished_at - interval '2 minutes'"
            " WHERE owner_id = %s",
            [client.user.pk],
        )
    upkeep()
    assert not Attachment.objects.filter(pk=file.pk).exists()
    assert not run_sync(attachments.exists(file.bucket, file.path))
