"""Conversations in admin: read whole, found, judged, drawn, run again, and taken along as a file."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4
from xml.etree import ElementTree

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client as Browser
from django.test.utils import CaptureQueriesContext

from conversations import events
from conversations.admin import filters
from conversations.cards.html import card_html
from conversations.events import RunEvent
from conversations.models import LIVE, Feedback, Message, Run, Thread
from conversations.runs.timeline import RunTime, Span, measure_run, render_svg
from prompts.models import Prompt, PromptKind, PromptVersion
from prompts.wordings import staff_actions
from tests.support.admin_pages import cookie
from tests.support.client import Client, ScriptedModel
from tests.support.conversation import Conversation
from tests.support.fakes.fake_model import FakeModel
from tests.support.pictures import picture

pytestmark = pytest.mark.once

THREADS = "/admin/conversations/thread/"
RUNS = "/admin/conversations/run/"


@pytest.fixture
def staff() -> Browser:
    """A signed-in superuser's browser."""
    user = get_user_model().objects.create_superuser(username=f"admin-{uuid4().hex}", password="x")
    browser = Browser()
    browser.force_login(user)
    return browser


@pytest.fixture
def reader() -> Browser:
    """Somebody who may look at conversations and change nothing."""
    user = get_user_model().objects.create_user(f"reader-{uuid4().hex}", is_staff=True)
    some = ("view_thread", "view_run")
    user.user_permissions.set(Permission.objects.filter(codename__in=some))
    browser = Browser()
    browser.force_login(user)
    return browser


def done(client: Client, text: str = "Which exercises train my chest?", **more: Any) -> Run:
    accepted = client.start(text, **more)
    client.wait_for(accepted["run_id"], "completed", "failed")
    found: Run = Run.objects.get(pk=accepted["run_id"])
    return found


def page_of(browser: Browser, path: str) -> str:
    answer = browser.get(path)
    assert answer.status_code == 200, answer
    return answer.content.decode()


def listed(browser: Browser, base: str, **asked: Any) -> set[str]:
    """The ids that a list shows."""
    answer = browser.get(base, asked)
    assert answer.status_code == 200, answer
    return set(re.findall(rf"{base}([0-9a-f-]{{36}})/change/", answer.content.decode()))


# --- the transcript -----------------------------------------------------------------------------


def test_a_conversation_is_read_with_its_tools_stages_files_cards_and_feedback(
    client: Client, reader: Browser
) -> None:
    sent = client.http.post(
        "/api/v1/agent/attachments", files={"file": ("a.png", picture("PNG"), "image/png")}
    ).json()
    image = {"type": "binary", "mimeType": "image/png", "url": sent["url"]}
    thread_id = str(uuid4())
    for run_id, content in (
        ("one", "demo.card: <b>squats</b>"),
        ("two", [{"type": "text", "text": "And this?"}, image]),
    ):
        body = {
            "threadId": thread_id,
            "runId": run_id,
            "messages": [{"id": run_id, "role": "user", "content": content}],
            "forwardedProps": {"model": "demo"},
        }
        accepted = client.http.post("/api/v1/agent/runs", json=body)
        assert accepted.status_code == 202, accepted.text
        client.wait_for(run_id, "completed")
    judged = {"score": -1, "comment": "Too <i>long</i>", "tags": ["long"]}
    assert client.http.post("/api/v1/agent/runs/one/feedback", json=judged).status_code == 201
    page = page_of(reader, f"{THREADS}{thread_id}/change/")
    assert "demo.card: &lt;b&gt;squats&lt;/b&gt;" in page
    assert "gymbro.exercise.search" in page
    assert "told-card success" in page
    assert "Suggested exercises" in page
    assert "Too &lt;i&gt;long&lt;/i&gt;" in page
    assert re.search(r"tool_execution \d+ ms", page)
    (url,) = set(re.findall(r'<img src="(/storage/v1/[^"]+)"', page))
    assert client.http.get(url.replace("&amp;", "&")).content == picture_again(client, sent["url"])
    for run in Run.objects.filter(thread_id=thread_id):
        assert f"{run.input_tokens} → {run.output_tokens}" in page


def picture_again(client: Client, url: str) -> bytes:
    return client.http.get(url[url.index("/storage/") :]).content


