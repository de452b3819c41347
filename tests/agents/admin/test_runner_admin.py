"""Runners in admin: the page, bindings that explain themselves, the audit, what runners keep."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client as Browser

from agents.host import runner_catalogue, sealed_config
from agents.host.grants import Binding
from agents.host_protocol import parameters
from agents.host_protocol.manifest import FormItem, RunnerManifest
from agents.models import HostArtifact, HostBlob, HostState, KnowledgeBase, RunnerBinding
from prompts.models import ModelMapping, Secret
from tests.support.admin_pages import posted
from tests.support.client import Client
from tests.support.host.stage import Scripted, Stage, manifest, run, serving

pytestmark = pytest.mark.once


async def _nothing(context: Any, host: Any) -> Any:
    return
    yield


@pytest.fixture
def browser(make_client: Callable[..., Client]) -> Browser:
    made = Browser()
    made.force_login(make_client(is_staff=True, is_superuser=True).user)
    return made


@pytest.fixture
def asking() -> Iterator[str]:
    """A runner whose form asks for something."""
    declared = manifest(
        f"python:r{uuid4().hex[:8]}",
        config_schema=(
            FormItem("string", "url", {"en_US": "Address"}, required=True),
            FormItem("integer", "depth", default=3),
            FormItem("boolean", "deep"),
            FormItem("select", "mode", options=[{"name": "calm", "label": {"en_US": "Calm"}}]),
            FormItem("array[string]", "words"),
            FormItem("model-fallback-selector", "model"),
            FormItem("knowledge-base-multi-selector", "bases"),
            FormItem("future-thing", "odd"),
            FormItem("string", "api-key"),
        ),
    )
    with serving(Scripted(declared, _nothing)):
        yield declared.id


def _met(rule: RunnerBinding) -> tuple[Binding, RunnerManifest]:
    """The rule as a run meets it, and its runner's manifest."""
    binding = Binding(id=rule.pk, name=rule.name, config=rule.config)
    return binding, next(one for one in runner_catalogue.list_manifests() if one.id == rule.runner_id)


KEY = "sk-of-a-runner-0123456789"
ADD = "/admin/agents/runnerbinding/add/"


def test_the_page_says_which_runners_there_are_and_how_they_do(
    browser: Browser, asking: str, make_stage: Callable[..., Stage]
) -> None:
    gone = RunnerBinding.objects.create(
        name=uuid4().hex, runner_id="plugin:gone/away/default", is_active=False
    )
    stage = make_stage()
    run(stage.session(of=manifest(asking)).call("state_set", parameters.SetState("actor", "k", 1)))
    try:
        page = browser.get("/admin/agents/runnerbinding/runners/").content.decode()
    finally:
        gone.delete()
    assert asking in page
    assert "plugin:gone/away/default" in page
    assert "not available" in page
    assert "builtin:chat" in page
    assert "1 Host calls, 0 refused" in page
    plain = Browser().get("/admin/agents/runnerbinding/runners/")
    assert plain.status_code == 302


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"knowledge_bases": "nowhere"}, "There is no nowhere: write of the names of knowledge bases"),
        ({"further_models": "global:gone"}, "write of the names of model mappings"),
        ({"config__url": ""}, "This field is required."),
        ({"config__depth": "deep"}, "Enter a whole number."),
        ({"config__mode": "wild"}, "Select a valid choice."),
        ({"storage": "plugin\ncloud"}, "There is no cloud: write of plugin, workspace, binding."),
        ({"state_scopes": "galaxy"}, "There is no galaxy"),
        ({"dialect": "french"}, "There is no protocol french: write one of text, run-agent-input"),
        ({"runner_id": "chat"}, "python:name or builtin:name"),
        ({"config__odd": '{"$secret": "endpoint:2"}'}, "$secret cannot be entered"),
        ({"config__odd": '[{"a": {"$secret": 1}}]'}, "$secret cannot be entered"),
    ],
)
def test_a_binding_that_cannot_work_is_refused_with_the_fix(
    browser: Browser, asking: str, more: dict[str, str], words: str
) -> None:
    page = browser.post(f"{ADD}?runner_id={asking}", posted(asking) | more)
    assert page.status_code == 200
    assert words in page.content.decode().replace("&quot;", '"')


