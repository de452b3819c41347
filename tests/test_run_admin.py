"""Runs and threads in admin: seen whole, cancelled, never edited."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client as Browser

from conversations.models import Run
from tests.client import Client, reply


@pytest.fixture
def staff() -> Browser:
    """A signed-in superuser's browser."""
    from uuid import uuid4

    user = get_user_model().objects.create_superuser(username=f"admin-{uuid4().hex}", password="x")
    browser = Browser()
    browser.force_login(user)
    return browser


def test_a_run_page_shows_status_timings_tokens_and_the_timeline(client: Client, staff: Browser) -> None:
    accepted = client.start("练背有什么动作？")
    frames = client.watch(accepted["run_id"])
    run = Run.objects.get(pk=accepted["run_id"])
    page = staff.get(f"/admin/conversations/run/{run.pk}/change/").content.decode()
    for event in ("run.queued", "run.started", "tool.call.started", "model.routed", "run.completed"):
        assert event in page
    assert reply(frames)[:20] in page
    assert str(run.output_tokens) in page
    listed = staff.get("/admin/conversations/run/").content.decode()
    assert run.id.hex in listed


def test_a_thread_page_shows_its_messages(client: Client, staff: Browser) -> None:
    accepted = client.start("深蹲怎么做？")
    answer = reply(client.watch(accepted["run_id"]))
    page = staff.get(
        f"/admin/conversations/thread/{accepted['conversation_id']}/change/"
    ).content.decode()
    assert "深蹲怎么做？" in page
    assert answer[:20] in page


def test_admin_cancels_a_running_run(
    client: Client, staff: Browser, scripted: Callable[..., Any]
) -> None:
    accepted = client.start("say much", model=scripted("endless").name)
    run = Run.objects.get(pk=accepted["run_id"])
    client.watch(accepted["run_id"], stop_after=6)
    asked = staff.get(f"/admin/conversations/run/{run.pk}/cancel/")
    assert "Cancel the run" in asked.content.decode()
    assert client.run(accepted["run_id"])["status"] == "running"
    assert staff.post(f"/admin/conversations/run/{run.pk}/cancel/").status_code == 302
    client.wait_for(accepted["run_id"], "cancelled", seconds=3)


@pytest.mark.parametrize("kind", ["run", "thread"])
def test_runs_and_threads_cannot_be_added_changed_or_deleted(
    client: Client, staff: Browser, kind: str
) -> None:
    accepted = client.start()
    client.watch(accepted["run_id"])
    run = Run.objects.get(pk=accepted["run_id"])
    row = run.pk if kind == "run" else run.thread_id
    base = f"/admin/conversations/{kind}"
    assert staff.get(f"{base}/add/").status_code == 403
    assert staff.post(f"{base}/{row}/change/", {"title": "x", "status": "failed"}).status_code == 403
    assert staff.post(f"{base}/{row}/delete/", {"post": "yes"}).status_code == 403


def test_staff_without_rights_see_nothing(client: Client) -> None:
    user = get_user_model().objects.create_user(username=f"s-{client.user.pk}", is_staff=True)
    browser = Browser()
    browser.force_login(user)
    assert browser.get("/admin/conversations/run/").status_code == 403
