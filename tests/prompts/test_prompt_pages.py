"""The pages beside a prompt's form, as staff use them: preview, compare, labels, split."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.test import Client

from prompts.models import Prompt, PromptKind
from prompts.wordings import releases, staff_actions

pytestmark = pytest.mark.once

PAGE = "/admin/prompts/prompt"


def sign_in(role: str = "") -> Client:
    user = get_user_model().objects.create_user(uuid4().hex, is_staff=True, is_superuser=not role)
    if role:
        user.groups.add(Group.objects.get(name=role))
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def browser() -> Client:
    return sign_in("staff")


@pytest.fixture
def prompt() -> Prompt:
    """A prompt of a kind that no run uses, with two versions, the first in use."""
    made = Prompt.objects.create(name=uuid4().hex, kind=PromptKind.TOOLS)
    one = staff_actions.save_version(made, "Line one.\nLine two.", author=None)
    staff_actions.save_version(made, "Line one.\nLine 2.", author=None, tools_json=[{"name": "a"}])
    staff_actions.activate_version(one, by=None)
    made.refresh_from_db()
    return made


@pytest.fixture(autouse=True)
def nothing_in_use(database: None) -> Iterator[None]:
    """No prompt of the kind `tools` stays in use."""
    yield
    for prompt in Prompt.objects.filter(kind=PromptKind.TOOLS, is_active=True):
        staff_actions.deactivate(prompt, by=None)


def said(response: Any) -> list[str]:
    return [str(message) for message in response.context["messages"]]


def preview(browser: Client, **sent: str) -> dict[str, Any]:
    response = browser.post(f"{PAGE}/preview/", {"kind": "agent_system", "content": ""} | sent)
    assert response.status_code == 200
    found: dict[str, Any] = response.json()
    return found


# --- preview ------------------------------------------------------------------------------------


def test_the_preview_shows_the_whole_message_with_this_wording_in_its_place(browser: Client) -> None:
    tools = json.dumps([{"name": "show", "description": "Shows", "parameters": {}}])
    context = json.dumps([{"description": "Time zone", "value": "Mars"}])
    found = preview(
        browser, content="Hi {{ user.name }} on {{ context.time_zone }}.", tools=tools, context=context
    )
    active_tools = Prompt.objects.get(kind=PromptKind.AGENT_TOOLS, is_active=True).active_version
    first, *rest = found["message"].split("\n\n")
    assert first == "Hi Ada on Mars."
    assert active_tools is not None
    assert active_tools.content in found["message"]
    assert "<!-- TOOLS_START -->\n- show: Shows" in found["message"]
    assert found["message"].endswith("- Time zone: Mars\n<!-- CONTEXT_END -->")
    assert [one["name"] for one in found["variables"]] == ["user.name", "context.time_zone"]
    assert found["whole_tokens"] > found["tokens"] > 0
    assert (found["characters"], found["problem"], found["in_a_run"]) == (46, "", True)
    assert rest


def test_the_preview_says_what_is_wrong_with_the_example_and_shows_the_rest(browser: Client) -> None:
    for name, text in (
        ("tools", "["),
        ("tools", '[{"name": 1}]'),
        ("tools", "{}"),
        ("context", "[" * 50_000),
        ("context", '[{"description": "x"}]'),
        ("tools", json.dumps([{"name": "a", "description": "", "parameters": {}}] * 65)),
    ):
        found = preview(browser, content="Wording.", **{name: text})
        assert found["problem"].startswith(name) or "nested" in found["problem"], text[:20]
        assert found["message"].startswith("Wording.")


def test_a_wording_of_another_kind_is_shown_alone(browser: Client) -> None:
    found = preview(browser, content="{{ nobody }} says.", kind="system", tools="", context="")
    assert (found["message"], found["in_a_run"]) == ("{{ nobody }} says.", False)
    assert found["unknown"] == ["nobody"]


def test_the_preview_is_for_those_who_may_see_prompts() -> None:
    assert sign_in("analyst").post(f"{PAGE}/preview/", {"content": "x"}).status_code == 403
    client = Client(enforce_csrf_checks=True)
    client.force_login(get_user_model().objects.create_superuser(uuid4().hex, password="x" * 20))
    assert client.post(f"{PAGE}/preview/", {"content": "x"}).status_code == 403


def test_the_form_holds_the_preview_of_what_is_saved(browser: Client, prompt: Prompt) -> None:
    page = browser.get(f"{PAGE}/{prompt.pk}/change/").content.decode()
    assert 'id="prompt-preview"' in page
    assert "System message of a run" in browser.get(f"{PAGE}/add/").content.decode()


# --- compare ------------------------------------------------------------------------------------


def test_two_versions_are_compared_side_by_side(browser: Client, prompt: Prompt) -> None:
    page = browser.get(f"{PAGE}/{prompt.pk}/compare/?a=1&b=2").content.decode()
    assert "<del>two</del>" in page
    assert "<ins>2</ins>" in page
    assert "Tools (JSON)" in page
    newest = browser.get(f"{PAGE}/{prompt.pk}/compare/").context
    assert (newest["before"].number, newest["after"].number) == (1, 2)
    assert "No difference" in browser.get(f"{PAGE}/{prompt.pk}/compare/?a=2&b=2").content.decode()
    for query in ("a=9&b=1", "a=1&b=99999999999999999999", "a=x&b=77"):
        assert browser.get(f"{PAGE}/{prompt.pk}/compare/?{query}").status_code in (200, 404)


def test_markup_in_a_compared_wording_is_shown_and_not_run(browser: Client, prompt: Prompt) -> None:
    staff_actions.save_version(prompt, "<script>alert(1)</script>", author=None, note="<b>n</b>")
    page = browser.get(f"{PAGE}/{prompt.pk}/compare/?a=1&b=3").content.decode()
    assert "<script>alert" not in page
    assert "<b>n</b>" not in page


def test_activating_shows_what_changes(browser: Client, prompt: Prompt) -> None:
    page = browser.get(f"{PAGE}/{prompt.pk}/versions/2/activate/").content.decode()
    assert "<ins>2</ins>" in page


# --- labels and splits --------------------------------------------------------------------------


def test_a_label_is_moved_and_removed(browser: Client, prompt: Prompt) -> None:
    url = f"{PAGE}/{prompt.pk}/labels/"
    page = browser.post(url, {"label": "production", "version": "1"}, follow=True)
    assert said(page) == ["The label production now points to version 1."]
    browser.post(url, {"label": "production", "version": "2"})
    (label,) = prompt.labels.all()
    assert (label.name, label.version.number) == ("production", 2)
    assert "production: v2" in browser.get(f"{PAGE}/?q={prompt.name}").content.decode()
    for sent in ({"label": "Bad label", "version": "1"}, {"label": "x", "version": "9"}, {}):
        assert browser.post(url, sent, follow=True).status_code == 200
    assert prompt.labels.count() == 1
    browser.post(url, {"label": "production", "remove": "1"})
    assert prompt.labels.count() == 0
    assert browser.get(url).status_code == 403


def test_a_split_is_set_changed_and_ended(browser: Client, prompt: Prompt) -> None:
    url = f"{PAGE}/{prompt.pk}/split/"
    assert "Version 1 is active" in browser.get(f"{url}?version=2").content.decode()
    assert not Prompt.objects.get(pk=prompt.pk).split_percent
    page = browser.post(url, {"version": "2", "percent": "25"}, follow=True)
    assert said(page) == ["25 of 100 threads get version 2."]
    assert "25 of 100 threads get" in page.content.decode()
    assert "v1, and v2 for 25 %" in browser.get(f"{PAGE}/?q={prompt.name}").content.decode()
    for sent, field in (
        ({"version": "9", "percent": "10"}, "version"),
        ({"version": "2", "percent": "100"}, "percent"),
        ({"version": "1", "percent": "10"}, "__all__"),
        ({}, "version"),
    ):
        refused = browser.post(url, sent)
        assert field in refused.context["form"].errors, sent
    assert said(browser.post(url, {"end": ""}, follow=True)) == [
        "Every thread gets the active version again."
    ]
    assert Prompt.objects.get(pk=prompt.pk).split_version is None


def test_rolling_back_is_one_link_and_a_question(browser: Client, prompt: Prompt) -> None:
    staff_actions.activate_version(prompt.versions.get(number=2), by=None)
    page = browser.get(f"{PAGE}/{prompt.pk}/change/").content.decode()
    assert "Roll back to v1" in page
    assert f'href="{PAGE}/{prompt.pk}/versions/1/activate/"' in page
    browser.post(f"{PAGE}/{prompt.pk}/versions/1/activate/")
    assert Prompt.objects.get(pk=prompt.pk).active_version == prompt.versions.get(number=1)


def test_who_may_only_look_is_offered_nothing_to_change(prompt: Prompt) -> None:
    from django.contrib.auth.models import Permission

    releases.move_label(prompt, "staging", prompt.versions.get(number=1), by=None)
    user = get_user_model().objects.create_user(uuid4().hex, is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_prompt"))
    client = Client()
    client.force_login(user)
    page = client.get(f"{PAGE}/{prompt.pk}/change/")
    assert page.status_code == 200
    for word in ("Set label", "Activate…", "Split…", 'name="remove"'):
        assert word not in page.content.decode()
    for path in ("labels/", "split/"):
        sent = {"label": "staging", "version": "2", "percent": "10"}
        assert client.post(f"{PAGE}/{prompt.pk}/{path}", sent).status_code == 403
    assert client.get(f"{PAGE}/{prompt.pk}/compare/").status_code == 200


def test_no_admin_page_may_load_what_is_not_ours(browser: Client, prompt: Prompt) -> None:
    for path in (f"{PAGE}/{prompt.pk}/change/", "/admin/", "/admin/login/"):
        policy = browser.get(path).headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe-inline" not in policy.split("script-src")[1].split(";")[0]
        assert "frame-ancestors 'none'" in policy
