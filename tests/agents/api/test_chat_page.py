"""The chat page's own addresses: who gets in, with what token, and trying a prompt version."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import httpx
import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.test import Client as Browser

from conversations.models import Run
from prompts.models import Prompt, PromptKind, PromptVersion
from prompts.wordings import staff_actions
from tests.support.client import Client
from tests.support.fakes.fake_model import FakeModel
from tests.support.paths import ROOT

pytestmark = pytest.mark.once

PASSWORD = "a long enough passphrase"


@pytest.fixture
def user() -> Any:
    """A plain account with a password."""
    return get_user_model().objects.create_user(f"chat-{uuid4().hex[:10]}", password=PASSWORD)


@pytest.fixture
def signed_in(user: Any) -> Browser:
    browser = Browser()
    browser.force_login(user)
    return browser


@pytest.fixture
def tried() -> PromptVersion:
    """A version of a prompt that is not in use."""
    prompt = Prompt.objects.create(name=f"Trial {uuid4().hex[:8]}", kind=PromptKind.AGENT_SYSTEM)
    return staff_actions.save_version(prompt, f"Speak like a trial. {uuid4().hex}", author=None)


# --- the page -----------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/chat/", "/chat/login/"])
def test_the_pages_run_nothing_but_our_own_files(path: str) -> None:
    answer = Browser().get(path)
    assert answer.status_code == 200
    policy = answer.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'self'; ")
    assert "unsafe" not in policy
    page = answer.content.decode()
    assert re.findall(r"<script(?![^>]*\ssrc=)", page) == []
    assert re.findall(r"<style|\sstyle=|\son[a-z]+=", page) == []
    addresses = re.findall(r"(?:src|href|action)=\"([^\"]+)\"", page)
    assert addresses
    assert [address for address in addresses if not address.startswith("/")] == []


def test_the_scripts_put_no_html_into_the_page() -> None:
    scripts = list((ROOT / "agents" / "static" / "chat").glob("*.js"))
    assert scripts
    for script in scripts:
        text = script.read_text()
        for danger in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "srcdoc",
        ):
            assert danger not in text, f"{script.name} uses {danger}"


def test_the_page_begins_with_the_default_model() -> None:
    assert 'data-default-model="global:demo"' in Browser().get("/chat/").content.decode()


def test_signing_in_leads_back_to_where_one_came_from(user: Any) -> None:
    browser = Browser()
    given = {"username": user.username, "password": PASSWORD}
    wrong = browser.post("/chat/login/", given | {"password": "wrong"})
    assert wrong.status_code == 200
    assert "password is wrong" in wrong.content.decode()
    right = browser.post("/chat/login/", given | {"next": "/chat/?prompt_version=3"})
    assert (right.status_code, right.headers["Location"]) == (302, "/chat/?prompt_version=3")
    again = browser.get("/chat/login/")
    assert (again.status_code, again.headers["Location"]) == (302, "/chat/")
    assert user.username in browser.get("/chat/").content.decode()
    out = browser.post("/chat/logout/")
    assert (out.status_code, out.headers["Location"]) == (302, "/chat/")
    assert user.username not in browser.get("/chat/").content.decode()


@pytest.mark.parametrize(
    "elsewhere", ["https://evil.example/", "//evil.example/", "javascript:alert(1)"]
)
def test_signing_in_leads_nowhere_else(user: Any, elsewhere: str) -> None:
    given = {"username": user.username, "password": PASSWORD, "next": elsewhere}
    answer = Browser().post("/chat/login/", given)
    assert answer.headers["Location"] == "/chat/"


def test_guessing_passwords_is_limited(user: Any, settings: Any) -> None:
    settings.RATE_SIGN_IN_PER_MINUTE = 1
    browser = Browser(REMOTE_ADDR="203.0.113.77")
    codes = [browser.post("/chat/login/", {"username": user.username}).status_code for _ in range(3)]
    assert codes[-1] == 429


# --- its token ----------------------------------------------------------------------------------


def test_a_token_needs_a_session_and_the_csrf_token(user: Any) -> None:
    assert Browser().post("/chat/token").status_code == 401
    assert Browser().get("/chat/token").status_code == 405
    browser = Browser(enforce_csrf_checks=True)
    browser.force_login(user)
    assert browser.post("/chat/token").status_code == 403
    browser.get("/chat/")
    sent = browser.post("/chat/token", headers={"X-CSRFToken": browser.cookies["csrftoken"].value})
    assert sent.status_code == 200
    assert sent.headers["Cache-Control"] == "no-store"


def test_the_token_lives_shortly_runs_and_reads_and_administers_nothing(client: Client) -> None:
    client.user.is_staff = True
    client.user.save()
    browser = Browser()
    browser.force_login(client.user)
    issued = browser.post("/chat/token").json()
    assert 0 < issued["expires_in"] <= 900
    headers = {"Authorization": f"Bearer {issued['access_token']}"}

    def status(method: str, path: str, **body: Any) -> int:
        answer = httpx.request(method, client.url + path, headers=headers, trust_env=False, **body)
        return answer.status_code

    assert status("POST", "/api/v1/agent/runs", json={"model": "demo", "text": "hi"}) == 202
    assert status("GET", "/api/v1/agent/threads") == 200
    assert status("GET", "/api/v1/stats/dashboard") == 403
    assert status("GET", "/api/v1/llm/prompts") == 403


# --- trying a prompt version --------------------------------------------------------------------


def test_the_page_for_a_version_is_for_staff_who_see_prompts(
    signed_in: Browser, tried: PromptVersion
) -> None:
    path = f"/chat/?prompt_version={tried.pk}"
    stranger = Browser().get(path)
    assert stranger.status_code == 302
    assert stranger.headers["Location"] == f"/chat/login/?next=/chat/%3Fprompt_version%3D{tried.pk}"
    assert signed_in.get(path).status_code == 403
    staff = Browser()
    staff.force_login(get_user_model().objects.create_superuser(f"s-{uuid4().hex[:10]}", password="x"))
    page = staff.get(path)
    assert page.status_code == 200
    assert f'data-prompt-version="{tried.pk}"' in page.content.decode()
    assert tried.prompt.name in page.content.decode()
    assert staff.get("/chat/?prompt_version=999999999").status_code == 404
    assert staff.get("/chat/?prompt_version=x").status_code == 404


def test_a_run_of_staff_uses_the_version_and_records_it(
    make_client: Callable[..., Client],
    scripted: Callable[..., Any],
    provider: FakeModel,
    tried: PromptVersion,
) -> None:
    staff = make_client(is_staff=True, is_superuser=True)
    name = f"trial-{uuid4().hex[:8]}"
    model = scripted(name).name
    accepted = staff.http.post(
        "/api/v1/agent/runs",
        json={"model": model, "text": "hi"},
        headers={"X-Prompt-Version": str(tried.pk)},
    )
    assert accepted.status_code == 202, accepted.text
    run_id = accepted.json()["run_id"]
    staff.wait_for(run_id, "completed")
    used = Run.objects.get(pk=run_id).prompt_versions
    assert used[0] == {
        "version_id": tried.pk,
        "kind": "agent_system",
        "prompt_id": tried.prompt_id,
        "name": tried.prompt.name,
        "number": 1,
    }
    assert [one["kind"] for one in used] == ["agent_system", "agent_tools"]
    (asked,) = provider.requests_for(name)
    system = asked.body["messages"][0]["content"]
    assert system.startswith(tried.content)
    plain = staff.start("hi", model=model)["run_id"]
    staff.wait_for(plain, "completed")
    assert tried.pk not in [one["version_id"] for one in Run.objects.get(pk=plain).prompt_versions]


@pytest.mark.parametrize(
    ("fields", "given", "refused"),
    [
        ({}, None, (403, "forbidden")),
        ({"is_staff": True}, None, (403, "forbidden")),
        ({"is_staff": True, "is_superuser": True}, "0", (404, "prompt_version_not_found")),
        ({"is_staff": True, "is_superuser": True}, "v2", (422, "invalid_prompt_version")),
    ],
)
def test_nobody_else_tries_a_version(
    make_client: Callable[..., Client],
    tried: PromptVersion,
    fields: dict[str, bool],
    given: str | None,
    refused: tuple[int, str],
) -> None:
    caller = make_client(**fields)
    if not fields.get("is_superuser"):
        caller.user.groups.set(Group.objects.filter(name="analyst"))
    answer = caller.http.post(
        "/api/v1/agent/runs",
        json={"model": "demo", "text": "hi"},
        headers={"X-Prompt-Version": given or str(tried.pk)},
    )
    assert (answer.status_code, answer.json()["code"]) == refused
    assert not Run.objects.filter(owner=caller.user).exists()
