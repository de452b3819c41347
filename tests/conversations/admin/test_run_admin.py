"""Runs and threads in admin: seen whole, cancelled, never edited."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.auth import get_user_model
from django.db import connection, transaction
from django.test import Client as Browser
from django.utils.html import escape

from conversations.models import Run
from conversations.runs import metadata_search
from prompts.models import Prompt
from prompts.wordings import staff_actions
from tests.support.admin_pages import cookie
from tests.support.client import Client, ScriptedModel, reply
from tests.support.fakes.fake_model import FakeModel

pytestmark = pytest.mark.once


@pytest.fixture
def staff() -> Browser:
    """A signed-in superuser's browser."""
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


def test_a_run_page_shows_the_system_message_with_the_clients_tools(
    client: Client, staff: Browser
) -> None:
    tool = {"name": "get_weather", "description": "Weather <b>", "parameters": {"type": "object"}}
    said = {"id": "1", "role": "user", "content": "hi"}
    given = {"threadId": str(uuid4()), "runId": "r", "messages": [said], "tools": [tool]}
    response = client.http.post("/api/v1/agent/runs", json=given | {"forwardedProps": {"model": "demo"}})
    run_id = UUID(response.json()["taskId"])
    client.wait_for(run_id.hex, "completed")
    page = staff.get(f"/admin/conversations/run/{run_id}/change/").content.decode()
    assert "&lt;!-- TOOLS_START --&gt;\n- get_weather: Weather &lt;b&gt;\n  - args_schema:" in page
    version = Prompt.objects.get(kind="agent_system", is_active=True).active_version
    assert version is not None
    assert version.content[:30] in page


def test_a_run_page_shows_the_system_message_as_the_model_received_it(
    make_client: Callable[..., Client],
    staff: Browser,
    provider: FakeModel,
    scripted: Callable[..., ScriptedModel],
) -> None:
    asked = f"told-{uuid4().hex[:8]}"
    prompt = Prompt.objects.create(name=uuid4().hex, kind="agent_system")
    wording = r"On {{ date }} help {{ user.name | them }} in {{ context.town | Rome }}. \{{ date }}"
    version = staff_actions.save_version(prompt, wording, author=None)
    given = {
        "threadId": str(uuid4()),
        "runId": "r",
        "messages": [{"id": "1", "role": "user", "content": "hi"}],
        "context": [{"description": "Town", "value": "Oslo"}],
        "state": {"basket": ["milk"]},
        "forwardedProps": {"model": scripted(asked).name},
    }
    headers = {"X-Prompt-Version": str(version.pk)}
    staffed = make_client(is_staff=True)
    response = staffed.http.post("/api/v1/agent/runs", json=given, headers=headers)
    run_id = UUID(response.json()["taskId"])
    staffed.wait_for(run_id.hex, "completed")
    run = Run.objects.get(pk=run_id)
    (request,) = provider.requests_for(asked)
    told = request.body["messages"][0]["content"]
    assert f"On {run.created_at:%Y-%m-%d} help " in told
    assert "in Oslo. {{ date }}" in told
    assert "milk" in told
    page = staff.get(f"/admin/conversations/run/{run_id}/change/").content.decode()
    assert f'<pre class="whitespace-pre-wrap">{escape(told)}</pre>' in page
    Run.objects.filter(pk=run_id).update(prompt_values=None)
    page = staff.get(f"/admin/conversations/run/{run_id}/change/").content.decode()
    assert "did not record what stood for the variables" in page


def test_metadata_is_told_by_the_run_found_by_staff_and_exported(client: Client, staff: Browser) -> None:
    """Seed 002: `metadata` is for reconciliation."""
    order, number, quoted = f"client-run {uuid4()}", uuid4().int % 10**12, f'"{uuid4().hex}\\'
    metadata = {"client": "app", "client_run_id": order, "at": {"deep": [number]}, "三": quoted}
    accepted = client.start("深蹲", metadata=metadata)
    client.watch(accepted["run_id"])
    assert client.run(accepted["run_id"])["metadata"] == metadata
    plain = client.start("深蹲", metadata=None)
    assert client.run(plain["run_id"])["metadata"] == {}
    for term in (order, str(number), quoted):
        listed = staff.get("/admin/conversations/run/", {"q": f" {term} "}).context["cl"].result_list
        assert [run.pk.hex for run in listed] == [accepted["run_id"]]
    for term in (order[:-1], "client_run_id", "$.**", f"{number}0"):
        assert not staff.get("/admin/conversations/run/", {"q": term}).context["cl"].result_list
    page = f"/admin/conversations/thread/{accepted['conversation_id']}/export-json/"
    exported = client.http.get(page, headers=cookie(staff))
    assert [one["run"]["metadata"] for one in exported.json()["messages"]] == [metadata] * 3


def test_a_search_by_metadata_and_by_the_clients_ids_finds_both(client: Client, staff: Browser) -> None:
    term = f"order-{uuid4()}"
    told = client.start("深蹲", metadata={"order": term})
    body = {"model": "demo", "text": "深蹲"}
    named = client.http.post("/api/v1/agent/runs", json=body, headers={"X-Request-Id": term})
    listed = staff.get("/admin/conversations/run/", {"q": term}).context["cl"].result_list
    assert [run.pk.hex for run in listed] == [named.json()["run_id"], told["run_id"]]


def test_the_search_by_metadata_reads_its_index() -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(f"EXPLAIN {metadata_search._WITH}", (metadata_search._path("x"),))
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "Bitmap Index Scan on run_by_metadata" in plan, plan


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
