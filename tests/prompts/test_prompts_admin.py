"""The admin pages of prompts, endpoints, models and settings, as staff use them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from prompts import app_settings
from prompts.endpoints import secrets
from prompts.models import AppSetting, Endpoint, ModelMapping, Prompt, PromptKind, PromptVersion, Secret
from prompts.wordings import active, staff_actions
from tests.support.admin_pages import address, sign_in

pytestmark = pytest.mark.once

KEY = "sk-proj-abcdefghijklmnop-0123"
PAGES = "/admin/prompts"


@pytest.fixture
def staff() -> Client:
    """A browser in which a superuser is signed in."""
    return sign_in(is_superuser=True)[0]


@pytest.fixture
def prompt() -> Prompt:
    """A prompt of a kind that no run uses, with two versions."""
    made = Prompt.objects.create(name=uuid4().hex, kind=PromptKind.SYSTEM)
    staff_actions.save_version(made, "Line one.\nLine two.", author=None, note="Start.")
    staff_actions.save_version(made, "The second wording.", author=None)
    return made


def wording(prompt: Prompt, content: str, **more: str) -> dict[str, str]:
    """What the browser sends when the form of a prompt is saved."""
    sent = {"name": prompt.name, "category": "", "description": "", "note": "", "tools_json": ""}
    return sent | {"content": content, "based_on": str(prompt.versions.count())} | more


def said(response: Any) -> list[str]:
    return [str(message) for message in response.context["messages"]]


# --- prompts ------------------------------------------------------------------------------------


def test_a_new_prompt_is_made_with_its_first_version(staff: Client) -> None:
    sent = {"name": uuid4().hex, "kind": "tools", "content": "One.\r\nTwo.", "note": "Start."}
    response = staff.post(f"{PAGES}/prompt/add/", sent, follow=True)
    version = PromptVersion.objects.get(prompt__name=sent["name"])
    assert (version.number, version.content, version.note) == (1, "One.\nTwo.", "Start.")
    assert version.author == response.wsgi_request.user
    assert not version.prompt.is_active


def test_saving_a_changed_wording_publishes_a_version_and_leaves_the_old_ones(prompt: Prompt) -> None:
    client, user = sign_in(is_superuser=True)
    before = list(prompt.versions.order_by("number").values())
    url = f"{PAGES}/prompt/{prompt.pk}/change/"
    tools = '[{"name": "search"}]'
    response = client.post(url, wording(prompt, "Third.", note="Why.", tools_json=tools), follow=True)
    *old, new = prompt.versions.order_by("number")
    assert list(prompt.versions.order_by("number").values())[:2] == before
    assert (new.number, new.content, new.note, new.author) == (3, "Third.", "Why.", user)
    assert (new.tools_json, len(old)) == ([{"name": "search"}], 2)
    assert "Version 3 is saved. Activate it to use it." in said(response)


def test_saving_an_unchanged_wording_publishes_nothing(staff: Client, prompt: Prompt) -> None:
    staff_actions.save_version(prompt, "Many\nlines.\n", author=None, tools_json={"a": [1]})
    url = f"{PAGES}/prompt/{prompt.pk}/change/"
    sent = wording(
        prompt, "Many\r\nlines.\r\n", tools_json='{\r\n  "a": [1]\r\n}', description="Better."
    )
    assert staff.post(url, sent).status_code == 302
    prompt.refresh_from_db()
    assert (prompt.versions.count(), prompt.description) == (3, "Better.")


def test_the_editor_is_prefilled_with_the_newest_wording(staff: Client, prompt: Prompt) -> None:
    form = staff.get(f"{PAGES}/prompt/{prompt.pk}/change/").context["adminform"].form
    assert form["content"].value() == "The second wording."
    assert form["based_on"].value() == 2
    assert 'name="tools_json"' in str(form["tools_json"])
    assert "null" not in str(form["tools_json"])


def test_a_page_opened_before_a_colleague_saved_does_not_undo_their_version(
    staff: Client, prompt: Prompt
) -> None:
    url = f"{PAGES}/prompt/{prompt.pk}/change/"
    stale = wording(prompt, "Mine.")
    staff_actions.save_version(prompt, "Theirs.", author=None)
    response = staff.post(url, stale)
    assert response.status_code == 200
    assert prompt.versions.count() == 3
    form = response.context["adminform"].form
    assert "Version 3 was saved by Parley since you opened this page." in str(form.errors)
    assert (form["content"].value(), form["based_on"].value()) == ("Mine.", "3")
    assert staff.post(url, stale | {"based_on": "3"}).status_code == 302
    assert prompt.versions.latest("number").content == "Mine."


@pytest.mark.parametrize(
    "sent",
    [
        {"content": ""},
        {"content": "nul \x00"},
        {"content": "x" * 200_001},
        {"tools_json": "{"},
        {"tools_json": '"\\u0000"'},
        {"tools_json": "NaN"},
        {"note": "n" * 501},
    ],
)
def test_what_cannot_be_saved_is_refused_beside_the_field(
    staff: Client, prompt: Prompt, sent: dict[str, str]
) -> None:
    response = staff.post(f"{PAGES}/prompt/{prompt.pk}/change/", wording(prompt, "Fine.") | sent)
    assert response.status_code == 200
    assert list(response.context["adminform"].form.errors) == list(sent)
    assert prompt.versions.count() == 2


def test_the_kind_of_a_prompt_stays(staff: Client, prompt: Prompt) -> None:
    staff.post(f"{PAGES}/prompt/{prompt.pk}/change/", wording(prompt, "Third.", kind="tools"))
    prompt.refresh_from_db()
    assert prompt.kind == PromptKind.SYSTEM


def test_activating_asks_first_and_then_does_it(prompt: Prompt) -> None:
    client, user = sign_in(is_superuser=True)
    url = f"{PAGES}/prompt/{prompt.pk}/versions/1/activate/"
    page = client.get(url)
    assert "Activate version 1" in page.content.decode()
    assert "Line one." in page.content.decode()
    assert not Prompt.objects.get(pk=prompt.pk).is_active
    response = client.post(url, follow=True)
    prompt.refresh_from_db()
    assert prompt.is_active
    assert prompt.active_version == prompt.versions.get(number=1)
    assert said(response) == ["Version 1 is active; runs that start now use it."]
    entry = LogEntry.objects.get(user=user)
    assert entry.change_message == "Version 1 is active; runs that start now use it."


def test_save_and_activate_leads_to_the_question(staff: Client, prompt: Prompt) -> None:
    sent = wording(prompt, "Third.", prompts_prompt_activate="")
    response = staff.post(f"{PAGES}/prompt/{prompt.pk}/change/", sent)
    assert response.headers["Location"] == f"{PAGES}/prompt/{prompt.pk}/versions/3/activate/"
    assert not Prompt.objects.get(pk=prompt.pk).is_active


def test_deactivating_asks_first_and_then_does_it(staff: Client, prompt: Prompt) -> None:
    staff_actions.activate_version(prompt.versions.get(number=1), by=None)
    url = f"{PAGES}/prompt/{prompt.pk}/deactivate/"
    assert staff.get(url).status_code == 200
    assert Prompt.objects.get(pk=prompt.pk).is_active
    staff.post(url)
    assert not Prompt.objects.get(pk=prompt.pk).is_active


def test_the_page_shows_the_versions_and_the_effective_system_message(
    staff: Client, prompt: Prompt
) -> None:
    staff_actions.activate_version(prompt.versions.get(number=1), by=None)
    response = staff.get(f"{PAGES}/prompt/{prompt.pk}/change/")
    page = response.content.decode()
    assert response.context["effective_system_message"] == active.read_system_message() != ""
    assert [version.number for version in response.context["versions"]] == [2, 1]
    assert f'href="{PAGES}/prompt/{prompt.pk}/versions/2/activate/"' in page
    assert f'href="{PAGES}/prompt/{prompt.pk}/versions/1/activate/"' not in page
    assert "Line one.\nLine two." in page


def test_markup_in_a_prompt_is_shown_and_not_run(staff: Client, prompt: Prompt) -> None:
    evil = "<script>alert(1)</script>"
    staff_actions.save_version(prompt, evil, author=None, note=evil, tools_json=[evil])
    for path in ("change/", "versions/3/activate/"):
        page = staff.get(f"{PAGES}/prompt/{prompt.pk}/{path}").content.decode()
        assert "&lt;script&gt;alert(1)" in page
        assert evil not in page


@pytest.mark.parametrize("path", ["0/change/", "999999999/versions/1/activate/", "x/deactivate/"])
def test_a_prompt_that_does_not_exist_is_not_found(staff: Client, path: str) -> None:
    assert staff.get(f"{PAGES}/prompt/{path}", follow=True).status_code in (200, 404)
    assert staff.post(f"{PAGES}/prompt/{path}").status_code in (302, 404)


def test_a_version_that_does_not_exist_cannot_be_activated(staff: Client, prompt: Prompt) -> None:
    for number in (0, 3, 99999999999):
        assert staff.post(f"{PAGES}/prompt/{prompt.pk}/versions/{number}/activate/").status_code == 404


def test_versions_and_secrets_have_no_page_and_prompts_cannot_be_deleted(
    staff: Client, prompt: Prompt
) -> None:
    assert not admin.site.is_registered(PromptVersion)
    assert not admin.site.is_registered(Secret)
    assert staff.post(f"{PAGES}/prompt/{prompt.pk}/delete/", {"post": "yes"}).status_code == 403
    sent = {"action": "delete_selected", "_selected_action": str(prompt.pk), "post": "yes"}
    staff.post(f"{PAGES}/prompt/", sent)
    assert prompt.versions.count() == 2


def test_who_may_only_look_changes_nothing(prompt: Prompt) -> None:
    client, user = sign_in()
    user.user_permissions.add(Permission.objects.get(codename="view_prompt"))
    page = client.get(f"{PAGES}/prompt/{prompt.pk}/change/")
    assert page.status_code == 200
    assert "/activate/" not in page.content.decode()
    for path in ("change/", "versions/1/activate/", "deactivate/"):
        response = client.post(f"{PAGES}/prompt/{prompt.pk}/{path}", wording(prompt, "Third."))
        assert response.status_code == 403
    assert prompt.versions.count() == 2


def test_the_list_costs_the_same_however_many_prompts_there_are(staff: Client, prompt: Prompt) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            page = staff.get(f"{PAGES}/prompt/?q={prompt.name[:12]}")
        assert prompt.name in page.content.decode()
        return len(captured)

    queries()  # the first page also remembers content types
    before = queries()
    for number in range(5):
        more = Prompt.objects.create(name=f"{prompt.name[:12]}-{number}", kind=PromptKind.SYSTEM)
        staff_actions.activate_version(staff_actions.save_version(more, "One.", author=None), by=None)
    assert queries() == before


# --- endpoints ----------------------------------------------------------------------------------


@pytest.fixture
def endpoint() -> Endpoint:
    """An endpoint with a key."""
    made = Endpoint.objects.create(
        name=uuid4().hex, provider="acme", base_url="https://api.example.com/v1"
    )
    staff_actions.rotate_secret(made, KEY)
    return made


def stored_key(endpoint: Endpoint) -> str:
    endpoint.refresh_from_db()
    sealed = secrets.get_sealed(endpoint.secret)
    return secrets.open_secret(sealed, secrets.Purpose.MODEL_ENDPOINT.of(endpoint.pk))


def test_a_key_goes_in_and_never_comes_out(staff: Client) -> None:
    sent = address(key=f" {KEY} ")
    pages = [staff.post(f"{PAGES}/endpoint/add/", sent, follow=True)]
    made = Endpoint.objects.get(name=sent["name"])
    assert stored_key(made) == KEY
    sealed = made.secret.sealed if made.secret else ""
    url = f"{PAGES}/endpoint/{made.pk}"
    pages += [staff.get(f"{url}/{path}/") for path in ("change", "history", "delete")]
    pages += [staff.get(f"{PAGES}/endpoint/?q={made.name}"), staff.get("/admin/")]
    pages.append(staff.post(f"{url}/change/", address(made, key=f"{KEY}-2", base_url="nonsense")))
    pages.append(staff.post(f"{url}/change/", address(made, key=f"{KEY}\nsecond line")))
    for page in pages:
        assert page.status_code == 200
        assert KEY not in page.content.decode()
        assert sealed not in page.content.decode()
    assert "sk-p***0123" in pages[1].content.decode()
    assert KEY not in str(list(LogEntry.objects.filter(object_id=str(made.pk)).values()))


def test_an_empty_key_field_keeps_the_key_and_a_new_one_replaces_it(
    staff: Client, endpoint: Endpoint
) -> None:
    url = f"{PAGES}/endpoint/{endpoint.pk}/change/"
    assert staff.post(url, address(endpoint)).status_code == 302
    assert stored_key(endpoint) == KEY
    assert staff.post(url, address(endpoint, key="sk-the-next-key-4567")).status_code == 302
    assert stored_key(endpoint) == "sk-the-next-key-4567"


def test_the_key_can_be_removed(staff: Client, endpoint: Endpoint) -> None:
    url = f"{PAGES}/endpoint/{endpoint.pk}/change/"
    both = staff.post(url, address(endpoint, key=KEY, remove_key="on"))
    assert "not both" in both.content.decode()
    assert staff.post(url, address(endpoint, remove_key="on")).status_code == 302
    assert stored_key(endpoint) == ""
    assert not Secret.objects.filter(name=f"endpoint:{endpoint.pk}").exists()


@pytest.mark.parametrize("path", ["delete", "list"])
def test_deleting_an_endpoint_deletes_its_sealed_key(
    staff: Client, endpoint: Endpoint, path: str
) -> None:
    if path == "delete":
        staff.post(f"{PAGES}/endpoint/{endpoint.pk}/delete/", {"post": "yes"})
    else:
        sent = {"action": "delete_selected", "_selected_action": str(endpoint.pk), "post": "yes"}
        staff.post(f"{PAGES}/endpoint/", sent)
    assert not Endpoint.objects.filter(pk=endpoint.pk).exists()
    assert not Secret.objects.filter(name=f"endpoint:{endpoint.pk}").exists()


@pytest.mark.parametrize(
    "base_url",
    ["", "ftp://example.com", "https://user:pw@example.com", "https://example.com/?a=b", "nonsense"],
)
def test_an_endpoint_needs_a_plain_http_address(staff: Client, base_url: str) -> None:
    response = staff.post(f"{PAGES}/endpoint/add/", address(base_url=base_url))
    assert response.status_code == 200
    assert "base_url" in response.context["adminform"].form.errors


def test_an_address_loses_its_last_slash_and_the_demo_needs_none(staff: Client) -> None:
    sent, demo = address(base_url="http://ollama:11434/v1/"), address(dialect="demo", base_url="")
    for body in (sent, demo):
        assert staff.post(f"{PAGES}/endpoint/add/", body).status_code == 302
    assert Endpoint.objects.get(name=sent["name"]).base_url == "http://ollama:11434/v1"
    assert Endpoint.objects.get(name=demo["name"]).base_url == ""


def test_the_list_says_which_endpoints_have_a_key(staff: Client, endpoint: Endpoint) -> None:
    found = staff.get(f"{PAGES}/endpoint/?q={endpoint.name}").context["cl"]
    assert [found.model_admin.shown_has_key(row) for row in found.result_list] == [True]


# --- models -------------------------------------------------------------------------------------


def test_a_mapping_is_made_with_its_candidates(staff: Client, endpoint: Endpoint) -> None:
    key = f"m{uuid4().hex[:12]}"
    sent = {
        "key": key,
        "label": "Model",
        "is_active": "on",
        "candidates-TOTAL_FORMS": "2",
        "candidates-INITIAL_FORMS": "0",
    }
    for number, model in enumerate(("small", "large")):
        prefix = f"candidates-{number}"
        sent |= {f"{prefix}-position": str(2 - number), f"{prefix}-model": model}
        sent |= {f"{prefix}-endpoint": str(endpoint.pk)}
    assert staff.post(f"{PAGES}/modelmapping/add/", sent).status_code == 302
    made = ModelMapping.objects.get(key=key)
    assert [candidate.model for candidate in made.candidates.all()] == ["large", "small"]
    assert staff.get(f"{PAGES}/modelmapping/{made.pk}/change/").status_code == 200


def test_a_mapping_without_a_candidate_is_not_saved(staff: Client) -> None:
    page = f"{PAGES}/modelmapping/add/"
    assert "Public name" in staff.get(page).content.decode()
    key = f"m{uuid4().hex[:12]}"
    sent = {
        "key": key,
        "is_active": "on",
        "candidates-TOTAL_FORMS": "0",
        "candidates-INITIAL_FORMS": "0",
    }
    refused = staff.post(page, sent)
    assert "Add a candidate: the endpoint that is asked" in refused.content.decode()
    assert not ModelMapping.objects.filter(key=key).exists()


def test_the_list_of_models_says_what_is_routable(staff: Client, endpoint: Endpoint) -> None:
    mark = uuid4().hex[:12]
    keyless = Endpoint.objects.create(name=uuid4().hex, provider="acme", base_url="https://example.com")
    states = {
        "routable": (endpoint, True),
        "no endpoint with a key": (keyless, True),
        "inactive": (endpoint, False),
    }
    for number, (used, is_active) in enumerate(states.values()):
        made = ModelMapping.objects.create(key=f"{mark}-{number}", is_active=is_active)
        made.candidates.create(endpoint=used, model="m")
    page = staff.get(f"{PAGES}/modelmapping/?q={mark}")
    found = page.context["cl"]
    assert [found.model_admin.shown_state(row) for row in found.result_list] == list(states)


# --- settings -----------------------------------------------------------------------------------


@pytest.fixture
def settings_kept() -> Iterator[None]:
    """The stored settings, put back afterwards."""
    before = list(AppSetting.objects.all())
    AppSetting.objects.all().delete()
    yield
    AppSetting.objects.all().delete()
    AppSetting.objects.bulk_create(before)


DEFAULTS = {
    "default_result_mode": "raw_passthrough",
    "prompt_mode": "server",
    "structured_output": "fail",
    "web_search_provider": "exa",
}


def test_one_page_shows_all_settings_and_stores_what_was_changed(settings_kept: None) -> None:
    client, user = sign_in(is_superuser=True)
    url = f"{PAGES}/appsetting/"
    assert client.get(url).context["form"].initial == app_settings.get_all()
    response = client.post(url, DEFAULTS | {"web_search_enabled": "on"}, follow=True)
    assert said(response) == ["The settings are saved."]
    stored = AppSetting.objects.get()
    assert (stored.key, stored.value, stored.updated_by) == ("web_search_enabled", True, user)
    client.post(url, DEFAULTS)
    assert app_settings.get("web_search_enabled") is False


def test_a_setting_of_no_known_value_is_refused(settings_kept: None, staff: Client) -> None:
    response = staff.post(f"{PAGES}/appsetting/", DEFAULTS | {"default_result_mode": "loud"})
    assert list(response.context["form"].errors) == ["default_result_mode"]
    response = staff.post(f"{PAGES}/appsetting/", DEFAULTS | {"default_model": "nobody"})
    assert list(response.context["form"].errors) == ["default_model"]
    assert not AppSetting.objects.exists()
    staff.post(f"{PAGES}/appsetting/", DEFAULTS | {"default_model": " global:demo "})
    assert app_settings.get("default_model") == "global:demo"


def test_settings_are_for_those_who_may_change_them(settings_kept: None) -> None:
    client, user = sign_in()
    url = f"{PAGES}/appsetting/"
    assert client.post(url, DEFAULTS | {"web_search_enabled": "on"}).status_code == 403
    user.user_permissions.add(Permission.objects.get(codename="view_appsetting"))
    assert client.get(url).status_code == 200
    client.post(url, DEFAULTS | {"web_search_enabled": "on"})
    assert not AppSetting.objects.exists()
