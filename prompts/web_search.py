"""The key of the web search: sealed like every key, shown masked; else the one in EXA_API_KEY."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import structlog
from django.conf import settings
from django.db import transaction

from config.audit.recording import record
from config.auth.models import User
from config.database import connection
from config.errors import InvalidRequest
from prompts import secrets
from prompts.models import AppSetting, Secret
from prompts.remembered import Remembered
from prompts.secrets import Purpose, Sealed

log = structlog.get_logger(__name__)

LONGEST_KEY: Final = 512
_NAME: Final = "web_search_exa"
_OWNER: Final = Purpose.WEB_SEARCH.of(_NAME)


@dataclass(frozen=True, slots=True)
class KeyShown:
    """What may be shown of the key, and where it comes from."""

    masked: str
    source: Literal["db", "env", "none"]


def key_shown() -> KeyShown:
    """The key in use, masked."""
    stored = Secret.objects.filter(name=_NAME).first()
    if stored is not None:
        return KeyShown(stored.mask, "db")
    if settings.EXA_API_KEY:
        return KeyShown(secrets.mask(settings.EXA_API_KEY), "env")
    return KeyShown("", "none")


def check_key(key: object) -> str:
    """The key without white space round it; InvalidRequest `key_invalid` when it cannot be one."""
    if not isinstance(key, str) or len(key) > LONGEST_KEY:
        raise InvalidRequest(
            f"A key is a text of at most {LONGEST_KEY} characters; an empty one removes it.",
            code="key_invalid",
            field="web_search_exa_api_key",
        )
    key = key.strip()
    if key:
        secrets.check_key(key)
    return key


@transaction.atomic
def store_key(key: str, *, by: User | None) -> None:
    """Seal the key in place of the present one; without one (empty) EXA_API_KEY counts again."""
    key = check_key(key)
    before = key_shown()
    if key:
        secrets.store(_OWNER, key)
    else:
        Secret.objects.filter(name=_NAME).delete()
    transaction.on_commit(_sealed.forget)
    record(
        "key changed" if key else "key removed",
        AppSetting(key=_NAME),
        by=by,
        before={"web search key": before.masked},
        after={"web search key": key_shown().masked},
    )
    log.info("web search key changed", removed=not key, by=by.get_username() if by else "parley")


async def open_key() -> str:
    """The key, open, for one search; "" when there is none. Raises `SecretUnreadable`."""
    return secrets.open_secret(await _sealed.get(), _OWNER) or settings.EXA_API_KEY


async def _read() -> Sealed | None:
    async with connection() as held:
        cursor = await held.execute("SELECT name, sealed FROM prompts_secret WHERE name = %s", [_NAME])
        row = await cursor.fetchone()
    return Sealed(*row) if row else None


_sealed: Final = Remembered(_read, seconds=1.0)