def test_a_binding_is_saved_with_its_lists_and_the_runners_own_settings(
    browser: Browser, asking: str
) -> None:
    key = uuid4().hex[:12]
    ModelMapping.objects.create(key=key)
    base = KnowledgeBase.objects.create(name=uuid4().hex)
    fields: dict[str, Any] = posted(asking) | {
        "config__url": "https://x", "config__depth": "4", "config__mode": "calm", "config__deep": "on",
        "config__words": "a\n\n b ", "config__model": [f"global:{key}"], "config__bases": [base.name],
        "config__odd": '{"k": [1]}', "config__api-key": KEY,
    }  # fmt: skip
    page = browser.post(f"{ADD}?runner_id={asking}", fields)
    assert page.status_code == 302, page.content.decode()[:3_000]
    rule = RunnerBinding.objects.get(name=fields["name"])
    try:
        assert (rule.tools, rule.storage, rule.is_active) == (["a", "b"], ["plugin"], False)
        assert KEY not in json.dumps(rule.config)
        told = run(sealed_config.open_config(*_met(rule)))
        assert told.pop("api-key") == KEY
        rule.config.pop("api-key")
        assert rule.config == told == {
            "url": "https://x", "depth": 4, "deep": True, "mode": "calm", "words": ["a", "b"],
            "model": {"primary": f"global:{key}", "fallbacks": []}, "bases": [base.name],
            "odd": {"k": [1]},
        }  # fmt: skip
        change = f"/admin/agents/runnerbinding/{rule.pk}/change/"
        shown = browser.get(change).content.decode()
        assert "Settings of Tester" in shown
        assert 'value="https://x"' in shown
        assert KEY not in shown
        assert "empty keeps it" in shown
        again = browser.post(change, fields | {"config__mode": "", "config__api-key": ""})
        assert again.status_code == 302
        rule.refresh_from_db()
        assert "mode" not in rule.config
        assert run(sealed_config.open_config(*_met(rule)))["api-key"] == KEY
        odd = browser.post(change, fields | {"config__api-key": "schlüssel"})
        assert "printable ASCII" in odd.content.decode()
        assert browser.get("/admin/agents/runnerbinding/").status_code == 200
    finally:
        gone = browser.post(f"/admin/agents/runnerbinding/{rule.pk}/delete/", {"post": "yes"})
    assert gone.status_code == 302
    assert not Secret.objects.filter(name__startswith=f"runner-binding-{rule.pk}-").exists()


def test_a_runner_that_asks_for_settings_is_asked_about_after_the_first_save(
    browser: Browser, asking: str
) -> None:
    fields = {name: value for name, value in posted(asking).items() if not name.startswith("config__")}
    answer = browser.post(ADD, fields)
    rule = RunnerBinding.objects.get(name=fields["name"])
    change = f"/admin/agents/runnerbinding/{rule.pk}/change/"
    rule.delete()
    assert answer["Location"] == change


def test_what_runners_did_and_keep_is_shown_and_the_audit_cannot_be_changed(
    browser: Browser, make_stage: Callable[..., Stage]
) -> None:
    stage = make_stage()
    session = stage.session()
    run(session.call("state_set", parameters.SetState("actor", "seen", [1])))
    state = HostState.objects.get(owner=stage.user)
    artifact = HostArtifact.objects.create(
        owner=stage.user, run_id=stage.run.pk, runner_id="r", artifact_type="f", mime_type="text/plain",
        name="n", size=1, sha256="", content=b"x",
    )  # fmt: skip
    for page in (
        f"hostcall/?q={stage.run.pk}",
        "hoststate/",
        f"hoststate/{state.pk}/change/",
        "hostblob/",
        "hostartifact/",
        f"hostartifact/{artifact.pk}/change/",
    ):
        answer = browser.get(f"/admin/agents/{page}")
        assert answer.status_code == 200, page
    assert browser.get("/admin/agents/hostcall/add/").status_code == 403
    upload = SimpleUploadedFile("k.txt", b"bytes")
    key = uuid4().hex
    fields = {"area": "workspace", "holder": "files", "key": key, "upload": upload}
    assert browser.post("/admin/agents/hostblob/add/", fields).status_code == 302
    blob = HostBlob.objects.get(key=key)
    assert (bytes(blob.content), blob.size) == (b"bytes", 5)
    assert browser.get(f"/admin/agents/hostblob/{blob.pk}/change/").status_code == 200
