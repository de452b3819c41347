"""Every setting that is refused at start, for `manage.py doctor`, which looks on past the first.

Importing `config.settings` stops at the first wrong value. Here the variables that its sentence names
are taken out of this process's environment, and the import begins again. What Parley cannot be without
gets a stand-in, which nobody may use: `is_refused` tells.
"""

from __future__ import annotations

import importlib
import os
import re
import secrets
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from cryptography.fernet import Fernet
from django.core.exceptions import ImproperlyConfigured

from config.process import embedded_postgres

_NAME: Final = re.compile(r"[A-Z][A-Z0-9_]{2,}")
_MODULES: Final = ("config.settings", "config.storage_settings")
_KEPT: Final = {"VAR_DIR"}  # another folder would get new keys
_STAND_INS: Final[dict[str, Callable[[], str]]] = {
    "DATABASE_URL": lambda: "postgresql:///refused",
    "SECRET_KEY": lambda: secrets.token_urlsafe(48),
    "JWT_SECRET": lambda: secrets.token_urlsafe(48),
    "SEALING_KEYS": lambda: Fernet.generate_key().decode(),
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refused setting: its name, and the sentence with the fix."""

    setting: str
    sentence: str


found: list[Refusal] = []
_left_out: set[str] = set()


def is_refused(setting: str) -> bool:
    """Return whether the setting was left out because it, or one that goes with it, is wrong."""
    return setting in _left_out


def collect() -> None:
    """Import the settings without those that are refused, which are in `found` afterwards.

    Raise ImproperlyConfigured for a refusal that leaving out no variable ends.
    """
    _provide_database()
    while True:
        try:
            importlib.import_module("config.settings")
            return
        except ImproperlyConfigured as refusal:
            _note(refusal)
            for name in _MODULES:
                sys.modules.pop(name, None)


def _provide_database() -> None:
    try:
        embedded_postgres.provide_database(["doctor"])
    except (embedded_postgres.DatabaseUnavailable, OSError) as error:
        found.append(Refusal("DATABASE_URL", f"DATABASE_URL is not set. {error}"))
        _leave_out("DATABASE_URL")


def _note(refusal: ImproperlyConfigured) -> None:
    """Keep the sentence, and leave the variables out that it names."""
    sentence = str(refusal)
    names = dict.fromkeys(_NAME.findall(sentence))
    changes = [name for name in names if _can_leave_out(name)]
    if not changes:
        raise refusal
    found.append(Refusal(next(iter(names)), sentence))
    for name in changes:
        _leave_out(name)


def _can_leave_out(name: str) -> bool:
    """Return whether leaving it out would change anything."""
    if name in _left_out or name in _KEPT:
        return False
    return name in _STAND_INS or name in os.environ


def _leave_out(name: str) -> None:
    _left_out.add(name)
    os.environ.pop(name, None)
    if name in _STAND_INS:
        os.environ[name] = _STAND_INS[name]()
