"""Roles: what each may see and do in admin, for every page that is registered or our own.

The matrix is a literal: a page that somebody registers must be placed in it, or the first test fails.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from django.contrib import admin
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db.models.signals import pre_save  # only the audit log listens to it
from django.test import Client as Browser

from config.auth.roles import ROLES, sync_roles
from tests.config.auth.url_table import routes
from tests.support.client import Client

pytestmark = pytest.mark.once

# What each role sees (r), may also write (w), or what it does not see at all (-).
MATRIX = {
    #                              owner staff analyst support
    "accounts.apitoken": "w---",
    "accounts.user": "w---",
    "agents.exercise": "ww--",
    "agents.hostartifact": "r---",
    "agents.hostblob": "w---",
    "agents.hostcall": "r---",
    "agents.hoststate": "r---",
    "agents.knowledgebase": "ww--",
    "agents.knowledgedocument": "ww--",
    "agents.libraryversion": "rr--",
    "agents.mcpserver": "w---",
    "agents.pluginruntime": "w---",
    "agents.runnerbinding": "w---",
    "agents.toolpolicy": "w---",
    "audit.auditentry": "rr--",
    "auth.group": "w---",
    "conversations.interrupt": "r-rr",
    "conversations.metrics": "rrr-",
    "conversations.run": "rrrr",
    "conversations.spend": "rrr-",
    "conversations.thread": "rrrr",
    "prompts.appsetting": "w---",
    "prompts.budget": "w---",
    "prompts.endpoint": "w---",
    "prompts.entitlement": "w---",
    "prompts.modelmapping": "wr--",
    "prompts.prompt": "ww--",
    "prompts.quota": "w---",
    "prompts.quotause": "r--r",
    "prompts.tier": "w---",
}
NAMES = ("owner", "staff", "analyst", "support")
NOT_WATCHED = {
    "prompts.appsetting",
    "conversations.interrupt",
    "conversations.metrics",
    "conversations.run",
    "conversations.spend",
    "conversations.thread",
    "audit.auditentry",
}
"""Pages on which no row is edited, or whose action writes the audit log itself."""


def registered() -> dict[str, Any]:
    return {model._meta.label_lower: page for model, page in admin.site._registry.items()}


@pytest.fixture(scope="module")
def browsers(database: None) -> dict[str, Browser]:
    """For each role a browser in which somebody of it is signed in."""
    found = {}
    for role in NAMES:
        user = get_user_model().objects.create_user(username=f"{role}-{uuid4().hex}", is_staff=True)
        user.groups.add(Group.objects.get(name=role))
        found[role] = Browser()
        found[role].force_login(user)
    return found


PAGES = sorted(set(registered()) & set(MATRIX))
CELLS = [(role, label, MATRIX[label][place]) for label in PAGES for place, role in enumerate(NAMES)]


def list_of(label: str) -> str:
    return f"/admin/{label.replace('.', '/')}/"


def test_every_registered_page_has_its_place_in_the_matrix() -> None:
    assert set(registered()) - set(MATRIX) == set()


def test_the_roles_are_those_of_the_matrix() -> None:
    assert tuple(ROLES) == NAMES


@pytest.mark.parametrize(("role", "label", "right"), CELLS)
def test_a_page_is_seen_by_those_who_have_the_right(
    browsers: dict[str, Browser], role: str, label: str, right: str
) -> None:
    browser = browsers[role]
    response = browser.get(list_of(label))
    assert response.status_code == (403 if right == "-" else 200)
    app = browser.get("/admin/").content.decode()
    assert (f'href="{list_of(label)}"' in app) is (right != "-")
    adding = browser.get(f"{list_of(label)}add/").status_code
    may_add = right == "w" and label != "prompts.appsetting"
    assert adding == (200 if may_add else 403)


@pytest.mark.parametrize("role", NAMES)
def test_what_a_role_may_not_see_is_not_in_its_sidebar(browsers: dict[str, Browser], role: str) -> None:
    response = browsers[role].get("/admin/")
    links = {
        str(item["link"]) for group in response.context["sidebar_navigation"] for item in group["items"]
    }
    place = NAMES.index(role)
    pages = {list_of(label) for label in PAGES}
    assert links & pages == {list_of(label) for label in PAGES if MATRIX[label][place] != "-"}


@pytest.mark.parametrize("role", NAMES)
def test_pages_about_one_thing_refuse_whom_the_list_refuses(
    browsers: dict[str, Browser], role: str
) -> None:
    place = NAMES.index(role)
    for label in PAGES:
        if MATRIX[label][place] == "-":
            for path in (f"{uuid4()}/change/", f"{uuid4()}/delete/", "1/change/", "1/history/"):
                status = browsers[role].get(f"{list_of(label)}{path}").status_code
                assert status in (302, 403, 404), (label, path)


# Pages of our own beside Django's, each with its method: who is let in.
OUR_PAGES = {
    "GET conversations/thread/<path:object_id>/export-json/": "++++",
    "GET conversations/thread/<path:object_id>/export-markdown/": "++++",
    "GET conversations/run/<path:object_id>/rerun/": "++--",
    "GET conversations/run/<path:object_id>/cancel/": "+--+",
    "GET conversations/interrupt/<path:object_id>/decide/": "+--+",
    "GET prompts/prompt/preview/": "++--",
    "GET prompts/prompt/import/": "++--",
    "GET prompts/prompt/export/": "++--",
    "GET prompts/prompt/<path:object_id>/export.json": "++--",
    "GET prompts/prompt/<path:object_id>/versions/<int:number>.md": "++--",
    "GET prompts/prompt/<path:object_id>/compare/": "++--",
    "GET prompts/prompt/<path:object_id>/split/": "++--",
    "POST prompts/prompt/<path:object_id>/labels/": "++--",
    "GET prompts/prompt/<path:object_id>/versions/<int:number>/activate/": "++--",
    "GET prompts/prompt/<path:object_id>/deactivate/": "++--",
    "GET prompts/endpoint/<path:object_id>/test/": "+---",
    "GET agents/mcpserver/<path:object_id>/test/": "+---",
    "GET agents/pluginruntime/<path:object_id>/test/": "+---",
    "GET agents/runnerbinding/runners/": "+---",
    "GET agents/exercise/publish/": "++--",
}
DJANGO_S = re.compile(r"_(changelist|add|history|delete|change)$")


def our_pages() -> set[str]:
    """The pages of registered models that Django does not make by itself."""
    lists = tuple(map(list_of, registered()))
    return {
        route.removeprefix("/admin/")
        for route, pattern in routes()
        if route.startswith(lists) and pattern.name and not DJANGO_S.search(pattern.name)
    }


def test_every_page_of_our_own_has_its_place() -> None:
    assert our_pages() == {line.partition(" ")[2] for line in OUR_PAGES}


@pytest.mark.parametrize("line", OUR_PAGES)
def test_pages_of_our_own_ask_for_the_right_too(browsers: dict[str, Browser], line: str) -> None:
    method, _, route = line.partition(" ")
    path = re.sub(r"<\w+:\w+>", "1", f"/admin/{route}")
    statuses = {role: browsers[role].generic(method, path).status_code for role in NAMES}
    assert "".join("-" if statuses[role] == 403 else "+" for role in NAMES) == OUR_PAGES[line], statuses
    assert Browser().generic(method, path).status_code == 302


def test_every_page_on_which_something_is_edited_is_watched_by_the_audit_log() -> None:
    unseen = {
        label
        for label, page in registered().items()
        if not pre_save.has_listeners(page.model) and label not in NOT_WATCHED
    }
    assert unseen == set()


def test_somebody_without_a_role_sees_no_page() -> None:
    user = get_user_model().objects.create_user(username=uuid4().hex, is_staff=True)
    browser = Browser()
    browser.force_login(user)
    response = browser.get("/admin/")
    assert response.status_code == 200
    assert response.context["sidebar_navigation"] == []
    assert {browser.get(list_of(label)).status_code for label in PAGES} == {403}


# --- what a role may do -------------------------------------------------------------------------


def test_only_a_superuser_touches_a_superuser(browsers: dict[str, Browser]) -> None:
    users = get_user_model().objects
    chief = users.create_superuser(username=f"chief-{uuid4().hex}", password="a long enough passphrase")
    plain = users.create_user(username=f"plain-{uuid4().hex}")
    owner = browsers["owner"]
    assert owner.post(f"/admin/accounts/user/{chief.pk}/password/", {}).status_code == 403
    assert owner.post(f"/admin/accounts/user/{chief.pk}/delete/", {"post": "yes"}).status_code == 403
    assert owner.post(f"/admin/accounts/user/{chief.pk}/change/", {"username": "x"}).status_code == 403
    sent = {"username": plain.username, "is_active": "on", "is_superuser": "on", "is_staff": "on"}
    assert owner.post(f"/admin/accounts/user/{plain.pk}/change/", sent).status_code == 302
    plain.refresh_from_db()
    assert (plain.is_staff, plain.is_superuser) == (True, False)


# --- made and kept ------------------------------------------------------------------------------


def test_a_right_that_was_taken_or_added_by_hand_is_put_back() -> None:
    group = Group.objects.get(name="analyst")
    before = set(group.permissions.values_list("pk", flat=True))
    group.permissions.clear()
    group.permissions.add(*Group.objects.get(name="owner").permissions.all()[:3])
    assert sync_roles() == ["analyst"]
    assert set(group.permissions.values_list("pk", flat=True)) == before
    assert sync_roles() == []


def test_the_command_gives_a_role(make_client: Callable[..., Client], capsys: Any) -> None:
    user = make_client().user
    call_command("roles", give=["support", user.username])
    user.refresh_from_db()
    assert user.is_staff
    assert user.has_perm("conversations.change_run")
    assert not user.has_perm("prompts.view_endpoint")
    assert "support" in capsys.readouterr().out
    with pytest.raises(CommandError, match="There is no role king"):
        call_command("roles", give=["king", user.username])


@pytest.mark.parametrize("page", ["runnerbinding/runners/", "runnerbinding/", "runnerbinding/add/"])
def test_the_sidebar_marks_the_page_that_is_open_and_no_other(
    browsers: dict[str, Browser], page: str
) -> None:
    response = browsers["owner"].get(f"/admin/agents/{page}")
    items = [item for group in response.context["sidebar_navigation"] for item in group["items"]]
    marked = [str(item["title"]) for item in items if item["active"]]
    assert marked == ["Runners" if page.endswith("runners/") else "Runner bindings"]
