"""Admin's sidebar: the pages that the account may see, in the groups in which people look for them.

Drawn from admin's own registry and rights, so a page that is registered appears by itself (under
"More" until it is placed here), and never to somebody who may not see it.
"""

from __future__ import annotations

from typing import Any, Final

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse

_GROUPS: Final[tuple[tuple[str, tuple[tuple[str, str], ...]], ...]] = (
    (
        "Conversations",
        (
            ("conversations.metrics", "monitoring"),
            ("conversations.thread", "forum"),
            ("conversations.run", "play_circle"),
            ("conversations.interrupt", "approval"),
            ("conversations.feedback", "thumb_up"),
        ),
    ),
    ("Prompts", (("prompts.prompt", "edit_note"),)),
    (
        "Models",
        (
            ("prompts.modelmapping", "hub"),
            ("prompts.endpoint", "dns"),
            ("prompts.appsetting", "tune"),
        ),
    ),
    (
        "Limits",
        (
            ("prompts.tier", "stairs"),
            ("prompts.entitlement", "badge"),
            ("prompts.quota", "speed"),
            ("prompts.quotause", "data_usage"),
            ("prompts.budget", "account_balance_wallet"),
            ("conversations.spend", "payments"),
        ),
    ),
    (
        "Tools",
        (
            ("agents.mcpserver", "extension"),
            ("agents.toolpolicy", "rule"),
            ("agents.knowledgebase", "menu_book"),
            ("agents.knowledgedocument", "description"),
            ("agents.exercise", "fitness_center"),
            ("agents.libraryversion", "library_books"),
        ),
    ),
    (
        "Runners",
        (
            ("agents.runnerbinding", "alt_route"),
            ("agents.pluginruntime", "developer_board"),
            ("agents.hostcall", "receipt_long"),
            ("agents.hoststate", "database"),
            ("agents.hostblob", "folder"),
            ("agents.hostartifact", "draft"),
        ),
    ),
    (
        "Accounts",
        (
            ("accounts.user", "person"),
            ("auth.group", "group"),
            ("accounts.apitoken", "key"),
            ("audit.auditentry", "history"),
        ),
    ),
)

# pages that are no model's: (the model whose right and place they share, title, icon, url)
_PAGES: Final[dict[str, tuple[str, str, str]]] = {
    "agents.runnerbinding": ("Runners", "smart_toy", "admin:agents_runners")
}


def sidebar(request: HttpRequest) -> list[dict[str, Any]]:
    """unfold's navigation: groups of `{title, icon, link}`; a group without pages is left out."""
    pages = {
        page["model"]._meta.label_lower: page
        for app in admin.site.get_app_list(request)
        for page in app["models"]
        if page.get("admin_url")
    }
    groups = [
        {"title": title, "separator": True, "items": _items(pages, placed)} for title, placed in _GROUPS
    ]
    more = _items(pages, [(label, "web") for label in list(pages)])
    groups.append({"title": "More", "separator": True, "items": more})
    return [group for group in groups if group["items"]]


def _items(pages: dict[str, Any], placed: Any) -> list[dict[str, Any]]:
    """The items of the pages that are there, which are taken out of `pages`."""
    return [item for label, icon in placed if label in pages for item in _places(pages, label, icon)]


def _places(pages: dict[str, Any], label: str, icon: str) -> list[dict[str, Any]]:
    page = pages.pop(label)
    listed = {"title": page["name"], "icon": icon, "link": page["admin_url"]}
    if label not in _PAGES:
        return [listed]
    title, its_icon, url = _PAGES[label]
    link = reverse(url)  # below the list's own, which would be marked as well
    listed["active"] = lambda request: page["admin_url"] in request.path and link not in request.path
    return [{"title": title, "icon": its_icon, "link": link}, listed]
