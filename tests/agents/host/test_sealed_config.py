"""No binding leads to a key of something else: not when it is typed, and not where it stands already."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client as Browser

from agents.host.sealed_config import owner_of, reference_to
from agents.host_protocol import results
from agents.host_protocol.host_api import HostApi
from agents.host_protocol.manifest import FormItem, RunnerManifest
from agents.host_protocol.results import RunResult
from agents.host_protocol.run_context import AgentRunContext
from agents.models import RunnerBinding
from config.audit import key_openings
from config.audit.models import AuditEntry
from config.database import run_sync
from prompts.endpoints import secrets
from prompts.models import Endpoint, Secret
from prompts.wordings import staff_actions
from tests.support.admin_pages import posted
from tests.support.client import Client
from tests.support.fakes.mcp_host import wait_until
from tests.support.host.hosted_runs import bound, finished, reply
from tests.support.host.stage import Scripted, manifest, serving
from tests.support.log_lines import every_line

pytestmark = pytest.mark.once

CANARY = f"sk-cAnArY-{uuid4().hex}"
OWN = f"sk-own-{uuid4().hex}"
Make = Callable[..., Client]


async def tells(context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
    """A runner that repeats its settings."""
    yield results.message(context.run_id, json.dumps(context.config))


def declared() -> RunnerManifest:
    items = (FormItem("json", "extra"), FormItem("json", "deep"), FormItem("secret", "key"))
    return manifest(f"python:r{uuid4().hex[:10]}", config_schema=items)


@pytest.fixture
def foreign() -> Iterator[dict[str, str]]:
    """A reference to the key of an endpoint."""
    endpoint = Endpoint.objects.create(name=uuid4().hex, provider="a", base_url="https://example.com")
    staff_actions.rotate_secret(endpoint, CANARY)
    yield {"$secret": f"endpoint:{endpoint.pk}"}
    staff_actions.delete_endpoint(endpoint, by=None)


@pytest.fixture
def owner(make_client: Make) -> Browser:
    browser = Browser()
    browser.force_login(make_client(is_staff=True).user)
    return browser


def rows_with(text: str) -> list[str]:
    """The tables of which a row holds the text."""
    found = []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            asked = f'SELECT EXISTS (SELECT FROM "{table}" AS row WHERE row::text LIKE %s)'
            cursor.execute(asked, [f"%{text}%"])
            found += [table] if cursor.fetchone() == (True,) else []
    return found


def test_a_typed_reference_to_a_key_is_refused_by_name(
    owner: Browser, foreign: dict[str, str], make_client: Make
) -> None:
    runner = declared()
    with serving(Scripted(runner, tells)):
        fields = posted(runner.id) | {"config__extra": json.dumps(foreign), "config__key": OWN}
        page = owner.post(f"/admin/agents/runnerbinding/add/?runner_id={runner.id}", fields)
    assert "$secret cannot be entered" in page.content.decode()
    assert not RunnerBinding.objects.filter(name=fields["name"]).exists()


def test_a_stored_reference_to_another_key_is_not_opened_whoever_runs_the_runner(
    client: Client, make_client: Make, foreign: dict[str, str]
) -> None:
    config = {"tone": "calm", "extra": foreign, "key": foreign, "deep": [foreign], "unknown": foreign}
    analyst = make_client(is_staff=True)
    analyst.user.groups.set(Group.objects.filter(name="analyst"))
    with every_line() as written, bound(client.user, tells, declared(), config=config) as runner_id:
        run, frames = finished(client)
        path = f"/api/v1/agent/runners/{runner_id}/run"
        refused = analyst.http.post(path, json={"input": {"text": "context"}})
    assert run["status"] == "completed"
    assert json.loads(reply(frames)) == {"tone": "calm", "deep": [foreign]}
    assert (refused.status_code, refused.json()["code"]) == (403, "right_missing")
    assert "foreign keys left out" in written.getvalue()
    assert CANARY not in written.getvalue() + refused.text
    assert rows_with(CANARY) == []


def test_only_an_item_that_the_manifest_declares_secret_gets_its_own_key(client: Client) -> None:
    with bound(client.user, tells, runner := declared()):
        rule = RunnerBinding.objects.get(runner_id=runner.id)
        mine = owner_of(rule.pk, "key")
        secrets.store(mine, OWN)
        rule.config = {"extra": reference_to(mine), "key": reference_to(mine)}
        rule.save()
        try:
            said = wait_until(lambda: (now := json.loads(reply(finished(client)[1]))) and now)
        finally:
            Secret.objects.filter(name=mine.secret_name).delete()
    assert said == {"key": OWN}
    run_sync(key_openings.write())
    seen = AuditEntry.objects.filter(object_name=mine.secret_name, action=key_openings.ACTION)
    entry = wait_until(seen.first)
    assert (entry.object_type, entry.object_id) == ("agents.runnerbinding", str(rule.pk))


def test_the_keys_of_one_runner_do_not_follow_to_another(owner: Browser) -> None:
    first, second = declared(), declared()
    with serving(Scripted(first, tells), Scripted(second, tells)):
        fields: dict[str, Any] = posted(first.id) | {"config__key": OWN, "config__extra": "7"}
        owner.post(f"/admin/agents/runnerbinding/add/?runner_id={first.id}", fields)
        rule = RunnerBinding.objects.get(name=fields["name"])
        assert rule.config == {"extra": 7, "key": reference_to(owner_of(rule.pk, "key"))}
        change = f"/admin/agents/runnerbinding/{rule.pk}/change/"
        page = owner.post(change, fields | {"runner_id": second.id, "config__key": ""}, follow=True)
    rule.refresh_from_db()
    assert (rule.runner_id, rule.config) == (second.id, {"extra": 7})
    assert "keys entered for the other runner were removed" in page.content.decode()
    assert not Secret.objects.filter(name__startswith=f"runner-binding-{rule.pk}-").exists()
    rule.delete()


def test_a_binding_takes_no_key_of_another_with_it(owner: Browser) -> None:
    one, two = (
        RunnerBinding.objects.create(name=uuid4().hex, runner_id="python:x", is_active=False)
        for _ in range(2)
    )
    kept = secrets.store(owner_of(one.pk, "key"), OWN)
    two.config = {"key": reference_to(owner_of(one.pk, "key"))}
    two.save()
    owner.post(f"/admin/agents/runnerbinding/{two.pk}/delete/", {"post": "yes"})
    assert not RunnerBinding.objects.filter(pk=two.pk).exists()
    assert Secret.objects.filter(pk=kept.pk).exists()
    owner.post(f"/admin/agents/runnerbinding/{one.pk}/delete/", {"post": "yes"})
    assert not Secret.objects.filter(pk=kept.pk).exists()
