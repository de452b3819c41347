"""Remove folders of deleted conversations within ten minutes, and of runs without one after a day."""

from __future__ import annotations

import asyncio
import shutil
import time
from pathlib import Path
from typing import Final
from uuid import UUID

import structlog
from django.conf import settings

from conversations.threads.ownership import find_existing

log = structlog.get_logger(__name__)

_EVERY_S: Final = 600.0
_AT_ONCE: Final = 1_000
_YOUNG_S: Final = 86_400.0


def folder_of(conversation: UUID) -> Path:
    """Return the folder of a conversation's program, unless the binding names another."""
    return Path(settings.VAR_DIR).resolve() / "harness" / conversation.hex


async def keep_removing_folders() -> None:
    """Remove folders now and every ten minutes; an attempt that fails is repeated then."""
    while True:
        try:
            await remove_old_folders()
        except Exception as error:  # the database or the disk is not available
            log.warning("tidying harness folders failed", error=type(error).__name__)
        await asyncio.sleep(_EVERY_S)


async def remove_old_folders() -> int:
    """Remove the folders of deleted conversations; return their number."""
    folders = await asyncio.to_thread(_find_folders)
    removed = 0
    for start in range(0, len(folders), _AT_ONCE):
        batch = dict(list(folders.items())[start : start + _AT_ONCE])
        existing_ids = await find_existing(list(batch))
        for conversation, folder in batch.items():
            if conversation not in existing_ids:
                await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
                removed += 1
    return removed


def _find_folders() -> dict[UUID, Path]:
    """Return the folders by conversation; remove folders of runs without one that are a day old."""
    root = folder_of(UUID(int=0)).parent
    found: dict[UUID, Path] = {}
    for folder in root.iterdir() if root.is_dir() else ():
        try:
            found[UUID(hex=folder.name)] = folder
        except ValueError:
            if folder.name.startswith("run-") and time.time() - folder.stat().st_mtime > _YOUNG_S:
                shutil.rmtree(folder, ignore_errors=True)
    return found
