"""After every `migrate` the event log has the partitions of this week and the next ones."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class ConversationsConfig(AppConfig):
    name = "conversations"

    def ready(self) -> None:
        post_migrate.connect(_ensure_partitions, sender=self)


def _ensure_partitions(**_: Any) -> None:
    from config import database
    from conversations.log import partitions

    database.run_sync(partitions.ensure_partitions(datetime.now(UTC)))
