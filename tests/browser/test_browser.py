"""Admin and the API's pages in a real Chromium, as staff use them.

The browser must find everything on our server: a request to any other host fails the test, and so
does a word on the console.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from uuid import UUID, uuid4

import pytest
from playwright.sync_api import Browser, expect

from conversations.models import Run
from prompts.models import Prompt, PromptKind
from prompts.wordings import staff_actions
from tests.browser.visits import KEY, Visit
from tests.support.client import Client, ScriptedModel, reply
from tests.support.fakes.fake_model import TEXT, FakeModel
from tests.support.openapi_operations import OPERATIONS


def test_an_endpoint_and_a_model_are_entered_and_the_next_run_streams_from_them(
    visit: Visit, client: Client, provider: FakeModel
) -> None:
    name = f"b{uuid4().hex[:10]}"
    page = visit.go("/admin/prompts/endpoint/add/")
    page.locator("[name=name]").fill(name)
    page.locator("[name=provider]").fill("fake")
    page.locator("[name=base_url]").fill(provider.base_url)
    page.locator("[name=key]").fill(KEY)
    visit.picture("endpoint-filled")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("was added successfully")).to_be_visible()
    visit.picture("endpoints")
    page.get_by_role("link", name=name).first.click()
    expect(page.get_by_text("sk-b***0123")).to_be_visible()
    visit.picture("endpoint")

    page = visit.go("/admin/prompts/modelmapping/add/")
    page.locator("[name=key]").fill(name)
    page.get_by_text(re.compile("Add another", re.IGNORECASE)).first.click()
    page.locator("[name=candidates-0-endpoint]").select_option(label=name)
    page.locator("[name=candidates-0-model]").fill("gpt-of-the-browser")
    visit.picture("mapping-filled")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("was added successfully")).to_be_visible()
    visit.picture("mappings")

    accepted = client.start("hello", model=f"global:{name}")
    frames = client.watch(accepted["run_id"])
    assert reply(frames) == "".join(TEXT)
    assert frames[-1].event == "completed"
    (asked,) = provider.requests_for("gpt-of-the-browser")
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    visit.go(f"/admin/conversations/run/{Run.objects.get(pk=accepted['run_id']).pk}/change/")
    visit.picture("run-of-the-model")


@pytest.fixture
def system_prompt(chromium: Browser) -> Iterator[Prompt]:
    """The active system prompt, with the version that was active made so again."""
    active = Prompt.objects.select_related("active_version").filter(is_active=True)
    prompt = active.get(kind=PromptKind.AGENT_SYSTEM)
    before = prompt.active_version
    assert before is not None
    yield prompt
    staff_actions.activate_version(before, by=None)


def test_a_new_wording_is_saved_and_activated_and_the_next_run_names_it(
    visit: Visit, client: Client, system_prompt: Prompt
) -> None:
    page = visit.go(f"/admin/prompts/prompt/{system_prompt.pk}/change/")
    content = page.locator("[name=content]")
    content.fill(f"{content.input_value()}\n\n# Closing\n- End with one next step. ({uuid4().hex[:6]})")
    page.locator("[name=note]").fill("Ask for a next step.")
    page.get_by_role("button", name="Save and activate").click()
    expect(page.get_by_text("It replaces version")).to_be_visible()
    visit.picture("activate")
    number = system_prompt.versions.latest("number").number
    assert number not in _versions_used(client)
    page.get_by_role("button", name=f"Activate version {number}").click()
    expect(page.get_by_text(f"Version {number} is active")).to_be_visible()
    page.get_by_role("heading", name="Versions").scroll_into_view_if_needed()
    visit.picture("prompt")
    assert number in _versions_used(client)


def _versions_used(client: Client) -> list[int]:
    run_id = client.start()["run_id"]
    client.watch(run_id)
    return [used["number"] for used in Run.objects.get(pk=run_id).prompt_versions]


def test_a_run_is_seen_in_its_list_and_on_its_page_with_status_and_timeline(
    visit: Visit, client: Client
) -> None:
    accepted = client.start("练背有什么动作？")
    answer = reply(client.watch(accepted["run_id"]))
    page = visit.go(f"/admin/conversations/run/?q={accepted['run_id']}")
    visit.picture("runs")
    page.locator("#result_list a[href*='/change/']").first.click()
    timeline = page.locator("#timeline")
    for event in ("run.queued", "tool.call.completed", "message.delta", "run.completed"):
        expect(timeline.get_by_text(event, exact=True)).to_be_visible()
    expect(timeline.get_by_text(answer.splitlines()[0]).first).to_be_visible()
    visit.picture("run")
    timeline.scroll_into_view_if_needed()
    visit.picture("run-timeline")
    visit.go(f"/admin/conversations/thread/{accepted['conversation_id']}/change/")
    expect(page.get_by_text("练背有什么动作？").first).to_be_visible()
    visit.picture("thread")


def test_a_running_run_is_cancelled_after_a_question(
    visit: Visit, client: Client, scripted: Callable[..., ScriptedModel]
) -> None:
    run_id = client.start("say much", model=scripted("endless").name)["run_id"]
    client.watch(run_id, stop_after=6)
    page = visit.go(f"/admin/conversations/run/{UUID(run_id)}/change/")
    page.get_by_role("link", name="Cancel run").click()
    expect(page.get_by_text(f"Cancel run {run_id}")).to_be_visible()
    visit.picture("cancel")
    assert client.run(run_id)["status"] == "running"
    page.get_by_role("button", name="Cancel the run").click()
    expect(page.get_by_text("the run ends within two seconds")).to_be_visible()
    client.wait_for(run_id, "cancelled", seconds=3)
    page.reload()
    expect(page.locator("#timeline").get_by_text("run.failed", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="Cancel run")).to_have_count(0)
    visit.picture("cancelled")


def test_the_api_documentation_shows_every_operation(visit: Visit) -> None:
    page = visit.go("/api/docs/")
    expect(page.locator(".opblock")).to_have_count(len(OPERATIONS))
    for operation in OPERATIONS:
        method, path = operation.split()
        shown = page.locator(f".opblock-{method.lower()} [data-path='{path}']")
        expect(shown).to_be_visible()
    visit.picture("docs")


def test_an_operation_of_the_api_documentation_shows_its_examples_with_references_resolved(
    visit: Visit,
) -> None:
    page = visit.go("/api/docs/")
    page.locator(".opblock-post [data-path='/api/v1/agent/runs']").click()
    opened = page.locator(".opblock.is-open")
    expect(opened.get_by_text('"Which exercises train the chest?"').first).to_be_visible()
    accepted = opened.locator(".response[data-code='202']")  # of a schema that the operation only names
    expect(accepted).to_contain_text('"conversation_id"')
    visit.picture("operation")
