"""An account that staff delete in admin leaves nothing of what was said in it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth import get_user_model
from django.test import Client as Browser

from conversations.admin import accounts
from conversations.models import Thread
from tests.conversations.upkeep.erasing import (
    keep_in_every_room,
    new_canary,
    ran,
    run_again,
    tables_with,
)
from tests.support.client import Client

pytestmark = pytest.mark.once


@pytest.fixture
def staff(make_client: Callable[..., Client]) -> Client:
    return make_client(is_staff=True, is_superuser=True)


@pytest.fixture
def browser(staff: Client) -> Browser:
    browser = Browser()
    browser.force_login(staff.user)
    return browser


def test_deleting_an_account_erases_what_it_said(
    client: Client, staff: Client, browser: Browser
) -> None:
    canary = new_canary()
    run = ran(client, canary)
    run_again(staff, run)
    keep_in_every_room(run, canary)
    path = f"/admin/accounts/user/{client.user.pk}/delete/"
    asked = browser.get(path)
    assert "runs: 1" in asked.content.decode()
    assert browser.post(path, {"post": "yes"}).status_code == 302
    assert tables_with(canary) == set()
    assert not get_user_model().objects.filter(pk=client.user.pk).exists()


def test_deleting_from_the_list_erases_as_well(client: Client, browser: Browser) -> None:
    canary = new_canary()
    ran(client, canary)
    sent = {"action": "delete_selected", "_selected_action": str(client.user.pk), "post": "yes"}
    assert browser.post("/admin/accounts/user/", sent).status_code == 302
    assert tables_with(canary) == set()


def test_what_is_too_much_for_a_page_is_left_to_the_command(
    client: Client, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accounts, "MOST", 2)
    ran(client, "hello")
    path = f"/admin/accounts/user/{client.user.pk}/delete/"
    assert "manage.py erase_user" in browser.get(path).content.decode()
    browser.post(path, {"post": "yes"})
    assert Thread.objects.filter(owner=client.user).exists()
    assert get_user_model().objects.filter(pk=client.user.pk).exists()


def test_only_a_superuser_deletes_a_superuser_from_the_list(make_client: Callable[..., Client]) -> None:
    owner, chief = make_client(is_staff=True), make_client(is_staff=True, is_superuser=True)
    browser = Browser()
    browser.force_login(owner.user)
    sent = {"action": "delete_selected", "_selected_action": str(chief.user.pk), "post": "yes"}
    assert browser.post("/admin/accounts/user/", sent).status_code == 403
    assert get_user_model().objects.filter(pk=chief.user.pk, is_active=True).exists()
