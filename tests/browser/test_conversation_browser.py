"""Conversations and runs in admin, and a prompt version tried, in a real Chromium."""

from __future__ import annotations

import re
from typing import Any
from uuid import uuid4

from playwright.sync_api import expect

from conversations.models import Run
from prompts.models import Prompt, PromptKind
from prompts.wordings import staff_actions
from tests.browser.visits import Visit
from tests.support.client import Client
from tests.support.pictures import picture


def say(client: Client, thread_id: str, content: Any) -> Run:
    run_id = uuid4().hex
    body = {
        "threadId": thread_id,
        "runId": run_id,
        "messages": [{"id": run_id, "role": "user", "content": content}],
        "forwardedProps": {"model": "demo"},
    }
    assert client.http.post("/api/v1/agent/runs", json=body).status_code == 202
    client.wait_for(run_id, "completed")
    found: Run = Run.objects.get(client_run_id=run_id)
    return found


def test_a_conversation_is_read_filtered_drawn_and_run_again(visit: Visit, client: Client) -> None:
    thread_id = str(uuid4())
    file = {"file": ("a.png", picture("PNG"), "image/png")}
    url = client.http.post("/api/v1/agent/attachments", files=file).json()["url"]
    first = say(client, thread_id, "demo.think demo.card: leg day without machines")
    image = {"type": "binary", "mimeType": "image/png", "url": url}
    say(client, thread_id, [{"type": "text", "text": "What is this?"}, image])
    given = {"score": 1, "comment": "Just what I needed.", "tags": ["helpful"]}
    client.http.post(f"/api/v1/agent/runs/{first.pk.hex}/feedback", json=given)

    page = visit.go(f"/admin/conversations/thread/?q={client.user.username}")
    expect(page.locator("#result_list a[href*='/change/']").first).to_be_visible()
    visit.picture("admin-conversations")
    page.locator("#result_list a[href*='/change/']").first.click()
    transcript = page.locator("#transcript")
    expect(transcript.get_by_text("Just what I needed.")).to_be_visible()
    expect(transcript.locator(".told-card")).to_contain_text("Suggested exercises")
    transcript.locator("summary").first.click()
    expect(transcript.locator("pre").first).to_contain_text("leg day without machines")
    page.wait_for_function("() => document.querySelector('#transcript img').naturalWidth === 320")
    transcript.scroll_into_view_if_needed()
    visit.picture("admin-conversation")

    transcript.get_by_role("link", name=re.compile("^Run …")).first.click()
    expect(page.locator("svg.run-timeline")).to_contain_text("queue wait")
    page.locator("#drawn").scroll_into_view_if_needed()
    visit.picture("admin-run-drawn")
    page.get_by_role("link", name="Run again…").click()
    visit.picture("admin-run-again")
    page.get_by_role("button", name="Run again").click()
    expect(page.get_by_text("the original is untouched")).to_be_visible()
    visit.go(f"/admin/conversations/run/?user={client.user.username}&status=completed&feedback=good")
    expect(page.locator("#result_list tbody tr")).to_have_count(1)
    visit.picture("admin-runs-filtered")


def test_a_prompt_version_is_tried_from_its_page(visit: Visit, staff: Any) -> None:
    prompt = Prompt.objects.create(name=f"Tried {uuid4().hex[:8]}", kind=PromptKind.AGENT_SYSTEM)
    version = staff_actions.save_version(prompt, f"Speak like {uuid4().hex}.", author=None)
    page = visit.go(f"/admin/prompts/prompt/{prompt.pk}/change/")
    link = page.get_by_role("link", name="Try this version")
    assert link.get_attribute("href") == f"/chat/?prompt_version={version.pk}"
    page = visit.go(f"/chat/?prompt_version={version.pk}")
    expect(page.locator(".banner")).to_contain_text(f"{prompt.name} v1")
    expect(page.get_by_role("combobox", name="Model")).to_have_count(1)
    page.get_by_label("Message").fill("Which exercises train my chest?")
    page.keyboard.press("Enter")
    expect(page.locator(".turn .feedback")).to_be_visible()
    visit.picture("chat-trying")
    run = Run.objects.get(owner=staff)
    assert run.prompt_versions[0]["version_id"] == version.pk
