"""One Chromium for the tests of this folder, and a page in it in which staff have signed in."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth import get_user_model
from django.db import connections
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from tests.browser.visits import PASSWORD, QUIET, WAIT_MS, Visit, sign_in
from tests.conftest import Server


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    """Ended before a test of another folder begins, which could not start a loop beside Playwright's."""
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        pytest.skip(f"none of {', '.join(names)} is installed")
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")  # Playwright's loop runs in the tests' own thread
        browser = playwright.chromium.launch(executable_path=found, args=list(QUIET))
        yield browser
        browser.close()
        connections.close_all()  # what was opened beside the loop is out of reach once it has ended


@pytest.fixture
def staff(chromium: Browser) -> Any:
    """A superuser with a password."""
    return get_user_model().objects.create_superuser(f"staff-{uuid4().hex[:8]}", password=PASSWORD)


@pytest.fixture(scope="package")
def window(chromium: Browser) -> BrowserContext:
    """One for all tabs: the thirty files of an admin page stay in its cache from test to test."""
    context = chromium.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(WAIT_MS)
    return context


@pytest.fixture
def tab(window: BrowserContext, server: Server) -> Iterator[Page]:
    """A page in which nobody has signed in, and of which nothing but files is remembered."""
    page = window.new_page()
    everything = {"origin": server.url, "storageTypes": "all"}
    window.new_cdp_session(page).send("Storage.clearDataForOrigin", everything)
    window.clear_cookies()
    yield page
    page.close()


@pytest.fixture
def visit(tab: Page, server: Server, staff: Any) -> Iterator[Visit]:
    """A page in which staff have signed in; nothing may have gone wrong at its end."""
    sign_in(tab.context, server.url, staff)
    seen = Visit(tab, server.url)
    seen.watch()
    yield seen
    tab.close()  # what it still had to say is heard
    assert seen.wrongs == []
