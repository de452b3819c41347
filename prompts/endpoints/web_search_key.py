"""The key of the web search: a sealed secret, or else EXA_API_KEY; only its mask is shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import structlog
from django.conf import settings
from django.db import transaction

from config.audit.recording import record
from config.auth.models import User
from config.cache import CachedValue
from config.errors import InvalidRequest
from prompts.endpoints import secrets
from prompts.endpoints.secrets import Purpose, SealedSecret
from prompts.models import AppSetting, Secret

log = structlog.get_logger(__name__)

FIELD: Final = "web_search_exa_api_key"
"""The name of the key among the settings."""
LONGEST_KEY: Final = 512
_NAME: Final = "web_search_exa"
_OWNER: Final = Purpose.WEB_SEARCH.of(_NAME)


@dataclass(frozen=True, slots=True)
class MaskedKey:
    """The mask of the key, and its source."""

    masked: str
    source: Literal["db", "env", "none"]


def get_masked_key() -> MaskedKey:
    """Return the mask and the source of the key in use."""
    stored = Secret.objects.filter(name=_NAME).first()
    if stored is not None:
        return MaskedKey(stored.mask, "db")
    if settings.EXA_API_KEY:
        return MaskedKey(secrets.mask(settings.EXA_API_KEY), "env")
    return MaskedKey("", "none")


def check_key(key: object) -> str:
    """Return the key without surrounding white space; raise `InvalidRequest` key_invalid."""
    if not isinstance(key, str) or len(key) > LONGEST_KEY:
        raise InvalidRequest(
            f"A key is a text of at most {LONGEST_KEY} characters; an empty one removes it.",
            code="key_invalid",
            field=FIELD,
        )
    key = key.strip()
    if key:
        secrets.check_key(key)
    return key


@transaction.atomic
def store_key(key: str, *, by: User | None) -> None:
    """Store the key in place of the present one; an empty key restores EXA_API_KEY."""
    key = check_key(key)
    before = get_masked_key()
    if key:
        secrets.store(_OWNER, key)
    else:
        Secret.objects.filter(name=_NAME).delete()
    transaction.on_commit(_sealed.clear)
    record(
        "key changed" if key else "key removed",
        AppSetting(key=_NAME),
        by=by,
        before={"web search key": before.masked},
        after={"web search key": get_masked_key().masked},
    )
    log.info("web search key changed", removed=not key, by=by.get_username() if by else "parley")


async def open_key() -> str:
    """Return the opened key for one search, or ""; raise `SecretUnreadable`."""
    return secrets.open_secret(await _sealed.get(), _OWNER) or settings.EXA_API_KEY


async def _read() -> SealedSecret | None:
    return (await secrets.read_sealed([_NAME])).get(_NAME)


_sealed: Final = CachedValue(_read, seconds=1.0)