def test_a_long_conversation_is_read_page_by_page_with_as_many_queries_as_a_short_one(
    client: Client, staff: Browser
) -> None:
    short, long = Conversation(client.user), Conversation(client.user)
    short.say("hello")
    long.say_much([f"message {number}." for number in range(1, 252)])
    page_of(staff, f"{THREADS}{short.id}/change/")
    counts = []
    for one in (short, long):
        with CaptureQueriesContext(
            connection,
        ) as made:
            page = page_of(staff, f"{THREADS}{one.id}/change/")
        counts.append(len(made))
    assert counts[0] == counts[1]
    assert "message 251." in page
    assert "message 151." not in page
    (before,) = re.findall(r"\?before=(\d+)", page)
    older = page_of(staff, f"{THREADS}{long.id}/change/?before={before}")
    assert "message 151." in older
    assert "message 251." not in older
    for nonsense in ("x", "-1", "99999999999", "٣"):
        assert "message 251." in page_of(staff, f"{THREADS}{long.id}/change/?before={nonsense}")


def test_many_runs_are_read_with_as_many_queries_as_one(client: Client, staff: Browser) -> None:
    run = done(client)
    path = f"{THREADS}{run.thread_id}/change/"
    page_of(staff, path)
    with CaptureQueriesContext(connection) as few:
        page_of(staff, path)
    for _ in range(3):
        again = done(client, conversation_id=str(run.thread_id))
        client.http.post(f"/api/v1/agent/runs/{again.pk.hex}/feedback", json={"score": 1})
    with CaptureQueriesContext(connection) as many:
        page_of(staff, path)
    assert len(many) == len(few)


def test_every_kind_of_node_is_drawn_and_escaped() -> None:
    evil = "<script>x</script>"
    nodes: list[dict[str, Any]] = [
        {"type": "text", "content": evil, "role": "title"},
        {"type": "badge", "label": evil, "status": 'x" onload="y'},
        {"type": "icon", "name": "star"},
        {"type": "image", "url": "https://example.com/a.png", "alt": evil},
        {"type": "image", "url": "javascript:alert(1)", "alt": "bad"},
        {"type": "divider"},
        {"type": "key_value", "items": [{"label": "k", "value": evil}]},
        {"type": "list", "ordered": True, "items": [{"title": evil, "badge": {"label": "b"}}]},
        {"type": "table", "columns": ["a"], "rows": [[evil]]},
        {"type": "progress", "value": 0.5, "label": evil},
        {"type": "button", "label": evil, "action": {"type": "copy", "text": "x"}},
        {"type": "grid", "children": [{"type": "text", "content": "inner"}]},
    ]
    drawn = card_html(
        {"version": "2.0", "status": "error", "root": {"type": "stack", "children": nodes}}
    )
    assert drawn is not None
    assert "<script" not in drawn
    assert "onload" not in drawn
    assert "javascript:" not in drawn
    assert drawn.count("&lt;script&gt;") == 8
    assert 'href="https://example.com/a.png"' in drawn
    assert "inner" in drawn
    assert card_html(None) is None


# --- lists, filters, search ---------------------------------------------------------------------


@pytest.fixture
def two(client: Client, make_client: Callable[..., Client], scripted: Any) -> tuple[Run, Run]:
    """A good run of a trial prompt with good feedback, and a failed one of another user."""
    good = done(client)
    client.http.post(f"/api/v1/agent/runs/{good.pk.hex}/feedback", json={"score": 1, "comment": "!"})
    other = make_client()
    return good, done(other, "hello", model=scripted("status-401").name)


