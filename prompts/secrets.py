"""Keys sealed at rest, opened only where they are used, shown only masked.

The first of `settings.SEALING_KEYS` seals and all of them open, so a key is changed by putting the
new one in front and running `manage.py rotate_keys`; afterwards the old one may go.
"""

from __future__ import annotations

from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings

from config.errors import InvalidRequest, ParleyError
from prompts.models import Secret

LONGEST_KEY = 4096


class SecretUnreadable(ParleyError):
    """A stored key cannot be opened: none of SEALING_KEYS sealed it.

    Add the sealing key that did, or enter the key again in admin.
    """

    code = "secret_unreadable"


def seal(text: str) -> str:
    """The text, encrypted with the newest sealing key."""
    return _fernets(tuple(settings.SEALING_KEYS)).encrypt(text.encode()).decode()


def open_sealed(sealed: str) -> str:
    """The text again; raises `SecretUnreadable` when no sealing key fits."""
    try:
        return _fernets(tuple(settings.SEALING_KEYS)).decrypt(sealed.encode()).decode()
    except InvalidToken:
        raise SecretUnreadable from None


def is_newest(sealed: str) -> bool:
    """Whether the newest sealing key sealed this."""
    try:
        Fernet(settings.SEALING_KEYS[0]).decrypt(sealed.encode())
    except InvalidToken:
        return False
    return True


def mask(text: str) -> str:
    """What may be shown of a key (specs/text-run.md §4)."""
    return "*" * len(text) if len(text) <= 8 else f"{text[:4]}***{text[-4:]}"


def store(name: str, text: str) -> Secret:
    """Seal the text under this name, in place of what was there."""
    check_key(text)
    sealed = {"sealed": seal(text), "mask": mask(text)}
    return Secret.objects.update_or_create(name=name, defaults=sealed)[0]


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
