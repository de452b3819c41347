"""Plugin runtimes in admin: what staff enter, see and test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from pytest_django import Settings

from agents.models import PluginRuntime
from prompts.models import Secret
from tests.agents.runtimes.plugins.runtime_rows import old_runtime_process, wait_for_status
from tests.conftest import Server
from tests.support.admin_pages import sign_in
from tests.support.fakes.mcp_host import wait_until

ADD = "/admin/agents/pluginruntime/add/"
TOKEN = "ToKeN-" + uuid4().hex


@pytest.fixture
def staff() -> Any:
    return sign_in(is_superuser=True)[0]


@pytest.fixture
def old_runtime() -> Iterator[str]:
    """The address of a runtime of the first generation."""
    with old_runtime_process() as url:
        yield url


def facts(**given: Any) -> dict[str, Any]:
    name = f"r-{uuid4().hex[:8]}"
    return {"name": name, "transport": "websocket", "profile": "auto", "is_active": "on"} | given


def enter(staff: Any, **given: Any) -> PluginRuntime:
    form = facts(**given)
    response = staff.post(ADD, form)
    assert response.status_code == 302, response.content.decode()[-2000:]
    return PluginRuntime.objects.get(name=form["name"])


def test_staff_enter_a_runtime_and_see_it_live(staff: Any, server: Server, old_runtime: str) -> None:
    row = enter(staff, url=old_runtime, new_token=TOKEN)
    try:
        wait_until(lambda: PluginRuntime.objects.get(pk=row.pk).runners)
        wait_for_status(row, "connected")
        page = staff.get(f"/admin/agents/pluginruntime/{row.pk}/change/").content.decode()
        assert "plugin:old/probe/default" in page
        assert "<p>old/bad/name/x: A plugin runner&#x27;s id is plugin:author/name/runner.</p>" in page
        assert "1 (2 passed over)" in staff.get("/admin/agents/pluginruntime/").content.decode()
        assert TOKEN not in page
        assert f"{TOKEN[:4]}***{TOKEN[-4:]}" in page
        tested = staff.post(f"/admin/agents/pluginruntime/{row.pk}/test/").content.decode()
        assert "A worker is connected: 1 runner, profile v1." in tested
        assert "Passed over: ?/?/?: plugin_author is missing" in tested
    finally:
        staff.post(f"/admin/agents/pluginruntime/{row.pk}/delete/", {"post": "yes"})
    assert not PluginRuntime.objects.filter(pk=row.pk).exists()
    assert not Secret.objects.filter(name=f"plugin:{row.pk}").exists()


def test_the_test_button_connects_where_no_worker_is(staff: Any, old_runtime: str) -> None:
    row = enter(staff, url=old_runtime, is_active="")
    asked = staff.get(f"/admin/agents/pluginruntime/{row.pk}/test/").content.decode()
    assert "Connect to" in asked
    tested = staff.post(f"/admin/agents/pluginruntime/{row.pk}/test/").content.decode()
    assert "Connected: 1 runner, profile v1." in tested
    assert "Passed over: ?/?/?: plugin_author is missing" in tested
    row.url = "ws://127.0.0.1:1/"
    row.save()
    failed = staff.post(f"/admin/agents/pluginruntime/{row.pk}/test/").content.decode()
    assert "Nothing answers at this address." in failed


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"url": "http://127.0.0.1:1"}, "ws://"),
        ({"url": "ws://user:secret@host/x"}, "ws://"),
        ({"url": ""}, "Enter the runtime"),
        ({"url": "ws://h/x", "name": "With Space"}, "small letters"),
        ({"transport": "stdio", "command": ""}, "Enter the program"),
        ({"transport": "stdio", "command": "/bin/sh"}, "RUNNER_COMMANDS"),
        ({"url": "ws://h/x", "new_token": "a\nb"}, "printable"),
    ],
)
def test_bad_input_is_named(staff: Any, given: dict[str, Any], told: str) -> None:
    response = staff.post(ADD, facts(**given))
    assert response.status_code == 200
    assert told in response.content.decode()


def test_a_stored_token_goes_to_no_other_address(staff: Any) -> None:
    row = enter(staff, url="ws://127.0.0.1:1/a", new_token=TOKEN, is_active="")
    change = f"/admin/agents/pluginruntime/{row.pk}/change/"
    moved = facts(name=row.name, url="ws://127.0.0.1:2/a")
    moved.pop("is_active")
    assert "entered again" in staff.post(change, moved).content.decode()
    assert staff.post(change, moved | {"remove_token": "on"}).status_code == 302
    row.refresh_from_db()
    assert (row.url, row.token_id) == ("ws://127.0.0.1:2/a", None)


def test_allowed_programs_may_be_entered(staff: Any, settings: Settings) -> None:
    settings.RUNNER_COMMANDS = ["/usr/bin/lbp rt *"]
    row = enter(
        staff, transport="stdio", command="/usr/bin/lbp", args="rt\n-s", is_active="", directory="/srv"
    )
    assert (row.command, row.args, row.directory) == ("/usr/bin/lbp", ["rt", "-s"], "/srv")
