"""The table of all addresses, as Django knows it."""

from __future__ import annotations

from collections.abc import Iterator

from django.urls import URLPattern, URLResolver, get_resolver

ELSEWHERE = ("/admin/", "/chat/")
"""Pages for people: see tests/config/auth/test_roles.py and tests/agents/api/test_chat_page.py."""


def routes(
    patterns: list[URLPattern | URLResolver] | None = None, before: str = "/"
) -> Iterator[tuple[str, URLPattern]]:
    """Every route of the URL table, whole, with its pattern."""
    for one in get_resolver().url_patterns if patterns is None else patterns:
        route = f"{before}{one.pattern}"
        if isinstance(one, URLResolver):
            yield from routes(one.url_patterns, route)
        else:
            yield route, one


def table() -> Iterator[str]:
    """Each method of each route, as the URL table has them; ANY where a view states no need."""
    for route, pattern in routes():
        if route != "/" and not route.startswith(ELSEWHERE):
            needs = getattr(getattr(pattern.callback, "cls", pattern.callback), "needs", {"ANY": None})
            yield from (f"{method} {route}" for method in needs)
