"""The chat page in a real Chromium: send, stream, stop, come back, attach, approve, compare, judge.

Nothing may stand on the console, so nothing on the page breaks its own content security policy.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.auth import get_user_model
from playwright.sync_api import Browser, Page, Request, expect

from conversations.models import Feedback, Interrupt, Message, Run
from prompts.models import ModelMapping
from tests.browser.visits import PASSWORD, WAIT_MS, Visit, sign_in
from tests.conftest import Server
from tests.support.client import Client, ScriptedModel
from tests.support.fakes.fake_model import TEXT
from tests.support.pictures import picture

HELLO = "".join(TEXT)


@pytest.fixture
def person(chromium: Browser) -> Any:
    """A plain account with a password."""
    return get_user_model().objects.create_user(f"person-{uuid4().hex[:8]}", password=PASSWORD)


@pytest.fixture
def visit(tab: Page, server: Server, person: Any) -> Iterator[Visit]:
    """The chat page in which somebody has signed in; nothing may go wrong in it."""
    expect.set_options(timeout=WAIT_MS)
    sign_in(tab.context, server.url, person)
    seen = Visit(tab, server.url)
    seen.watch()
    page = seen.go("/chat/")
    expect(page.get_by_role("combobox", name="Model")).to_have_count(1)
    yield seen
    tab.close()  # what it still had to say is heard
    assert seen.wrongs == []


def send(page: Page, text: str) -> None:
    page.get_by_label("Message").fill(text)
    page.keyboard.press("Enter")


def choose(page: Page, model: str, column: int = 0) -> None:
    page.get_by_role("combobox", name="Model").nth(column).select_option(model)


def the_run(person: Any) -> Run:
    found: Run = Run.objects.filter(owner=person).latest("created_at")
    return found


def test_an_example_of_the_empty_page_streams_with_its_tool_call_reasoning_and_card(
    visit: Visit, person: Any
) -> None:
    page = visit.page
    expect(page.get_by_role("heading", name="What would you like to know?")).to_be_visible()
    visit.picture("chat-empty")
    page.get_by_role("button", name="See the model think").click()
    turn = page.locator(".turn")
    expect(turn.locator(".foot")).to_contain_text("tokens")
    expect(turn.get_by_text("Reasoned for")).to_be_visible()
    expect(turn.locator(".reasoning p")).to_be_hidden()
    turn.get_by_text("Reasoned for").click()
    expect(turn.locator(".reasoning p")).to_contain_text("leg day without machines")
    call = turn.locator(".call")
    expect(call).to_contain_text("gymbro.exercise.search")
    expect(call).to_contain_text("done")
    call.locator("summary").click()
    expect(call.locator("pre").first).to_contain_text("leg day")
    call.locator("summary").click()
    expect(turn.locator(".card h4")).to_have_text("Suggested exercises")
    said = Message.objects.get(run=the_run(person), role="assistant")
    (first, *_) = re.findall(r"\*\*(.+?)\*\*", said.content)
    expect(turn.locator(".said strong").first).to_have_text(first)
    visit.picture("chat-answer")
    page.emulate_media(color_scheme="dark")
    visit.picture("chat-answer-dark")
    page.emulate_media(color_scheme="light")
    turn.locator(".card").get_by_role("button", name="Ask about my back").click()
    expect(page.locator(".asked").nth(1)).to_have_text("Which exercises train my back?")
    expect(page.locator(".turn").nth(1).locator(".foot")).to_contain_text("tokens")
    assert Run.objects.filter(owner=person, thread=said.thread_id).count() == 2


def test_a_running_answer_is_found_again_after_a_reload_and_then_stopped(
    visit: Visit, person: Any, scripted: Callable[..., ScriptedModel]
) -> None:
    model = scripted("endless").name
    page = visit.page
    page.reload()
    choose(page, model)
    send(page, "Say much")
    expect(page.locator(".said")).to_contain_text("tick tick tick")
    page.reload()
    expect(page.locator(".asked")).to_have_text("Say much")
    expect(page.locator(".said")).to_contain_text("tick tick tick tick")
    expect(page.get_by_role("combobox", name="Model")).to_have_value(model)
    before = len(page.locator(".said").inner_text())
    page.wait_for_function("n => document.querySelector('.said').innerText.length > n", arg=before)
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".foot")).to_contain_text("Stopped.")
    expect(page.get_by_role("button", name="Send")).to_be_visible()
    run = the_run(person)
    assert run.status == "cancelled"
    said = Message.objects.get(run=run, role="assistant").content
    assert page.locator(".said").inner_text().strip() == said.strip()
    send(page, "Once more")
    expect(page.locator(".said").nth(1)).to_contain_text("tick")
    page.keyboard.press("Escape")
    expect(page.locator(".foot").nth(1)).to_contain_text("Stopped.")


def test_a_broken_connection_goes_on_where_it_stopped(
    visit: Visit, person: Any, scripted: Callable[..., ScriptedModel]
) -> None:
    model = scripted("endless").name
    page = visit.page
    page.reload()
    choose(page, model)
    send(page, "Say much")
    expect(page.locator(".said")).to_contain_text("tick tick")
    asked: list[str | None] = []

    def note(one: Request) -> None:
        if "/events" in one.url:
            asked.append(one.headers.get("last-event-id"))

    page.on("request", note)
    run_id = the_run(person).id.hex
    page.evaluate("""() => {
        const whole = window.fetch;
        window.cuts = 0;
        window.fetch = async (...given) => {
            const answer = await whole(...given);
            if (!String(given[0]).includes("/events") || window.cuts++) return answer;
            const reader = answer.body.getReader();
            const body = new ReadableStream({ async start(out) {
                for (let n = 0; n < 3; n++) out.enqueue((await reader.read()).value);
                reader.cancel();
                out.error(new TypeError("cut"));
            } });
            return new Response(body, { status: 200, headers: answer.headers });
        };
    }""")
    page.get_by_role("button", name="New conversation").click()
    page.locator(f"[data-thread='{the_run(person).thread_id}']").click()
    expect(page.locator(".said")).to_contain_text("tick tick tick")
    page.wait_for_function("() => window.cuts >= 2")
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".foot")).to_contain_text("Stopped.")
    assert asked[0] is None
    assert asked[1] is not None
    assert int(asked[1]) > 1
    said = Message.objects.get(run_id=UUID(run_id), role="assistant").content
    assert page.locator(".said").inner_text().strip() == said.strip()


def test_an_image_is_uploaded_sent_and_shown_again(visit: Visit, person: Any) -> None:
    page = visit.page
    page.locator("#picker").set_input_files(
        {"name": "bench.png", "mimeType": "image/png", "buffer": picture("PNG", (64, 48))}
    )
    expect(page.locator("#files")).to_contain_text("ready")
    visit.picture("chat-image-attached")
    send(page, "What is this?")
    expect(page.locator(".turn .said")).to_contain_text("PNG image of 64 × 48 pixels")
    expect(page.locator("#files")).to_be_hidden()
    page.reload()
    shown = page.locator(".asked img")
    expect(shown).to_have_count(1)
    page.wait_for_function("() => document.querySelector('.asked img').naturalWidth === 64")
    said = Message.objects.get(run=the_run(person), role="user")
    assert said.metadata["user_message_attachments"]["mime_type"] == "image/png"


def test_a_tool_call_is_approved_with_other_arguments_after_a_reload(visit: Visit, person: Any) -> None:
    page = visit.page
    send(page, "approve demo.note buy milk")
    expect(page.locator(".approval h4")).to_contain_text("demo.note")
    visit.picture("chat-approval")
    page.reload()
    edit = page.get_by_label("Arguments (JSON)")
    expect(edit).to_have_value('{\n  "text": "buy milk"\n}')
    edit.fill('{"text": ')
    page.get_by_role("button", name="Approve", exact=True).click()
    expect(page.locator(".approval .refusal")).to_contain_text("not valid JSON")
    edit.fill('{"text": "buy oat milk"}')
    page.get_by_role("button", name="Approve", exact=True).click()
    expect(page.locator(".approval")).to_contain_text("approved")
    expect(page.locator(".turn").nth(1).locator(".said")).to_contain_text("buy oat milk")
    expect(page.locator(".turn").nth(1).locator(".call summary")).to_contain_text("done")
    decided = Interrupt.objects.get(owner=person)
    assert (decided.status, decided.edited_arguments) == ("approved", {"text": "buy oat milk"})


def test_a_tool_call_is_refused_with_a_reason(visit: Visit, person: Any) -> None:
    page = visit.page
    send(page, "approve demo.note buy milk")
    page.get_by_label("Reason").fill("We have enough.")
    page.get_by_role("button", name="Refuse").click()
    expect(page.locator(".approval")).to_contain_text("refused")
    expect(page.locator(".turn").nth(1).locator(".foot")).to_contain_text("Copy")
    decided = Interrupt.objects.get(owner=person)
    assert (decided.status, decided.decision_reason) == ("refused", "We have enough.")


def test_three_models_answer_one_prompt_beside_each_other(
    visit: Visit, person: Any, scripted: Callable[..., ScriptedModel]
) -> None:
    first, second = scripted("hello").name, scripted("reasoning").name
    for name, label in ((first, "Swift"), (second, "Thorough")):
        ModelMapping.objects.filter(key=name.removeprefix("global:")).update(label=label)
    page = visit.page
    page.reload()
    expect(page.get_by_role("combobox", name="Model")).to_have_count(1)
    for _ in range(2):
        page.get_by_role("button", name="Model beside").click()
    expect(page.get_by_role("button", name="Model beside")).to_be_hidden()
    for place, model in enumerate((first, second, "global:demo")):
        choose(page, model, place)
    send(page, "Which exercises train my chest?")
    expect(page.locator(".column .foot .feedback")).to_have_count(3)
    expect(page.locator(".column").nth(0).locator(".said")).to_have_text(HELLO)
    expect(page.locator(".column").nth(1).locator(".reasoning summary")).to_contain_text("Reason")
    visit.picture("chat-beside")
    page.emulate_media(color_scheme="dark")
    visit.picture("chat-beside-dark")
    page.reload()
    expect(page.locator(".column .said")).to_have_count(3)
    thought = page.locator(".column").nth(1).locator(".turn .parts > *").first
    expect(thought.locator("summary")).to_contain_text("Reasoned for")
    thought.locator("summary").click()
    expect(thought.locator("p")).not_to_be_empty()
    boxes = page.get_by_role("combobox", name="Model")
    for place, model in enumerate((first, second, "global:demo")):
        expect(boxes.nth(place)).to_have_value(model)
    assert Run.objects.filter(owner=person).values("thread").distinct().count() == 3


def test_an_answer_is_judged_and_the_judgement_is_there_again(visit: Visit, person: Any) -> None:
    page = visit.page
    send(page, "Which exercises train my chest?")
    bad = page.get_by_role("button", name="Bad answer")
    bad.click()
    expect(bad).to_have_attribute("aria-pressed", "true")
    page.get_by_label("incomplete").check()
    page.get_by_label("Comment").fill("Where are the flyes?")
    page.get_by_role("button", name="Add").click()
    expect(page.locator(".more")).to_be_hidden()
    expect(page.get_by_text("Noted, thank you.")).to_be_visible()
    given = Feedback.objects.get(user=person)
    assert (given.score, given.tags, given.comment) == (-1, ["incomplete"], "Where are the flyes?")
    page.reload()
    expect(bad).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="Good answer").click()
    expect(bad).to_have_attribute("aria-pressed", "false")
    assert Feedback.objects.get(user=person).score == 1
    page.get_by_role("button", name="Good answer").click()
    expect(page.get_by_text("Taken back.")).to_be_visible()
    assert not Feedback.objects.filter(user=person).exists()


def test_what_a_model_says_is_drawn_and_never_run(
    visit: Visit, person: Any, provider: Any, scripted: Callable[..., ScriptedModel]
) -> None:
    from tests.support.fakes.fake_model import text

    said = (
        "# Title\n\n<img src=x onerror=alert(1)> **bold** `code` [bad](javascript:alert(1)) "
        "[good](https://example.com/a) ![picture](https://example.com/p.png)\n\n"
        "| a | b |\n|---|---|\n| 1 | <b>2</b> |\n\n```python\nprint('<script>')\n```\n\n"
        "1. one\n   - inner\n2. two\n\n> quoted"
    )
    name = f"marks-{uuid4().hex[:8]}"
    provider.script(text(*re.findall(r".{1,7}", said, re.DOTALL)), name=name)
    model = scripted(f"script:{name}").name
    page = visit.page
    page.reload()
    choose(page, model)
    send(page, "Draw")
    expect(page.locator(".turn .feedback")).to_be_visible()
    shown = page.locator(".said")
    expect(shown.locator("h3")).to_have_text("Title")
    expect(shown.locator("strong")).to_have_text("bold")
    expect(shown.locator("td").nth(1)).to_have_text("<b>2</b>")
    expect(shown.locator("pre code")).to_have_text("print('<script>')")
    expect(shown.locator("ol > li")).to_have_count(2)
    expect(shown.locator("li li")).to_have_text("inner")
    expect(shown.locator("blockquote")).to_have_text("quoted")
    expect(shown.locator("img")).to_have_count(0)
    hrefs = shown.locator("a").evaluate_all("links => links.map(a => a.getAttribute('href'))")
    assert hrefs == ["https://example.com/a", "https://example.com/p.png"]
    expect(shown).to_contain_text("<img src=x onerror=alert(1)>")
    visit.picture("chat-marks")


def test_a_failed_run_says_what_to_do_and_is_tried_again(
    visit: Visit, person: Any, scripted: Callable[..., ScriptedModel]
) -> None:
    page = visit.page
    model = scripted("status-401").name
    page.reload()
    choose(page, model)
    send(page, "Hello?")
    expect(page.locator(".turn .refusal")).to_contain_text("Staff must check the key")
    visit.picture("chat-failed")
    page.get_by_role("button", name="Bad answer").click()
    expect(page.get_by_text("Thank you.")).to_be_visible()
    page.reload()
    expect(page.locator(".turn .refusal")).to_contain_text("Staff must check the key")
    expect(page.get_by_role("button", name="Bad answer")).to_have_attribute("aria-pressed", "true")
    choose(page, "global:demo")
    send(page, "练背有什么动作？")
    expect(page.locator(".turn").nth(1).locator(".said")).to_contain_text("动作库")


def test_signing_in_again_loses_neither_the_place_nor_the_words(visit: Visit, person: Any) -> None:
    page = visit.page
    send(page, "Which exercises train my chest?")
    expect(page.locator(".turn .feedback")).to_be_visible()
    page.get_by_label("Message").fill("And my back?")
    page.context.clear_cookies(name="sessionid")
    page.reload()
    page.get_by_role("link", name="Sign in").click()
    page.get_by_label("Username").fill(person.username)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator(".asked")).to_have_text("Which exercises train my chest?")
    expect(page.get_by_label("Message")).to_have_value("And my back?")


def test_with_a_token_instead_of_an_account(tab: Page, server: Server, client: Client) -> None:
    page = tab
    page.goto(f"{server.url}/chat/")
    page.get_by_label("Token").fill("parley_wrong")
    page.get_by_role("button", name="Use it").click()
    expect(page.locator("#why")).to_contain_text("no such API token")
    page.get_by_label("Token").fill(client.token)
    page.get_by_role("button", name="Use it").click()
    expect(page.get_by_role("combobox", name="Model")).to_be_visible()
    send(page, "Which exercises train my chest?")
    expect(page.locator(".turn .feedback")).to_be_visible()
    assert Run.objects.filter(owner=client.user).count() == 1
    assert page.evaluate("localStorage.getItem('parley-token')") is None
    page.get_by_role("button", name="Forget it").click()
    expect(page.get_by_label("Token")).to_be_visible()
