"""Deleting an account in admin erases all its content, as `manage.py erase_user` does."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, Final

from django.contrib import admin
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest

from config.auth.admin import UserAdmin
from config.auth.models import User
from config.process import installation
from conversations.upkeep import holdings
from conversations.upkeep.retention import erase_user

MOST: Final = 20_000
_TOO_MUCH: Final = (
    "{name} holds {count:,} rows, too many to erase while a page waits: run {manage} erase_user"
)

admin.site.unregister(User)


@admin.register(User)
class AccountAdmin(UserAdmin):
    """Accounts. The confirmation of a deletion lists the account's stored data, kind by kind."""

    def get_deleted_objects(
        self, objs: Iterable[User], request: HttpRequest
    ) -> tuple[list[Any], dict[str, int], set[str], list[str]]:
        """Return counts, not every row's name; too many rows for a page count as protected."""
        listed: list[Any] = []
        summed: dict[str, int] = {}
        protected: list[str] = []
        refused: set[str] = set()
        for user in objs:
            if not self.has_delete_permission(request, user):
                refused.add("account")
            counts = {
                kind.name: count for kind, count in holdings.count_rows(user.pk).items() if not kind.kept
            }
            listed += [str(user), [f"{name}: {count:,}" for name, count in counts.items() if count]]
            summed = {name: summed.get(name, 0) + count for name, count in counts.items()}
            if sum(counts.values()) > MOST:
                protected.append(
                    _TOO_MUCH.format(name=user, count=sum(counts.values()), manage=installation.MANAGE)
                )
        return listed, {name: count for name, count in summed.items() if count}, refused, protected

    def delete_model(self, request: HttpRequest, obj: User) -> None:
        """Erase after admin's own transaction: erasing is many short ones, which others see."""
        transaction.on_commit(partial(erase_user, obj.pk))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        for user in queryset:
            self.delete_model(request, user)
