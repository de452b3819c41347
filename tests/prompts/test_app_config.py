"""`GET/POST /api/v1/llm/app/config` (specs/text-run.md §4): settings, and a key in one direction."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client as Browser
from pytest_django import Settings
from structlog.testing import capture_logs

from prompts import app_settings
from prompts.endpoints import secrets, web_search_key
from prompts.endpoints.secrets import Purpose
from prompts.models import AppSetting, Secret
from tests.support.client import Client

pytestmark = pytest.mark.once

CONFIG = "/api/v1/llm/app/config"
KEY = "exa-abcdefghijklmnop-9876"


@pytest.fixture(autouse=True)
def config_kept() -> Iterator[None]:
    """The settings and the key, put back afterwards."""
    before = list(AppSetting.objects.all())
    AppSetting.objects.all().delete()
    yield
    AppSetting.objects.all().delete()
    AppSetting.objects.bulk_create(before)
    web_search_key.store_key("", by=None)
    app_settings.clear_cache()


@pytest.fixture
def staff(make_client: Callable[..., Client]) -> Client:
    return make_client(is_staff=True)


def read(client: Client) -> dict[str, Any]:
    answer = client.http.get(CONFIG).json()
    assert (answer["code"], answer["msg"]) == (200, "success")
    data: dict[str, Any] = answer["data"]
    return data


def write(client: Client, values: Any) -> Any:
    return client.http.post(CONFIG, json=values)


DEFAULTS = {
    "default_result_mode": "raw_passthrough",
    "default_model": "",
    "prompt_mode": "server",
    "history_summary": False,
    "structured_output": "fail",
    "show_tool_visible": False,
    "prompt_label": "",
    "web_search_enabled": False,
    "web_search_provider": "exa",
    "web_search_exa_api_key_masked": "",
    "web_search_exa_api_key_source": "none",
}


def test_a_new_installation_has_the_defaults(staff: Client) -> None:
    assert read(staff) == DEFAULTS


def test_what_is_not_named_stays(staff: Client) -> None:
    changed = write(staff, {"web_search_enabled": True})
    assert (changed.status_code, changed.json()["data"]) == (
        200,
        DEFAULTS | {"web_search_enabled": True},
    )
    write(staff, {"default_result_mode": "auto"})
    expected = DEFAULTS | {"web_search_enabled": True, "default_result_mode": "auto"}
    assert read(staff) == expected
    assert write(staff, {}).json()["data"] == expected
    assert AppSetting.objects.get(pk="default_result_mode").updated_by == staff.user


def test_the_key_is_sealed_shown_masked_and_removed(staff: Client, settings: Settings) -> None:
    with capture_logs() as lines:
        answer = write(staff, {"web_search_exa_api_key": f" {KEY}\n"})
    assert KEY not in answer.text + str(lines)
    assert answer.json()["data"] == DEFAULTS | {
        "web_search_exa_api_key_masked": "exa-***9876",
        "web_search_exa_api_key_source": "db",
    }
    stored = Secret.objects.get(name="web_search_exa")
    assert KEY not in stored.sealed
    assert secrets.open_secret(secrets.get_sealed(stored), Purpose.WEB_SEARCH.of(stored.name)) == KEY
    settings.EXA_API_KEY = "12345678"
    assert read(staff)["web_search_exa_api_key_source"] == "db"
    write(staff, {"web_search_exa_api_key": ""})
    assert not Secret.objects.filter(name="web_search_exa").exists()
    shown = read(staff)
    assert shown["web_search_exa_api_key_masked"] == "********"
    assert shown["web_search_exa_api_key_source"] == "env"


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"surprise": True}, "setting_unknown"),
        ({"nul\x00": True}, "setting_unknown"),
        ({"web_search_exa_api_key_masked": "x"}, "setting_unknown"),
        ({"web_search_enabled": "true"}, "setting_invalid"),
        ({"default_result_mode": "loud"}, "setting_invalid"),
        ({"default_model": "nobody"}, "setting_invalid"),
        ({"prompt_mode": None}, "setting_invalid"),
        ({"web_search_exa_api_key": "x" * 513}, "key_invalid"),
        ({"web_search_exa_api_key": "line\nbreak"}, "key_invalid"),
        ({"web_search_exa_api_key": "schlüssel"}, "key_invalid"),
        ({"web_search_exa_api_key": 7}, "key_invalid"),
        ({"web_search_exa_api_key": None}, "key_invalid"),
        ([], "invalid_json"),
        ("x", "invalid_json"),
    ],
)
def test_a_bad_change_changes_nothing(staff: Client, values: Any, code: str) -> None:
    if isinstance(values, dict):
        values = {"prompt_mode": "passthrough"} | values
    refused = write(staff, values)
    assert (refused.status_code, refused.json()["code"]) == (422, code)
    assert read(staff) == DEFAULTS
    assert "schlüssel" not in refused.text


def test_only_staff_read_and_write_the_config(
    make_client: Callable[..., Client], client: Client
) -> None:
    guest = make_client(is_guest=True)
    for who, code in ((client, "llm_admin_required"), (guest, "ANONYMOUS_ACCESS_DENIED")):
        for refused in (who.http.get(CONFIG), write(who, {"web_search_enabled": True})):
            assert (refused.status_code, refused.json()["code"]) == (403, code)
    assert client.http.get(CONFIG, headers={"Authorization": ""}).status_code == 401


def test_staff_enter_and_remove_the_key_in_admin() -> None:
    user = get_user_model().objects.create_user(username="keys", is_staff=True, is_superuser=True)
    browser, page = Browser(), "/admin/prompts/appsetting/"
    browser.force_login(user)
    form = {
        "default_result_mode": "raw_passthrough",
        "prompt_mode": "server",
        "structured_output": "fail",
        "web_search_provider": "exa",
    }
    refused = browser.post(page, form | {"web_search_exa_api_key": "k" * 513})
    assert list(refused.context["form"].errors) == ["web_search_exa_api_key"]
    saved = browser.post(page, form | {"web_search_exa_api_key": KEY}, follow=True)
    assert b"exa-***9876" in saved.content
    assert KEY.encode() not in saved.content
    browser.post(page, form)
    assert web_search_key.get_masked_key().source == "db"
    browser.post(page, form | {"remove_web_search_exa_api_key": "on"})
    assert web_search_key.get_masked_key().source == "none"
