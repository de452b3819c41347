"""Admin as staff use it: signing in, and what its forms send."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from django.contrib.auth import get_user_model
from django.test import Client as Browser

from prompts.models import Endpoint


def cookie(browser: Browser) -> dict[str, str]:
    """The session of a browser, for a request that goes to the real server."""
    return {"Cookie": "; ".join(f"{name}={one.value}" for name, one in browser.cookies.items())}


def sign_in(**fields: Any) -> tuple[Browser, Any]:
    """A browser in which a new member of staff has signed in, and who that is."""
    user = get_user_model().objects.create_user(username=uuid4().hex, is_staff=True, **fields)
    browser = Browser()
    browser.force_login(user)
    return browser, user


def address(endpoint: Endpoint | None = None, **more: str) -> dict[str, str]:
    """What the browser sends when the form of an endpoint is saved."""
    sent = {"name": endpoint.name if endpoint else uuid4().hex, "provider": "acme", "key": ""}
    facts = {
        "dialect": "openai.chat_completions",
        "base_url": "https://api.example.com/v1",
        "is_active": "on",
    }
    return sent | facts | more


def posted(runner_id: str, **more: str) -> dict[str, str]:
    """What the browser sends when the form of a binding is saved."""
    return {
        "name": uuid4().hex, "runner_id": runner_id, "position": "5", "config__url": "x",
        "calls_per_minute": "60", "delivery": "stream", "model": "", "dialect": "", "user": "",
        "tier": "", "thread_id": "", "further_models": "", "tools": "a\nb", "knowledge_bases": "",
        "storage": "plugin",
        "platform_actions": "", "state_scopes": "", "deadline_s": "",
    } | more  # fmt: skip
