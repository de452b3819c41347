"""Prompts, endpoints and the audit log in a real Chromium, with JavaScript and without."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.utils import timezone
from playwright.sync_api import Browser, Page, expect

from conversations.models import Spend
from prompts.models import Budget, Endpoint, Prompt, PromptKind
from prompts.wordings import releases, staff_actions
from tests.browser.visits import KEY, PASSWORD, WAIT_MS, Visit, keep
from tests.conftest import Server
from tests.support.client import Client
from tests.support.fakes.fake_model import FakeModel

WORDING = """# Who you are
You are a calm coach. You help {{ user.name | the person }} with their training.
Today is {{ weekday }}, {{ date }}; their time zone is {{ context.time_zone | UTC }}.

# How you answer
- Short sentences, no jargon.
- One exercise at a time.
- Ask when something hurts.
"""


@pytest.fixture
def prompt(staff: Any) -> Iterator[Prompt]:
    """A prompt of the agent's kind with three versions, the first two of them labelled; not in use."""
    made = Prompt.objects.create(name=f"Coach {uuid4().hex[:4]}", kind=PromptKind.AGENT_SYSTEM)
    one = staff_actions.save_version(made, WORDING, author=staff, note="The first wording.")
    second = WORDING.replace("Short sentences", "Short, kind sentences").replace(
        "- One exercise", "- Two exercises"
    )
    two = staff_actions.save_version(made, second, author=staff, note="Kinder.")
    third = second + "- End with one next step.\n"
    staff_actions.save_version(made, third, author=staff, note="Ask for a next step.")
    releases.move_label(made, "production", one, by=staff)
    releases.move_label(made, "staging", two, by=staff)
    yield made
    staff_actions.delete_prompt(made, by=None)


def test_the_editor_previews_what_is_typed_before_it_is_saved(visit: Visit, prompt: Prompt) -> None:
    page = visit.go(f"/admin/prompts/prompt/{prompt.pk}/change/")
    preview = page.locator("#prompt-preview")
    expect(preview.get_by_text("the account's first name")).to_be_visible()
    content = page.locator("[name=content]")
    content.fill("Hello {{ user.name }} and {{ nobody }}. <b>Bold</b>")
    expect(preview.locator("[data-part=message]")).to_contain_text(
        "Hello Ada and {{ nobody }}. <b>Bold</b>"
    )
    expect(preview.locator("[data-part=unknown]")).to_contain_text("nobody")
    expect(preview.locator("[data-part=message]")).to_contain_text("<!-- TOOLS_START -->")
    content.fill(WORDING)
    expect(preview.locator("[data-part=message]")).to_contain_text("You help Ada with their training.")
    preview.scroll_into_view_if_needed()
    visit.picture("preview")
    assert prompt.versions.count() == 3


def test_versions_are_compared_labelled_and_split(visit: Visit, prompt: Prompt) -> None:
    held = Prompt.objects.get(is_active=True, kind=PromptKind.AGENT_SYSTEM)
    before = held.active_version
    assert before is not None
    try:
        page = visit.go(f"/admin/prompts/prompt/{prompt.pk}/change/")
        page.get_by_role("link", name="Changes").first.click()
        expect(page.locator(".compared .came").first).to_be_visible()
        page.locator("[name=a]").fill("1")
        page.get_by_role("button", name="Compare").click()
        expect(page.locator("del").first).to_be_visible()
        visit.picture("compare")
        page.get_by_role("link", name="Back to the prompt").click()
        page.locator("[name=label]:visible").fill("production")
        page.get_by_role("button", name="Set label").click()
        expect(page.get_by_text("The label production now points to version 3.")).to_be_visible()
        page.get_by_role("link", name="Activate…").nth(1).click()
        visit.picture("activate-with-changes")
        page.get_by_role("button", name="Activate version 2").click()
        page.get_by_role("link", name="Split…").first.click()
        page.locator("[name=percent]").fill("20")
        visit.picture("split")
        page.get_by_role("button", name="Split", exact=True).click()
        expect(page.get_by_text("20 of 100 threads get version 3.")).to_be_visible()
        page.get_by_role("heading", name="Versions").scroll_into_view_if_needed()
        visit.picture("versions")
        visit.go("/admin/prompts/prompt/")
        expect(page.get_by_text("v2, and v3 for 20 %")).to_be_visible()
        visit.picture("prompts")
    finally:
        staff_actions.activate_version(before, by=None)


def test_an_endpoint_is_tested(visit: Visit, provider: FakeModel) -> None:
    endpoint = Endpoint.objects.create(
        name=f"e{uuid4().hex[:8]}", provider="fake", base_url=provider.base_url
    )
    staff_actions.rotate_secret(endpoint, KEY)
    page = visit.go(f"/admin/prompts/endpoint/{endpoint.pk}/change/")
    visit.picture("endpoint-form")
    page.get_by_role("link", name="Test connection").click()
    visit.picture("endpoint-question")
    page.get_by_role("button", name="Test connection").click()
    expect(page.get_by_role("button", name="Test again")).to_be_visible()
    visit.picture("endpoint-tested")


