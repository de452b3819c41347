"""The page Runners in a real Chromium: a plugin's runner comes, is bound, and goes with its runtime."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from uuid import uuid4

import pytest
from playwright.sync_api import expect

from agents.models import PluginRuntime, RunnerBinding
from tests.agents.runtimes.plugins.conftest import enter_runtime as enter_runtime
from tests.agents.runtimes.plugins.runs import wait_for
from tests.agents.runtimes.plugins.runtime_rows import forget, old_runtime_process
from tests.browser.visits import Visit
from tests.conftest import Server
from tests.support.fakes.mcp_host import wait_until

OLD = "plugin:old/probe/default"
PAGE = "/admin/agents/runnerbinding/runners/"


@pytest.fixture
def no_rule_left() -> Iterator[None]:
    """However the test ends: with a rule for it the page offers no binding of the runner."""
    yield
    RunnerBinding.objects.filter(runner_id=OLD).delete()


@pytest.mark.usefixtures("no_rule_left")
def test_the_page_says_which_runners_are_there_now(
    visit: Visit, server: Server, enter_runtime: Callable[..., PluginRuntime]
) -> None:
    with old_runtime_process() as url:
        row = enter_runtime(url=url)
        wait_for(server, OLD)
        page = visit.go(PAGE)
        shown = page.locator("[data-runner='" + OLD + "']")
        expect(shown).to_contain_text("Old probe")
        expect(shown.get_by_text("available", exact=True)).to_be_visible()
        visit.picture("runners")
        shown.get_by_role("link", name="Bind it").click()
        page.locator("[name=name]").fill(f"Only {row.name}")
        page.locator("[name=thread_id]").fill(str(uuid4()))
        visit.picture("binding")
        page.get_by_role("button", name="Save", exact=True).click()
        expect(page.get_by_text("was added successfully")).to_be_visible()
        visit.go(PAGE)
        expect(shown).to_contain_text(f"Serves: Only {row.name}.")
        forget(server, row)
    gone = shown.get_by_text("not available")  # what runtimes offer is remembered for half a second
    wait_until(lambda: visit.go(PAGE) and gone.is_visible(), 10)
