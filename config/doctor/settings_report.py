"""The settings: those that were refused, names that are nearly a setting's, folder, keys, addresses."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Final

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from config import env
from config.doctor.findings import Finding
from config.process import refused_settings, server

_GROUP: Final = "settings"
_KEYS: Final = ("SECRET_KEY", "JWT_SECRET", "SEALING_KEYS")
_LITTLE: Final = 2**30
_ALIKE: Final = 0.9
_SHORTEST: Final = 6


def report() -> Iterator[Finding]:
    """Report how Parley is configured."""
    yield from _refused()
    yield from _misspelt()
    yield from _folder()
    yield from _keys()
    yield Finding(_GROUP, "addresses", "ok", f"listens at {_listens()}, known as {settings.PUBLIC_URL}")


def _refused() -> Iterator[Finding]:
    for one in refused_settings.found:
        yield _refusal(one.sentence, one.setting)
    try:
        server.require_server(server.get_server_name())
    except ImproperlyConfigured as refusal:
        yield _refusal(str(refusal), "ASGI_SERVER")


def _refusal(sentence: str, setting: str) -> Finding:
    """Return the sentence in its two halves: what is wrong, and the fix."""
    text, _, fix = sentence.partition(". " if ". " in sentence else ": ")
    fix = fix or f"See {setting} in docs/reference/settings.md."
    return Finding(_GROUP, setting, "fault", f"{text.rstrip('.')}.", fix[:1].upper() + fix[1:])


def _misspelt() -> Iterator[Finding]:
    """Report variables whose names are nearly a setting's: they have no effect."""
    known = env.read | {"DJANGO_SETTINGS_MODULE"}
    for name in sorted(os.environ.keys() - known):
        alike = get_close_matches(name, known, n=1, cutoff=_ALIKE) if len(name) >= _SHORTEST else []
        if alike and alike[0] not in os.environ:
            yield Finding(
                _GROUP, name, "warning", f"{name} is no setting and has no effect.", f"Set {alike[0]}."
            )


def _folder() -> Iterator[Finding]:
    folder = settings.VAR_DIR
    if not os.access(folder, os.W_OK | os.X_OK):
        text = f"{folder} is not there, or cannot be written."
        yield Finding(_GROUP, "VAR_DIR", "fault", text, "Make it, or set VAR_DIR to a folder of yours.")
        return
    free = shutil.disk_usage(folder).free
    text = f"{folder}, {free / 2**30:.1f} GB free"
    if free < _LITTLE:
        yield Finding(_GROUP, "VAR_DIR", "warning", text, "Make room, or set VAR_DIR to a larger disk.")
    else:
        yield Finding(_GROUP, "VAR_DIR", "ok", text)


def _keys() -> Iterator[Finding]:
    in_file = [name for name in _KEYS if not env.text(name)]
    if not in_file:
        if not any(refused_settings.is_refused(name) for name in _KEYS):
            yield Finding(_GROUP, "keys", "ok", "all from the environment")
        return
    path = settings.VAR_DIR / "keys.json"
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        text = f"{path} may be read by others (mode {mode:o})."
        yield Finding(_GROUP, "keys", "fault", text, f"chmod 600 {path}, and change the keys.")
    else:
        yield Finding(_GROUP, "keys", "ok", f"{', '.join(in_file)} from {path} (mode {mode:o})")


def _listens() -> str:
    host = f"[{settings.HOST}]" if ":" in settings.HOST else settings.HOST
    return f"{host}:{settings.PORT}"
