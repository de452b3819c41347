"""Roles of staff: groups with permissions that `manage.py migrate` creates and updates.

A role is a group of the same name. Assign it to an account in admin together with "staff status",
which is required to sign in there. Every migration resets these four groups; for other permissions
create another group. Superusers have every permission without a role.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from django.contrib.auth.models import Group, Permission

_VIEW: Final = ("view",)
_WRITE: Final = ("view", "add", "change")
_ALL: Final = ("view", "add", "change", "delete")
_CONVERSATIONS: Final[dict[str, tuple[str, ...]]] = {
    "conversations.thread": _VIEW,
    "conversations.message": _VIEW,
    "conversations.run": _VIEW,
    "conversations.attachment": _VIEW,
    "conversations.feedback": _VIEW,
}

OURS: Final = ("accounts", "auth", "audit", "prompts", "conversations", "agents")
ROLES: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "owner": dict.fromkeys(OURS, _ALL),
    "staff": _CONVERSATIONS
    | {
        "prompts.prompt": _WRITE,
        "prompts.promptversion": _VIEW,
        "prompts.promptlabel": _ALL,
        "prompts.modelmapping": _VIEW,
        "agents.exercise": _ALL,
        "agents.knowledgebase": _ALL,
        "agents.knowledgedocument": _ALL,
        "conversations.metrics": _VIEW,
        "conversations.spend": _VIEW,
        "agents.libraryversion": _VIEW,
        "audit.auditentry": _VIEW,
    },
    "analyst": _CONVERSATIONS
    | {"conversations.interrupt": _VIEW, "conversations.metrics": _VIEW, "conversations.spend": _VIEW},
    "support": _CONVERSATIONS
    | {
        "conversations.run": ("view", "change"),
        "conversations.interrupt": ("view", "change"),
        "prompts.quotause": _VIEW,
    },
}
"""The permissions of each role, by app or by `app.model`; `change` allows cancelling a run and deciding
an interrupt."""


def sync_roles(apps: Iterable[str] = OURS) -> list[str]:
    """Give the groups exactly these permissions in these apps; return the names of changed groups."""
    labels = tuple(apps)
    rows = Permission.objects.filter(content_type__app_label__in=labels).select_related("content_type")
    permissions = {
        (row.content_type.app_label, row.content_type.model, row.codename.partition("_")[0]): row.pk
        for row in rows
    }
    changed = []
    for name, granted in ROLES.items():
        group, created = Group.objects.get_or_create(name=name)
        expected = {
            pk
            for (app, model, verb), pk in permissions.items()
            if verb in granted.get(f"{app}.{model}", granted.get(app, ()))
        }
        if _sync_group(group, expected, labels) or created:
            changed.append(name)
    return changed


def _sync_group(group: Group, expected: set[int], labels: tuple[str, ...]) -> bool:
    """Add and remove permissions, in one statement each; return whether anything changed."""
    links: Any = Group.permissions.through.objects
    present_links = links.filter(group=group, permission__content_type__app_label__in=labels)
    present = set(present_links.values_list("permission_id", flat=True))
    if present - expected:
        present_links.filter(permission_id__in=present - expected).delete()
    links.bulk_create(
        [Group.permissions.through(group=group, permission_id=pk) for pk in expected - present],
        ignore_conflicts=True,
    )
    return present != expected


def sync_roles_of(sender: Any, **_: Any) -> None:
    """Update the groups after the migration of an app, when its permissions exist."""
    if sender.label in OURS:
        sync_roles((sender.label,))
