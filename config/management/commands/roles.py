"""`manage.py roles`: give the four roles their rights again, or list them."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from config.auth.models import User
from config.auth.roles import ROLES, keep_roles


class Command(BaseCommand):
    help = "Make the groups owner, staff, analyst and support have their rights; give a role to a user."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--give", nargs=2, metavar=("ROLE", "USERNAME"), help="and let them into admin"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        changed = keep_roles()
        self.stdout.write(
            f"Rights written anew: {', '.join(changed)}." if changed else "All as it should be."
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
