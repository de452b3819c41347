"""The audit log: who changed what, nothing of it secret, and nothing that can be changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.db import IntegrityError, connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from agents.models.mcp import McpServer
from agents.tools.mcp.secret_pairs import store_pairs
from config.audit.models import AuditEntry
from config.audit.recording import acting_as, record, to_json_value
from config.audit.retention import delete_old
from config.auth.bearer import create_api_token, revoke
from config.database import run_sync
from prompts import app_settings
from prompts.models import AppSetting, Endpoint, ModelMapping, Prompt, PromptKind, Quota
from prompts.wordings import releases, staff_actions
from tests.support.client import Client as ApiClient

KEY = "sk-audit-abcdefghijklmnop-4567"


@pytest.fixture
def owner() -> Any:
    return get_user_model().objects.create_user(f"owner-{uuid4().hex}", is_staff=True, is_superuser=True)


@pytest.fixture
def browser(owner: Any) -> Client:
    client = Client()
    client.force_login(owner)
    return client


@pytest.fixture
def prompt() -> Prompt:
    made = Prompt.objects.create(name=uuid4().hex, kind=PromptKind.SYSTEM)
    staff_actions.save_version(made, "One.", author=None)
    staff_actions.save_version(made, "Two.", author=None)
    return made


def entries(thing: Any) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """What the log says of a thing, the oldest first."""
    found = AuditEntry.objects.filter(object_type=thing._meta.label_lower, object_id=str(thing.pk))
    return [(entry.action, entry.before, entry.after) for entry in found.order_by("id")]


def newest(thing: Any) -> AuditEntry:
    return AuditEntry.objects.filter(object_id=str(thing.pk)).latest("id")


def test_what_a_page_changes_is_recorded_with_who_before_and_after(browser: Client, owner: Any) -> None:
    name = uuid4().hex
    sent = {"name": name, "provider": "acme", "dialect": "openai.chat_completions", "key": KEY}
    sent |= {"base_url": "https://api.example.com/v1", "is_active": "on", "needs_key": "on"}
    assert browser.post("/admin/prompts/endpoint/add/", sent).status_code == 302
    endpoint = Endpoint.objects.get(name=name)
    added, keyed = entries(endpoint)
    assert added[0] == "added"
    assert added[2]["base_url"] == "https://api.example.com/v1"
    assert keyed == ("key changed", {"key": ""}, {"key": "sk-a***4567"})
    url = f"/admin/prompts/endpoint/{endpoint.pk}/change/"
    browser.post(url, sent | {"key": "", "provider": "other"})
    entry = newest(endpoint)
    assert (entry.action, entry.before, entry.after) == (
        "changed",
        {"provider": "acme"},
        {"provider": "other"},
    )
    assert (entry.actor, entry.actor_name, entry.object_name) == (owner, owner.username, name)
    browser.post(f"/admin/prompts/endpoint/{endpoint.pk}/delete/", {"post": "yes"})
    gone = AuditEntry.objects.filter(object_name=name).latest("id")
    assert (gone.action, gone.before["provider"], gone.actor) == ("deleted", "other", owner)


def test_saving_what_did_not_change_records_nothing(browser: Client) -> None:
    mapping = ModelMapping.objects.create(key=f"m{uuid4().hex[:8]}")
    quota = Quota.objects.create(family=mapping.key, runs_per_day=3)
    sent = {"family": quota.family, "runs_per_day": "3"}
    assert browser.post(f"/admin/prompts/quota/{quota.pk}/change/", sent).status_code == 302
    assert [action for action, *_ in entries(quota)] == ["added"]


def test_a_part_is_recorded_with_its_whole(owner: Any) -> None:
    endpoint = Endpoint.objects.create(name=uuid4().hex, provider="a", base_url="https://example.com")
    mapping = ModelMapping.objects.create(key=f"m{uuid4().hex[:8]}")
    with acting_as(owner):
        candidate = mapping.candidates.create(endpoint=endpoint, model="gpt")
        candidate.model = "gpt-2"
        candidate.save()
        candidate.delete()
    assert [action for action, *_ in entries(mapping)] == [
        "added",
        "added model candidate",
        "changed model candidate",
        "deleted model candidate",
    ]
    assert newest(mapping).actor == owner
    assert entries(mapping)[2][1:] == ({"model": "gpt"}, {"model": "gpt-2"})


def test_prompts_labels_splits_and_activations_are_recorded(prompt: Prompt, owner: Any) -> None:
    one, two = prompt.versions.order_by("number")
    staff_actions.activate_version(two, by=owner)
    releases.move_label(prompt, "staging", one, by=owner)
    releases.move_label(prompt, "staging", two, by=owner)
    releases.split(prompt, one, 25, by=owner)
    releases.end_split(prompt, by=owner)
    staff_actions.activate_version(one, by=owner)
    staff_actions.deactivate(prompt, by=owner)
    assert [action for action, *_ in entries(prompt)] == [
        "added",
        "saved",
        "saved",
        "activated",
        "label moved",
        "label moved",
        "split set",
        "split ended",
        "rolled back",
        "deactivated",
    ]
    moved, split = entries(prompt)[5], entries(prompt)[6]
    assert moved[1:] == ({"staging": "v1"}, {"staging": "v2"})
    assert split[2] == {"split": "v1 for 25 %"}
    assert newest(prompt).actor == owner


def test_no_secret_is_ever_in_the_log(owner: Any) -> None:
    with acting_as(owner):
        endpoint = Endpoint.objects.create(name=uuid4().hex, provider="a", base_url="https://a.example")
        staff_actions.rotate_secret(endpoint, KEY, by=owner)
        server = McpServer.objects.create(label=f"m{uuid4().hex[:8]}", url="https://mcp.example")
        store_pairs(server, "headers", {"Authorization": f"Bearer {KEY}"}, by=owner)
        token, text = create_api_token(owner, "audited")
        revoke(token)
        owner.set_password("another passphrase that is secret")
        owner.save()
    said = str(
        list(AuditEntry.objects.filter(actor=owner).values())
        + list(AuditEntry.objects.filter(object_id=str(owner.pk)).values())
    )
    for secret in (KEY, text, token.digest, owner.password, "another passphrase"):
        assert secret not in said
    assert "Bearer sk-a***4567" in said
    assert newest(token).action == "revoked"
    assert newest(owner).after == {"password": "changed (not shown)"}


def test_what_staff_change_over_the_api_is_recorded_with_who(
    make_client: Callable[..., ApiClient], prompt: Prompt
) -> None:
    staff = make_client(is_staff=True)
    sent = {"content": "Over the API.", "note": "By a program.", "description": "Changed."}
    response = staff.http.put(f"/api/v1/llm/prompts/{prompt.pk}", json=sent)
    assert response.status_code == 200, response.text
    changed, saved = AuditEntry.objects.filter(
        object_id=str(prompt.pk), object_type="prompts.prompt"
    ).order_by("id")[3:]
    assert (changed.action, changed.after) == ("changed", {"description": "Changed."})
    assert (saved.action, saved.after["note"]) == ("saved", "By a program.")
    assert changed.actor_id == saved.actor_id == staff.user.pk
    assert saved.request_id == response.headers["X-Request-Id"]


def test_a_role_that_is_given_or_taken_is_recorded(browser: Client, owner: Any) -> None:
    user = get_user_model().objects.create_user(f"member-{uuid4().hex}", is_staff=True)
    role = Group.objects.get(name="analyst")
    url = f"/admin/accounts/user/{user.pk}/change/"
    sent = {"username": user.username, "is_active": "on", "is_staff": "on", "groups": str(role.pk)}
    moment = {"date_joined_0": "2026-01-01", "date_joined_1": "00:00:00"}
    assert browser.post(url, sent | moment).status_code == 302
    assert browser.post(url, {**sent, **moment, "groups": []}).status_code == 302
    given, taken = entries(user)[-2:]
    assert given == ("groups added", {}, {"groups": ["analyst"]})
    assert taken == ("groups removed", {"groups": ["analyst"]}, {})
    assert newest(user).actor == owner


def test_of_a_person_the_log_says_only_that_something_changed() -> None:
    user = get_user_model().objects.create_user(f"p-{uuid4().hex}", email="someone@example.com")
    user.email = "other@example.com"
    user.save()
    assert entries(user)[-1][1:] == (
        {"email": "changed (not shown)"},
        {"email": "changed (not shown)"},
    )
    said = str(list(AuditEntry.objects.filter(object_id=str(user.pk)).values()))
    assert user.username not in said
    assert "example.com" not in said


def test_settings_are_recorded_by_name(owner: Any) -> None:
    before = list(AppSetting.objects.filter(pk="web_search_enabled"))
    value = app_settings.get("web_search_enabled")
    try:
        app_settings.change("web_search_enabled", not value, by=owner)
        entry = AuditEntry.objects.filter(object_id="web_search_enabled", actor=owner).get()
        assert (entry.before, entry.after) == (
            {"web_search_enabled": value},
            {"web_search_enabled": not value},
        )
    finally:
        AppSetting.objects.filter(pk="web_search_enabled").delete()
        AppSetting.objects.bulk_create(before)
        app_settings.clear_cache()


def test_an_entry_can_be_neither_changed_nor_deleted(prompt: Prompt) -> None:
    entry = newest(prompt)
    for work in (
        lambda: AuditEntry.objects.filter(pk=entry.pk).update(action="nothing"),
        lambda: AuditEntry.objects.filter(pk=entry.pk).delete(),
    ):
        with pytest.raises(IntegrityError, match="only grows"), transaction.atomic():
            work()
    assert newest(prompt).action == entry.action


def test_the_log_outlives_the_account_of_the_actor(prompt: Prompt) -> None:
    actor = get_user_model().objects.create_user(f"gone-{uuid4().hex}", is_staff=True)
    staff_actions.activate_version(prompt.versions.get(number=1), by=actor)
    actor.delete()
    assert (newest(prompt).actor_id, newest(prompt).actor_name) == (None, actor.username)


def test_a_change_that_is_rolled_back_leaves_no_entry(prompt: Prompt) -> None:
    before = len(entries(prompt))
    with transaction.atomic():
        record("activated", prompt)
        transaction.set_rollback(True)
    assert len(entries(prompt)) == before


def test_values_are_cut_and_plain() -> None:
    cut = to_json_value("x" * 3_000)
    assert len(cut) < 2_100
    assert cut.endswith("(3000 characters)")
    assert to_json_value({"a": [1, None, "\x00"]}) == {"a": [1, None, "�"]}


# --- the page -----------------------------------------------------------------------------------


def test_the_page_shows_finds_and_filters(browser: Client, prompt: Prompt, owner: Any) -> None:
    staff_actions.activate_version(prompt.versions.get(number=1), by=owner)
    page = browser.get(f"/admin/audit/auditentry/?q={prompt.name}")
    assert f'href="/admin/prompts/prompt/{prompt.pk}/change/"' in page.content.decode()
    found = browser.get(f"/admin/audit/auditentry/?q={owner.username}&did=activated").context["cl"]
    assert [entry.object_name for entry in found.result_list] == [prompt.name]
    none = browser.get(f"/admin/audit/auditentry/?q={prompt.name}&kind=prompts.endpoint").context["cl"]
    assert list(none.result_list) == []
    shown = browser.get(f"/admin/audit/auditentry/{newest(prompt).pk}/change/").content.decode()
    assert f"{prompt.name} v1" in shown
    assert 'name="_save"' not in shown


def test_the_list_costs_the_same_however_many_entries_there_are(browser: Client, prompt: Prompt) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            browser.get(f"/admin/audit/auditentry/?q={prompt.name}")
        assert not any("COUNT(*)" in query["sql"] for query in captured.captured_queries)
        return len(captured)

    queries()
    before = queries()
    for number in range(6):
        staff_actions.save_version(prompt, f"More {number}.", author=None)
    assert queries() == before


def test_an_account_sees_entries_only_about_what_it_may_see(prompt: Prompt) -> None:
    endpoint = Endpoint.objects.create(name=uuid4().hex, provider="a", base_url="https://a.example")
    user = get_user_model().objects.create_user(f"staff-{uuid4().hex}", is_staff=True)
    user.groups.add(Group.objects.get(name="staff"))
    client = Client()
    client.force_login(user)
    assert prompt.name in client.get(f"/admin/audit/auditentry/?q={prompt.name}").content.decode()
    found = client.get(f"/admin/audit/auditentry/?q={endpoint.name}").context["cl"]
    assert list(found.result_list) == []
    direct = client.get(f"/admin/audit/auditentry/{newest(endpoint).pk}/change/")
    assert direct.status_code == 302


def test_markup_in_a_name_is_shown_and_not_run(browser: Client) -> None:
    evil = f"<script>alert('{uuid4().hex}')</script>"
    prompt = Prompt.objects.create(name=evil, kind=PromptKind.SYSTEM)
    for path in (f"?q={prompt.pk}", f"{newest(prompt).pk}/change/"):
        assert evil not in browser.get(f"/admin/audit/auditentry/{path}").content.decode()


def aged(thing: Any, days: int) -> AuditEntry:
    """An entry of so many days ago; the log itself refuses to move one."""
    record("changed", thing, after={"days": days})
    made = newest(thing)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(
            "UPDATE audit_auditentry SET at = now() - make_interval(days => %s) WHERE id = %s",
            [days, made.pk],
        )
    return made


def test_entries_past_their_days_are_forgotten_and_only_if_that_is_set(
    prompt: Prompt, settings: Any
) -> None:
    old, young = aged(prompt, 400), aged(prompt, 300)
    settings.AUDIT_DAYS = 0
    assert run_sync(delete_old()) == 0
    settings.AUDIT_DAYS = 365
    assert run_sync(delete_old()) >= 1
    left = AuditEntry.objects.filter(pk__in=[old.pk, young.pk])
    assert [entry.pk for entry in left] == [young.pk]


@pytest.mark.parametrize("said", ["", "0", "-1", "365", "many"])
def test_an_entry_within_its_days_cannot_be_deleted_whatever_a_transaction_says(
    prompt: Prompt, said: str
) -> None:
    entry = aged(prompt, 300)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT set_config('parley.audit_days', %s, true)", [said])
        with pytest.raises(IntegrityError, match="only grows"), transaction.atomic():
            AuditEntry.objects.filter(pk=entry.pk).delete()
    assert AuditEntry.objects.filter(pk=entry.pk).exists()
