"""`manage.py roles`: reset the permissions of the four roles, and give a role to a user."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from config.auth.models import User
from config.auth.roles import ROLES, sync_roles


class Command(BaseCommand):
    help = "Reset the permissions of owner, staff, analyst and support; give a role to a user."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--give",
            nargs=2,
            metavar=("ROLE", "USERNAME"),
            help="and allow the user to sign in to admin",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        changed = sync_roles()
        self.stdout.write(
            f"Permissions written anew: {', '.join(changed)}." if changed else "All as it should be."
        )
        if options["give"]:
            self._give(*options["give"])

    def _give(self, role: str, username: str) -> None:
        from django.contrib.auth.models import Group

        if role not in ROLES:
            raise CommandError(f"There is no role {role}; there are: {', '.join(ROLES)}.")
        user = User.objects.filter(username=username).first()
        if user is None:
            raise CommandError(f"There is no user {username}.")
        user.is_staff = True
        user.save(update_fields=["is_staff"])
        user.groups.add(Group.objects.get(name=role))
        self.stdout.write(f"{username} has the role {role} and may sign in to admin.")
