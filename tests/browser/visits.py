"""A page in Chromium, and what it did that it should not have done."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.conf import settings
from django.test import Client as Sessions
from playwright.sync_api import BrowserContext, ConsoleMessage, Page, Request, Response

KEY = "sk-browser-abcdefghijklmnop-0123"
PASSWORD = "a long enough passphrase"
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-quic",
    "--no-first-run",
    "--disable-component-update",
    "--disable-sync",
)
WAIT_MS = 10_000


@dataclass
class Visit:
    """A page, and what it did that it should not have done."""

    page: Page
    url: str
    wrongs: list[str] = field(default_factory=list)

    def watch(self) -> None:
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.wrongs.append(f"page error: {error}"))
        self.page.on("request", self._asked)
        self.page.on("response", self._answered)

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.wrongs.append(f"console {message.type}: {message.text}")

    def _asked(self, request: Request) -> None:
        if not request.url.startswith((f"{self.url}/", "data:", "blob:")):
            self.wrongs.append(f"request to {request.url}")

    def _answered(self, response: Response) -> None:
        if response.status >= 400:
            self.wrongs.append(f"{response.status} of {response.url}")

    def go(self, path: str) -> Page:
        self.page.goto(f"{self.url}{path}")
        return self.page

    def picture(self, name: str) -> None:
        """See that nothing sticks out on the right and no key is shown, and keep what is seen."""
        keep(self.page, name)
        assert KEY not in self.page.content()
        width = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert self.page.evaluate(width) <= 0, f"{name} is wider than the window"


def keep(page: Page, name: str) -> None:
    """Keep a picture of the page in the folder PICTURES_DIR, where somebody wants to look at it."""
    if folder := os.environ.get("PICTURES_DIR"):
        page.screenshot(path=Path(folder) / f"{name}.png")


def sign_in(context: BrowserContext, url: str, user: Any) -> None:
    """Give the browser a session, as the form does; the form itself has tests of its own."""
    sessions = Sessions()
    sessions.force_login(user)
    cookie = sessions.cookies[settings.SESSION_COOKIE_NAME]
    context.add_cookies([{"name": cookie.key, "value": cookie.value, "url": url}])
