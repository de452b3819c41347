"""What each role may see and do in admin, as groups that `manage.py migrate` makes and keeps.

A role is a group of the same name; an account gets it in admin, together with "staff status", which
lets it sign in there at all. These four groups are written anew at every migration: for other rights
make a group of your own. A superuser may do everything and needs none.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from django.contrib.auth.models import Group, Permission

_LOOK: Final = ("view",)
_WRITE: Final = ("view", "add", "change")
_ALL: Final = ("view", "add", "change", "delete")
_SAID: Final[dict[str, tuple[str, ...]]] = {
    "conversations.thread": _LOOK,
    "conversations.message": _LOOK,
    "conversations.run": _LOOK,
    "conversations.attachment": _LOOK,
    "conversations.feedback": _LOOK,
}

OURS: Final = ("accounts", "auth", "audit", "prompts", "conversations", "agents")
ROLES: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "owner": dict.fromkeys(OURS, _ALL),
    "staff": _SAID
    | {
        "prompts.prompt": _WRITE,
        "prompts.promptversion": _LOOK,
        "prompts.promptlabel": _ALL,
        "prompts.modelmapping": _LOOK,
        "agents.exercise": _ALL,
        "agents.knowledgebase": _ALL,
        "agents.knowledgedocument": _ALL,
        "conversations.metrics": _LOOK,
        "conversations.spend": _LOOK,
        "agents.libraryversion": _LOOK,
        "audit.auditentry": _LOOK,
    },
    "analyst": _SAID
    | {"conversations.interrupt": _LOOK, "conversations.metrics": _LOOK, "conversations.spend": _LOOK},
    "support": _SAID
    | {
        "conversations.run": ("view", "change"),
        "conversations.interrupt": ("view", "change"),
        "prompts.quotause": _LOOK,
    },
}
"""Role → what it may do, by app or by `app.model`; `change` of a run is to cancel it, of an interrupt
to decide on it."""


def keep_roles(apps: Iterable[str] = OURS) -> list[str]:
    """Make the groups have exactly these rights in these apps; the names of those that changed."""
    labels = tuple(apps)
    rights = {
        (right.content_type.app_label, right.content_type.model, right.codename.partition("_")[0]): right
        for right in Permission.objects.filter(content_type__app_label__in=labels).select_related(
            "content_type"
        )
    }
    changed = []
    for name, granted in ROLES.items():
        group, made = Group.objects.get_or_create(name=name)
        wanted = {
            right.pk
            for (app, model, verb), right in rights.items()
            if verb in granted.get(f"{app}.{model}", granted.get(app, ()))
        }
        if _give(group, wanted, labels) or made:
            changed.append(name)
    return changed


def _give(group: Group, wanted: set[int], labels: tuple[str, ...]) -> bool:
    """Whether anything had to be given or taken, in one statement each."""
    links: Any = Group.permissions.through.objects
    mine = links.filter(group=group, permission__content_type__app_label__in=labels)
    held = set(mine.values_list("permission_id", flat=True))
    if held - wanted:
        mine.filter(permission_id__in=held - wanted).delete()
    links.bulk_create(
        [Group.permissions.through(group=group, permission_id=pk) for pk in wanted - held],
        ignore_conflicts=True,
    )
    return held != wanted


def keep_roles_of(sender: Any, **_: Any) -> None:
    """After an app was migrated: its rights exist now, so give them."""
    if sender.label in OURS:
        keep_roles((sender.label,))
