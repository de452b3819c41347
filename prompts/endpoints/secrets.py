"""Keys that are sealed (encrypted) at rest, opened only for their owner and shown only masked.

The first of `settings.SEALING_KEYS` seals and each of them opens. To rotate, put a new key first,
run `manage.py rotate_keys`, and then remove the old one. `open_secret` is the only way to a key's
text: it compares the stored name with the owner's and notes the opening for the audit log, so that
no row can be made to use another row's key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Final, NamedTuple

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings

from config import sql
from config.audit import key_openings
from config.errors import InvalidRequest, ParleyError
from prompts.models import Secret

LONGEST_KEY = 4096
_SEALED: Final = "SELECT name, sealed FROM prompts_secret WHERE name = ANY(%s)"


class SecretUnreadable(ParleyError):
    """A stored key cannot be opened: none of SEALING_KEYS sealed it.

    Add the sealing key that did, or enter the key again in admin.
    """

    code = "secret_unreadable"


class SecretForeign(SecretUnreadable):
    """A stored key belongs to another owner and is not opened: enter the key again in admin."""

    code = "secret_foreign"


class Purpose(Enum):
    """The purpose of a secret: the model of its owner, and the pattern of its name."""

    MODEL_ENDPOINT = "prompts.endpoint", "endpoint:{pk}"
    RUNNER_BINDING = "agents.runnerbinding", "runner-binding-{pk}-{item}"
    PLUGIN_RUNTIME = "agents.pluginruntime", "plugin:{pk}"
    MCP_SERVER = "agents.mcpserver", "mcp:{pk}:{item}"
    WEB_SEARCH = "prompts.appsetting", "web_search_exa"

    @property
    def label(self) -> str:
        """The purpose in the audit log."""
        return self.name.lower().replace("_", " ")

    def of(self, pk: int | str, item: str = "") -> Owner:
        """Return the owner with this primary key; `item` tells apart the secrets of one row."""
        return Owner(self, pk, item)


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner of a secret: a row, and an item if the row has several secrets."""

    purpose: Purpose
    pk: int | str
    item: str

    @property
    def secret_name(self) -> str:
        """The name of this owner's secret."""
        _, name = self.purpose.value
        return name.format(pk=self.pk, item=self.item)


class SealedSecret(NamedTuple):
    """A stored secret: its name and its sealed text."""

    name: str
    text: str


def sealed_or_none(name: str | None, text: str | None) -> SealedSecret | None:
    """Return the secret of the columns that `join_sql` adds, or None."""
    return SealedSecret(name, text) if name and text else None


def get_sealed(secret: Secret | None) -> SealedSecret | None:
    """Return the stored form of a row, or None."""
    return SealedSecret(secret.name, secret.sealed) if secret else None


def open_secret(sealed: SealedSecret | None, owner: Owner) -> str:
    """Return the text for its owner, or "" without a secret.

    Raise `SecretForeign` for the secret of another owner, `SecretUnreadable` if no sealing key fits.
    """
    if sealed is None:
        return ""
    if sealed.name != owner.secret_name:
        raise SecretForeign
    text, (kind, _) = _decrypt(sealed.text), owner.purpose.value
    key_openings.note(purpose=owner.purpose.label, kind=kind, owner=str(owner.pk), name=sealed.name)
    return text


def list_unreadable() -> tuple[int, list[str]]:
    """Return the number of stored secrets, and the names of those that no sealing key opens."""
    stored = list(Secret.objects.order_by("name").values_list("name", "sealed"))
    return len(stored), [name for name, sealed in stored if not _opens(sealed)]


def join_sql(alias: str, key: str) -> str:
    """Return SQL that joins the secret of a foreign key; `SealedSecret` needs `name` and `sealed`."""
    return f"LEFT JOIN prompts_secret AS {alias} ON {alias}.id = {key}"


async def read_sealed(names: Sequence[str]) -> dict[str, SealedSecret]:
    """Return the existing secrets with these names, still sealed."""
    return {name: SealedSecret(name, text) for name, text in await sql.every(_SEALED, (list(names),))}


def reseal(secret: Secret) -> bool:
    """Seal with the newest sealing key, without saving; return whether that changed the secret.

    Raise `SecretUnreadable` if no sealing key fits.
    """
    if _is_newest(secret.sealed):
        return False
    secret.sealed = seal(_decrypt(secret.sealed))
    key_openings.note(
        purpose="sealing again", kind=secret._meta.label_lower, owner=str(secret.pk), name=secret.name
    )
    return True


def seal(text: str) -> str:
    """Return the text, encrypted with the newest sealing key."""
    return _fernets(tuple(settings.SEALING_KEYS)).encrypt(text.encode()).decode()


def _decrypt(sealed: str) -> str:
    try:
        return _decrypt_once(tuple(settings.SEALING_KEYS), sealed)
    except InvalidToken:
        raise SecretUnreadable from None


@lru_cache(maxsize=256)
def _decrypt_once(keys: tuple[str, ...], sealed: str) -> str:
    """Return the text, which this process then keeps: every run needs its endpoint's key."""
    return _fernets(keys).decrypt(sealed.encode()).decode()


def _opens(sealed: str) -> bool:
    try:
        _decrypt(sealed)
    except SecretUnreadable:
        return False
    return True


def _is_newest(sealed: str) -> bool:
    try:
        Fernet(settings.SEALING_KEYS[0]).decrypt(sealed.encode())
    except InvalidToken:
        return False
    return True


def mask(text: str) -> str:
    """Return the part of a key that may be shown (specs/text-run.md §4)."""
    return "*" * len(text) if len(text) <= 8 else f"{text[:4]}***{text[-4:]}"


def store(owner: Owner, text: str) -> Secret:
    """Store the sealed text for this owner, replacing an earlier one."""
    check_key(text)
    sealed = {"sealed": seal(text), "mask": mask(text)}
    return Secret.objects.update_or_create(name=owner.secret_name, defaults=sealed)[0]


def check_key(text: str) -> None:
    """Raise `InvalidRequest`, without quoting the text, if it cannot be an HTTP header value."""
    if not text or len(text) > LONGEST_KEY or not (text.isascii() and text.isprintable()):
        raise InvalidRequest(
            f"A key is 1 to {LONGEST_KEY} printable ASCII characters, without line breaks.",
            code="key_invalid",
        )


@lru_cache(maxsize=4)
def _fernets(keys: tuple[str, ...]) -> MultiFernet:
    return MultiFernet([Fernet(key) for key in keys])