def test_runs_and_conversations_are_filtered(two: tuple[Run, Run], staff: Browser) -> None:
    good, bad = two
    version = good.prompt_versions[0]
    expected: list[tuple[dict[str, Any], Run, Run]] = [
        ({"user": str(good.owner_id)}, good, bad),
        ({"user": good.owner.username}, good, bad),
        ({"user": bad.owner.username}, bad, good),
        ({"status": "failed"}, bad, good),
        ({"status": "completed"}, good, bad),
        ({"model": bad.model}, bad, good),
        ({"model": bad.model.removeprefix("global:")}, bad, good),
        ({"error_code": "any"}, bad, good),
        ({"error_code": "provider_auth_error"}, bad, good),
        ({"feedback": "good"}, good, bad),
        ({"feedback": "comment"}, good, bad),
    ]
    for asked, shown, hidden in expected:
        runs, threads = listed(staff, RUNS, **asked), listed(staff, THREADS, **asked)
        assert str(shown.pk) in runs, asked
        assert str(hidden.pk) not in runs, asked
        assert str(shown.thread_id) in threads, asked
        assert str(hidden.thread_id) not in threads, asked
    for form in (str(version["version_id"]), f"{version['name']} v{version['number']}", version["name"]):
        assert str(good.pk) in listed(staff, RUNS, prompt_version=form, user=good.owner.username)
    assert listed(staff, RUNS, prompt_version="999999999") == set()
    assert listed(staff, RUNS, feedback="bad", user=good.owner.username) == set()
    day = good.created_at.date().isoformat()
    mine = {"user": good.owner.username}
    assert str(good.pk) in listed(staff, RUNS, created_at_from=day, **mine)
    assert listed(staff, RUNS, created_at_to="2020-01-01", **mine) == set()


def test_a_conversation_fits_where_one_run_of_it_fits_every_filter(
    two: tuple[Run, Run], staff: Browser
) -> None:
    good, bad = two
    Run.objects.filter(pk=bad.pk).update(thread=good.thread, owner=good.owner, thread_seq=99)
    mine = {"user": good.owner.username}
    thread = str(good.thread_id)
    assert thread in listed(staff, THREADS, status="failed", model=bad.model, **mine)
    assert thread in listed(staff, THREADS, status="completed", feedback="good", **mine)
    assert listed(staff, THREADS, status="completed", model=bad.model, **mine) == set()
    assert listed(staff, THREADS, status="failed", feedback="good", **mine) == set()


def test_filters_look_at_so_many_runs_before_the_chosen_days(
    client: Client, staff: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filters, "WINDOW", 1)
    old, *new = (done(client) for _ in range(3))
    Run.objects.filter(pk=old.pk).update(created_at=datetime(2020, 2, 2, tzinfo=UTC))
    asked = {"user": client.user.username, "status": "completed"}
    assert listed(staff, RUNS, **asked) == {str(run.pk) for run in new}
    assert listed(staff, RUNS, **asked, created_at_to="2020-02-02") == {str(old.pk)}
    before = {"created_at__lt": "2020-02-03T00:00:00+00:00"}
    assert listed(staff, RUNS, **asked, **before) == {str(old.pk)}


@pytest.mark.parametrize("name", ["user", "status", "model", "prompt_version", "error_code", "feedback"])
def test_what_nobody_would_type_is_no_error(staff: Browser, name: str) -> None:
    for value in ("\x00", "'; --", "%", "x" * 3000, "𝕏 v12345678901234567890", "{}"):
        for base in (RUNS, THREADS):
            assert staff.get(base, {name: value}).status_code in (200, 400)


def test_a_run_is_found_by_any_of_its_ids(client: Client, staff: Browser) -> None:
    run = done(client)
    for term in (run.pk.hex, str(run.pk), str(run.thread_id), run.request_id, str(run.owner_id)):
        assert listed(staff, RUNS, q=term) == {str(run.pk)}, term
    assert listed(staff, RUNS, q="nothing like it") == set()


def test_a_conversation_is_found_by_what_was_said_in_it(client: Client, staff: Browser) -> None:
    word = f"zq{uuid4().hex[:10]}"
    one, two = Conversation(client.user), Conversation(client.user)
    one.say(f"Does the {word} squat help?")
    two.say("完全不同的内容", role="assistant")
    assert listed(staff, THREADS, q=word) == {one.id}
    assert listed(staff, THREADS, q=f"squat {word[:8]}") == {one.id}
    assert two.id in listed(staff, THREADS, q="不同的内")
    assert listed(staff, THREADS, q=f"{word} absent") == set()
    assert listed(staff, THREADS, q=one.id) == {one.id}
    assert listed(staff, THREADS, q=client.user.username) == {one.id, two.id}


