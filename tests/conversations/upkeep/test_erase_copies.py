"""Erasing follows what staff have run again: afterwards no table holds a word of what the user said."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from io import StringIO
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from agents import requests
from agents.intake import submit
from agents.intake.rerun import rerun
from config.database import run_sync
from config.errors import NotFound
from conversations.models import EventBatch, Run, Thread, ThreadCopy
from conversations.upkeep.retention import ErasedCounts, erase_user
from tests.conversations.upkeep.erasing import (
    keep_in_every_room,
    new_canary,
    ran,
    run_again,
    tables_with,
)
from tests.support.client import Client


@pytest.fixture
def staff(make_client: Callable[..., Client]) -> Client:
    return make_client(is_staff=True)


@pytest.fixture
def colleague(make_client: Callable[..., Client]) -> Client:
    return make_client(is_staff=True)


def report_of(text: str) -> dict[str, list[int]]:
    """The lines of the report: found, removed and left of each kind."""
    lines = [line.rsplit(maxsplit=3) for line in text.splitlines()]
    return {
        name: [int(number) for number in numbers]
        for name, *numbers in (line for line in lines if len(line) == 4)
        if all(number.isdigit() for number in numbers)
    }


@pytest.mark.parametrize("keeps", [False, True], ids=["with the account", "the account stays"])
def test_nothing_of_what_a_user_said_is_left_in_any_table(
    client: Client, staff: Client, colleague: Client, keeps: bool
) -> None:
    canary = new_canary()
    run = ran(client, f"My secret is {canary}")
    keep_in_every_room(run, canary)
    again = run_again(staff, run)
    keep_in_every_room(again, "staff's own")
    more = ran(staff, "And what else?", conversation_id=str(again.thread_id))
    of_copy = run_again(colleague, more)
    other = ran(staff, "a conversation of my own")
    assert tables_with(canary) >= {
        "conversations_thread",
        "conversations_run",
        "conversations_message",
        "conversations_feedback",
        "agents_hoststate",
        "agents_hostartifact",
    }

    out = StringIO()
    options = ["--keep-account"] if keeps else []
    call_command("erase_user", client.user.username, "--dry-run", *options, stdout=out)
    found = report_of(out.getvalue())
    assert found["re-runs: conversations"] == [2, 0, 2]
    assert found["re-runs: runs"] == [3, 0, 3]
    assert Run.objects.filter(pk=of_copy.pk).exists()

    out = StringIO()
    call_command("erase_user", client.user.username, *options, stdout=out)
    assert tables_with(canary) == set()
    assert set(Thread.objects.filter(owner=staff.user).values_list("pk", flat=True)) == {other.thread_id}
    assert not Thread.objects.filter(owner=colleague.user).exists()
    report = report_of(out.getvalue())
    assert report["re-runs: conversations"] == [2, 2, 0]
    assert report["re-runs: runs"] == [3, 3, 0]
    assert report["conversations"] == [1, 1, 0]
    assert report["feedback"] == [1, 1, 0]
    assert report["runner states"] == [1, 1, 0]
    assert report["account"] == ([1, 0, 1] if keeps else [1, 1, 0])
    assert "Not searched" in out.getvalue()


def test_a_user_who_deletes_a_conversation_deletes_staffs_copies_of_it(
    client: Client, staff: Client, colleague: Client
) -> None:
    canary = new_canary()
    run = ran(client, f"Forget {canary}")
    run_again(colleague, run_again(staff, run))
    kept = run_again(staff, ran(client, "another conversation"))
    answer = client.http.delete(f"/api/v1/agent/threads/{run.thread_id}")
    assert answer.status_code == 204
    assert tables_with(canary) == set()
    assert Thread.objects.filter(pk=kept.thread_id).exists()


def test_what_staff_run_again_of_their_own_goes_with_it_too(staff: Client) -> None:
    run = ran(staff, "mine")
    again = run_again(staff, run)
    assert staff.http.delete(f"/api/v1/agent/threads/{run.thread_id}").status_code == 204
    assert not Thread.objects.filter(pk=again.thread_id).exists()


def test_a_copy_goes_with_what_staff_do_to_their_own_and_leaves_the_source(
    client: Client, staff: Client
) -> None:
    run = ran(client, "mine")
    again = run_again(staff, run)
    erased = erase_user(staff.user.pk)
    assert (erased.threads, erased.copies) == (1, 0)
    assert not ThreadCopy.objects.filter(thread_id=again.thread_id).exists()
    assert Run.objects.filter(pk=run.pk).exists()


def test_what_is_erased_meanwhile_is_not_copied(client: Client, staff: Client) -> None:
    run = ran(client, "soon gone")
    asked = requests.load(
        b'{"messages":[{"role":"user","content":"soon gone"}],"model":"demo","dialect":"text",'
        b'"request_id":"r"}'
    )
    erase_user(client.user.pk)
    with pytest.raises(NotFound):
        run_sync(
            submit.start_run(asked, owner_id=staff.user.pk, thread_id=uuid4(), copied_from=run.thread_id)
        )
    assert not Thread.objects.filter(owner=staff.user).exists()


def test_an_account_that_was_deleted_otherwise_is_erased_by_its_id(
    client: Client, staff: Client
) -> None:
    canary = new_canary()
    run, user_id = ran(client, canary), client.user.pk
    run_again(staff, run)
    EventBatch.objects.filter(run_id=run.pk).delete()  # else these go with their days
    client.user.delete()
    assert tables_with(canary)
    call_command("erase_user", str(user_id), stdout=StringIO())
    assert tables_with(canary) == set()
    with pytest.raises(CommandError, match="There is no user"):
        call_command("erase_user", str(user_id), stdout=StringIO())


def test_copies_from_before_they_were_recorded_are_found_by_their_mark(
    client: Client, staff: Client, colleague: Client
) -> None:
    run = ran(client, "before", metadata={"rerun_of": "no id"})
    copy = run_again(staff, run)
    own = run_again(staff, copy)
    last = run_again(colleague, own)
    made = ThreadCopy.objects.filter(thread_id__in=[copy.thread_id, own.thread_id, last.thread_id])
    recorded = set(made.values_list("thread_id", "source_id", "owner_id"))
    assert len(recorded) == 6
    made.delete()
    found: str = importlib.import_module("conversations.migrations.0018_thread_copies")._FIND
    with connection.cursor() as cursor:
        cursor.execute(found + " ON CONFLICT DO NOTHING")
    assert set(made.values_list("thread_id", "source_id", "owner_id")) == recorded
    assert erase_user(client.user.pk) != ErasedCounts()
    assert not Thread.objects.filter(pk__in=[copy.thread_id, own.thread_id, last.thread_id]).exists()


def test_a_live_run_of_a_copy_is_ended_first(
    client: Client, staff: Client, scripted: Callable[..., Any]
) -> None:
    run = ran(client, "Say much")
    Run.objects.filter(pk=run.pk).update(request=run.request | {"model": scripted("endless").name})
    accepted = run_sync(rerun(run.pk, by=staff.user.pk, version_id=None))
    staff.wait_for(accepted.run_id.hex, "running")
    erase_user(client.user.pk)
    assert staff.http.get(f"/api/v1/agent/runs/{accepted.run_id.hex}").status_code == 404
    assert not Thread.objects.filter(pk=UUID(str(accepted.thread_id))).exists()
