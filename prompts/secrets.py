"""Keys sealed at rest, opened only for what they were stored for, shown only masked.

The first of `settings.SEALING_KEYS` seals and all of them open, so a key is changed by putting the
new one in front and running `manage.py rotate_keys`; afterwards the old one may go. `open_secret` is
the one way to a key's text: it compares the stored name with the owner's and notes the opening for the
audit log, so that no row can be made to lead to another row's key.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings

from config.audit import openings
from config.errors import InvalidRequest, ParleyError
from prompts.models import Secret

LONGEST_KEY = 4096


class SecretUnreadable(ParleyError):
    """A stored key cannot be opened: none of SEALING_KEYS sealed it.

    Add the sealing key that did, or enter the key again in admin.
    """

    code = "secret_unreadable"


class SecretForeign(SecretUnreadable):
    """A stored key belongs to something else and is not opened: enter the key again in admin."""

    code = "secret_foreign"


class Purpose(Enum):
    """What a secret is for: the kind of row that owns it, and the name that it has there."""

    MODEL_ENDPOINT = "prompts.endpoint", "endpoint:{pk}"
    RUNNER_BINDING = "agents.runnerbinding", "runner-binding-{pk}-{item}"
    PLUGIN_RUNTIME = "agents.pluginruntime", "plugin:{pk}"
    MCP_SERVER = "agents.mcpserver", "mcp:{pk}:{item}"
    WEB_SEARCH = "prompts.appsetting", "web_search_exa"

    @property
    def words(self) -> str:
        """The purpose as the audit log names it."""
        return self.name.lower().replace("_", " ")

    def of(self, pk: int | str, item: str = "") -> Owner:
        """The owner with this primary key; `item` where a row has several secrets."""
        return Owner(self, pk, item)


@dataclass(frozen=True, slots=True)
class Owner:
    """The row that a secret belongs to."""

    purpose: Purpose
    pk: int | str
    item: str

    @property
    def secret_name(self) -> str:
        """The one name that this owner's secret has."""
        _, name = self.purpose.value
        return name.format(pk=self.pk, item=self.item)


class Sealed(NamedTuple):
    """A secret as it is stored: its name, and its text still sealed."""

    name: str
    text: str


def sealed_of(secret: Secret | None) -> Sealed | None:
    """The stored form of a row; None of none."""
    return Sealed(secret.name, secret.sealed) if secret else None


def open_secret(sealed: Sealed | None, owner: Owner) -> str:
    """The text for its owner; "" of none.

    Raise `SecretForeign` for a secret of another owner, `SecretUnreadable` when no sealing key fits.
    """
    if sealed is None:
        return ""
    if sealed.name != owner.secret_name:
        raise SecretForeign
    text, (kind, _) = _opened(sealed.text), owner.purpose.value
    openings.note(purpose=owner.purpose.words, kind=kind, owner=str(owner.pk), name=sealed.name)
    return text


def seal_again(secret: Secret) -> bool:
    """Seal with the newest sealing key, unsaved; return whether the secret had an older one.

    Raise `SecretUnreadable` when no sealing key fits.
    """
    if _is_newest(secret.sealed):
        return False
    secret.sealed = seal(_opened(secret.sealed))
    openings.note(
        purpose="sealing again", kind=secret._meta.label_lower, owner=str(secret.pk), name=secret.name
    )
    return True


def seal(text: str) -> str:
    """The text, encrypted with the newest sealing key."""
    return _fernets(tuple(settings.SEALING_KEYS)).encrypt(text.encode()).decode()


def _opened(sealed: str) -> str:
    try:
        return _fernets(tuple(settings.SEALING_KEYS)).decrypt(sealed.encode()).decode()
    except InvalidToken:
        raise SecretUnreadable from None


def _is_newest(sealed: str) -> bool:
    try:
        Fernet(settings.SEALING_KEYS[0]).decrypt(sealed.encode())
    except InvalidToken:
        return False
    return True


def mask(text: str) -> str:
    """What may be shown of a key (specs/text-run.md §4)."""
    return "*" * len(text) if len(text) <= 8 else f"{text[:4]}***{text[-4:]}"


def store(owner: Owner, text: str) -> Secret:
    """Seal the text for this owner, in place of what was there."""
    check_key(text)
    sealed = {"sealed": seal(text), "mask": mask(text)}
    return Secret.objects.update_or_create(name=owner.secret_name, defaults=sealed)[0]


def check_key(text: str) -> None:
    """Refuse what could not be sent in an HTTP header, without repeating it."""
    if not text or len(text) > LONGEST_KEY or not (text.isascii() and text.isprintable()):
        raise InvalidRequest(
            f"A key is 1 to {LONGEST_KEY} printable ASCII characters, without line breaks.",
            code="key_invalid",
        )


@lru_cache(maxsize=4)
def _fernets(keys: tuple[str, ...]) -> MultiFernet:
    return MultiFernet([Fernet(key) for key in keys])