def test_lists_never_count_and_their_queries_do_not_grow(client: Client, staff: Browser) -> None:
    for base in (RUNS, THREADS):
        staff.get(base)
        with CaptureQueriesContext(connection) as few:
            staff.get(base)
        for _ in range(3):
            done(client)
        with CaptureQueriesContext(connection) as many:
            staff.get(base)
        assert len(many) == len(few)
        for query in many.captured_queries:
            assert "COUNT(" not in query["sql"].upper()
            assert "SELECT DISTINCT" not in query["sql"].upper()


# --- the run's time -----------------------------------------------------------------------------


def timed(*facts: tuple[int, events.Fact]) -> list[RunEvent]:
    return [RunEvent(seq, 1_000 + at, fact) for seq, (at, fact) in enumerate(facts, 1)]


RUN = timed(
    (0, events.RunQueued(0)),
    (40, events.RunStarted(1, 9_000)),
    (41, events.StageStarted("intent")),
    (45, events.StageCompleted("intent", 4)),
    (46, events.StageStarted("execution")),
    (50, events.ModelRouted("p", "m")),
    (100, events.ReasoningDelta("a", "hm")),
    (140, events.ReasoningDelta("a", "so")),
    (150, events.ToolCallStarted("c1", "search<1>")),
    (250, events.ToolCallCompleted("c1", "search<1>", False, 100)),
    (400, events.MessageDelta("a", "Hello")),
    (900, events.MessageDelta("a", "!")),
    (902, events.ModelCompleted("p", "m")),
    (905, events.StageCompleted("execution", 859)),
    (910, events.RunCompleted("stop")),
)


def test_a_runs_time_is_told_by_its_events() -> None:
    assert measure_run(RUN) == RunTime(
        (
            Span("queue", "queue wait", 0, 40),
            Span("stage", "stage intent", 41, 45),
            Span("stage", "stage execution", 46, 905),
            Span("model", "model step 1", 50, 150),
            Span("reasoning", "reasoning", 100, 140),
            Span("failed", "search<1>", 150, 250),
            Span("model", "model step 2", 250, 902),
            Span("answer", "answer", 400, 900),
        ),
        910,
        400,
    )
    live = measure_run(RUN[:9], now_ms=3_000)
    assert live is not None
    assert live.total == 2_000
    assert live.spans[-1] == Span("tool", "search<1> (waits)", 150, 2_000)
    assert measure_run([]) is None


def test_the_drawing_is_sound_svg_within_its_frame() -> None:
    drawn = render_svg(measure_run(RUN))
    assert drawn is not None
    root = ElementTree.fromstring(drawn)
    bars = root.findall(".//rect")
    assert len(bars) == 8
    for bar in bars:
        assert 190 <= float(bar.attrib["x"]) <= 930
        assert float(bar.attrib["x"]) + float(bar.attrib["width"]) <= 933
    assert "search<1>: 100 ms from 150 ms" in [title.text for title in root.iter("title")]
    assert render_svg(measure_run(RUN[:1])) is not None
    assert render_svg(None) is None


def test_a_runs_page_shows_where_its_time_went(client: Client, reader: Browser) -> None:
    run = done(client)
    page = page_of(reader, f"{RUNS}{run.pk}/change/")
    drawn = page[page.index('<svg class="run-timeline"') :]
    for label in ("queue wait", "stage execution", "gymbro.exercise.search", "answer", "first token"):
        assert label in drawn[: drawn.index("</svg>")], label


# --- running again ------------------------------------------------------------------------------


@pytest.fixture
def trial() -> PromptVersion:
    prompt = Prompt.objects.create(name=f"Again {uuid4().hex[:8]}", kind=PromptKind.AGENT_SYSTEM)
    return staff_actions.save_version(prompt, f"Speak like {uuid4().hex}.", author=None)