def test_the_audit_log_shows_who_changed_what(visit: Visit, prompt: Prompt, staff: Any) -> None:
    page = visit.go(f"/admin/audit/auditentry/?q={staff.username}")
    expect(page.get_by_text("label moved").first).to_be_visible()
    visit.picture("audit")
    page.locator("#result_list a[href*='/auditentry/']").first.click()
    expect(page.get_by_text("Before and after")).to_be_visible()
    visit.picture("audit-entry")
    visit.go("/admin/prompts/prompt/import/")
    visit.picture("import")
    visit.go("/admin/prompts/appsetting/")
    visit.picture("settings")


def test_an_analyst_sees_no_page_of_staff(tab: Page, server: Server) -> None:
    user = get_user_model().objects.create_user(
        f"analyst-{uuid4().hex[:8]}", password=PASSWORD, is_staff=True
    )
    user.groups.add(Group.objects.get(name="analyst"))
    seen = Visit(tab, server.url)
    seen.watch()
    page = seen.go("/admin/")
    page.get_by_label("Username").fill(user.username)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("link", name="Runs").first).to_be_visible()
    for name in ("Prompts", "Endpoints", "API tokens", "Users"):
        expect(page.get_by_role("link", name=name, exact=True)).to_have_count(0)
    seen.picture("analyst")
    tab.close()
    assert seen.wrongs == []


def test_without_javascript_a_prompt_is_edited_and_activated(
    chromium: Browser, server: Server, staff: Any, prompt: Prompt
) -> None:
    context = chromium.new_context(java_script_enabled=False, viewport={"width": 1280, "height": 800})
    context.set_default_timeout(WAIT_MS)
    page = context.new_page()
    page.goto(f"{server.url}/admin/")
    page.get_by_label("Username").fill(staff.username)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    page.goto(f"{server.url}/admin/prompts/prompt/{prompt.pk}/change/")
    keep(page, "no-javascript")
    page.locator("[name=content]").fill("Edited without a script.")
    page.get_by_role("button", name="Save and continue editing").click()
    expect(page.locator("#prompt-preview [data-part=message]")).to_contain_text(
        "Edited without a script."
    )
    page.get_by_role("link", name="Activate…").first.click()
    expect(page.get_by_role("button", name="Activate version 4")).to_be_visible()
    context.close()
    assert prompt.versions.latest("number").content == "Edited without a script."


def test_without_javascript_runs_are_filtered_and_opened(
    chromium: Browser, server: Server, staff: Any, client: Client
) -> None:
    accepted = client.start("深蹲怎么做？")
    client.watch(accepted["run_id"])
    context = chromium.new_context(java_script_enabled=False, base_url=server.url)
    context.set_default_timeout(WAIT_MS)
    page = context.new_page()
    try:
        page.goto("/admin/login/?next=/admin/conversations/run/")
        page.fill("[name=username]", staff.username)
        page.fill("[name=password]", PASSWORD)
        page.get_by_role("button", name="Log in").click()
        page.locator("[name=user]").fill(client.user.username)
        page.get_by_role("button", name="Apply Filters").click()
        rows = page.locator("#result_list tbody tr")
        expect(rows).to_have_count(1)
        rows.get_by_role("link").first.click()
        expect(page.get_by_text("Event timeline")).to_be_visible()
    finally:
        context.close()


def test_spending_stands_beside_what_budgets_leave(visit: Visit, staff: Any) -> None:
    today = timezone.localdate()
    Spend.objects.create(
        owner=staff, day=today, shard=0, runs=3, input_tokens=900, cost_usd=Decimal("1.5")
    )
    budget = Budget.objects.create(user=staff, usd_per_day=Decimal(1), tokens_per_month=1_000)
    try:
        page = visit.go(f"/admin/conversations/spend/?user={staff.username}")
        expect(page.get_by_role("heading", name="Budgets")).to_be_visible()
        expect(page.locator("tr.used-up", has_text=staff.username)).to_contain_text("$1.00 a day")
        own = page.locator("tr", has_text=staff.username)
        expect(own.filter(has_text="100 tokens a month").first).to_be_visible()
        visit.picture("spending")
        page.emulate_media(color_scheme="dark")
        visit.picture("spending-dark")
        page.get_by_role("link", name="Last month").click()
        expect(page.get_by_text("Nobody has spent anything in these days.")).to_be_visible()
    finally:
        budget.delete()


def test_on_a_phone_an_earlier_conversation_is_found(visit: Visit, staff: Any) -> None:
    page = visit.go("/chat/")
    page.set_viewport_size({"width": 390, "height": 800})
    expect(page.get_by_role("heading", name="What would you like to know?")).to_be_visible()
    page.get_by_label("Message").fill("Which exercises train my chest?")
    page.keyboard.press("Enter")
    expect(page.locator(".turn .feedback")).to_be_visible(timeout=WAIT_MS)
    page.get_by_role("button", name="New conversation").click()
    expect(page.locator(".turn")).to_have_count(0)
    page.get_by_role("button", name="Earlier").click()
    visit.picture("chat-phone")
    page.locator(".thread a").first.click()
    expect(page.locator(".turn .said")).to_be_visible()
    expect(page.locator(".thread a").first).to_be_hidden()
