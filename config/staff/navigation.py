"""The sidebar of admin: groups of the pages that the account may view.

It is built from admin's registry and permissions, so a registered page appears by itself (under "More"
until it has a place here), and only to accounts that may view it.
"""

from __future__ import annotations

from typing import Any, Final

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse

_GROUPS: Final[dict[str, dict[str, str]]] = {
    "Conversations": {
        "conversations.metrics": "monitoring",
        "conversations.thread": "forum",
        "conversations.run": "play_circle",
        "conversations.interrupt": "approval",
        "conversations.feedback": "thumb_up",
    },
    "Prompts": {"prompts.prompt": "edit_note"},
    "Models": {"prompts.modelmapping": "hub", "prompts.endpoint": "dns", "prompts.appsetting": "tune"},
    "Limits": {
        "prompts.tier": "stairs",
        "prompts.entitlement": "badge",
        "prompts.quota": "speed",
        "prompts.quotause": "data_usage",
        "prompts.budget": "account_balance_wallet",
        "conversations.spend": "payments",
    },
    "Tools": {
        "agents.mcpserver": "extension",
        "agents.toolpolicy": "rule",
        "agents.knowledgebase": "menu_book",
        "agents.knowledgedocument": "description",
        "agents.exercise": "fitness_center",
        "agents.libraryversion": "library_books",
    },
    "Runners": {
        "agents.runnerbinding": "alt_route",
        "agents.pluginruntime": "developer_board",
        "agents.hostcall": "receipt_long",
        "agents.hoststate": "database",
        "agents.hostblob": "folder",
        "agents.hostartifact": "draft",
    },
    "Accounts": {
        "accounts.user": "person",
        "auth.group": "group",
        "accounts.apitoken": "key",
        "audit.auditentry": "history",
    },
}
"""The icon of each page, by group."""

# pages without a model: (the model whose permission and place they share, title, icon, url)
_PAGES: Final[dict[str, tuple[str, str, str]]] = {
    "agents.runnerbinding": ("Runners", "smart_toy", "admin:agents_runners")
}


def build_sidebar(request: HttpRequest) -> list[dict[str, Any]]:
    """Return unfold's navigation: groups of `{title, icon, link}`, without empty groups."""
    pages = {
        page["model"]._meta.label_lower: page
        for app in admin.site.get_app_list(request)
        for page in app["models"]
        if page.get("admin_url")
    }
    groups = [(title, _take(pages, icons)) for title, icons in _GROUPS.items()]
    groups.append(("More", _take(pages, dict.fromkeys(pages, "web"))))
    return [{"title": title, "separator": True, "items": items} for title, items in groups if items]


def _take(pages: dict[str, Any], icons: dict[str, str]) -> list[dict[str, Any]]:
    """Remove the pages that have an icon from `pages` and return their items."""
    return [
        item for label, icon in icons.items() if label in pages for item in _item(pages, label, icon)
    ]


def _item(pages: dict[str, Any], label: str, icon: str) -> list[dict[str, Any]]:
    page = pages.pop(label)
    listed = {"title": page["name"], "icon": icon, "link": page["admin_url"]}
    if label not in _PAGES:
        return [listed]
    title, its_icon, url = _PAGES[label]
    link = reverse(url)  # below the list's own, which would be marked as well
    listed["active"] = lambda request: page["admin_url"] in request.path and link not in request.path
    return [{"title": title, "icon": its_icon, "link": link}, listed]