def test_a_run_is_run_again_with_another_prompt_and_the_original_stays(
    client: Client,
    staff: Browser,
    scripted: Callable[..., ScriptedModel],
    provider: FakeModel,
    trial: PromptVersion,
) -> None:
    name = f"again-{uuid4().hex[:8]}"
    model = scripted(name).name
    first = done(client, "My name is Ann.", model=model)
    second = done(client, "Who am I?", model=model, conversation_id=str(first.thread_id))
    before = {row.pk: row for row in Message.objects.filter(thread=first.thread)}
    path = f"{RUNS}{second.pk}/rerun/"
    assert trial.prompt.name in page_of(staff, path)
    assert Run.objects.filter(model=model).count() == 2
    answer = staff.post(path, {"version": trial.pk})
    assert answer.status_code == 302
    (new_id,) = re.findall(r"/run/([0-9a-f-]{36})/change/", answer.headers["Location"])
    new = Run.objects.get(pk=new_id)
    assert new.thread_id != first.thread_id
    assert new.owner_id != first.owner_id
    assert new.request["metadata"]["rerun_of"] == second.pk.hex
    until = time.monotonic() + 30
    while new.status in LIVE and time.monotonic() < until:
        time.sleep(0.05)
        new.refresh_from_db()
    assert (new.status, new.prompt_versions[0]["version_id"]) == ("completed", trial.pk)
    asked = provider.requests_for(name)[-1].body["messages"]
    assert asked[0]["content"].startswith(trial.content)
    said = [message["content"] for message in asked if message["role"] == "user"]
    assert said == ["My name is Ann.", "Who am I?"]
    assert {row.pk: row for row in Message.objects.filter(thread=first.thread)} == before
    assert second.pk.hex in page_of(staff, f"{RUNS}{new.pk}/change/")


def test_running_again_needs_both_permissions(client: Client, reader: Browser) -> None:
    run = done(client)
    path = f"{RUNS}{run.pk}/rerun/"
    assert "Run again" not in page_of(reader, f"{RUNS}{run.pk}/change/")
    assert reader.get(path).status_code == 403
    assert reader.post(path).status_code == 403
    assert Run.objects.filter(request__metadata__rerun_of=run.pk.hex).count() == 0


# --- as a file ----------------------------------------------------------------------------------


def test_a_conversation_is_exported_whole_in_both_forms(client: Client, reader: Browser) -> None:
    run = done(client, "```\nIs `this` code?")
    conversation = Thread.objects.get(pk=run.thread_id)
    base = f"{THREADS}{conversation.pk}"
    for path, kind in (("export-json/", "json"), ("export-markdown/", "md")):
        answer = client.http.get(f"{base}/{path}", headers=cookie(reader))
        text = answer.text
        assert answer.status_code == 200, text
        named = answer.headers["content-disposition"]
        assert named == f'attachment; filename="conversation-{conversation.pk}.{kind}"'
        if kind == "json":
            whole = json.loads(text)
            assert whole["thread"]["owner"] == client.user.username
            assert [m["role"] for m in whole["messages"]] == ["user", "tool", "assistant"]
            said = Message.objects.filter(run=run, seq__isnull=False).order_by("seq")
            assert [m["content"] for m in whole["messages"]] == [m.content for m in said]
            assert whole["messages"][2]["run"]["status"] == "completed"
        else:
            assert text.startswith("# ``` Is `this` code?")
            assert "## 1. User" in text
            assert "gymbro.exercise.search" in text
            assert Message.objects.get(run=run, role="assistant").content in text


def test_a_long_export_has_every_message_once(client: Client, staff: Browser) -> None:
    long = Conversation(client.user)
    long.say_much([f"message {number}" for number in range(1, 452)])
    path = f"{THREADS}{long.id}/export-json/"
    answer = client.http.get(path, headers=cookie(staff))
    messages = answer.json()["messages"]
    assert [m["seq"] for m in messages] == list(range(1, 452))


def test_an_export_is_for_those_who_may_look(client: Client, staff: Browser) -> None:
    run = done(client)
    nobody = get_user_model().objects.create_user(f"nobody-{uuid4().hex}", is_staff=True)
    browser = Browser()
    browser.force_login(nobody)
    assert browser.get(f"{THREADS}{run.thread_id}/export-json/").status_code == 403
    assert staff.get(f"{THREADS}{uuid4()}/export-json/").status_code == 404
    assert staff.get(f"{THREADS}not-an-id/export-json/").status_code == 404


def test_feedback_is_seen_on_the_runs_page(client: Client, staff: Browser) -> None:
    run = done(client)
    Feedback.objects.create(run=run, user=client.user, score=-1, comment="<no>", tags=["slow"])
    page = page_of(staff, f"{RUNS}{run.pk}/change/")
    assert "-1 slow &lt;no&gt;" in page
    assert UUID(str(run.pk)) == run.pk
