"""The keys of the installation: from the environment, or created once in `var/keys.json`.

A single host needs no settings for keys. Several hosts need the same SECRET_KEY, JWT_SECRET and
SEALING_KEYS, because they do not share `var/`.
"""

from __future__ import annotations

import json
import os
import secrets
import tempfile
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from cryptography.fernet import Fernet
from django.core.exceptions import ImproperlyConfigured

from config import env
from config.auth import public_keys

_IN_FILE: Final = ("SECRET_KEY", "JWT_SECRET", "SEALING_KEYS")


def read_secret(name: str, folder: Path) -> str:
    """Return a signing secret of at least 32 characters."""
    value = env.text(name) or _load_keys(folder)[name]
    if len(value) < 32:
        raise ImproperlyConfigured(
            f"{name} is too short: use 32 characters or more, for example the output of "
            "`python -c 'import secrets; print(secrets.token_urlsafe(48))'`, or leave it unset."
        )
    return value


def read_sealing_keys(name: str, folder: Path) -> list[str]:
    """Return Fernet keys: the first one seals and each of them opens (`manage.py rotate_keys`)."""
    keys = env.words(name) or _load_keys(folder)[name].split(",")
    for key in keys:
        try:
            Fernet(key)
        except ValueError:
            raise ImproperlyConfigured(
                f"{name} contains a value that is not a Fernet key. Create one with `python -c 'from "
                "cryptography.fernet import Fernet; print(Fernet.generate_key().decode())'`."
            ) from None
    return keys


def read_public_jwk(name: str) -> str:
    """Return a valid public JWK or JWKS as JSON text; "" if unset."""
    value = env.text(name)
    try:
        public_keys.parse_setting(value)
    except public_keys.InvalidKey as error:
        raise ImproperlyConfigured(
            f"{name} cannot be used: {error}. Set it to a public JWK like "
            '{"kty": "EC", "crv": "P-256", "x": "…", "y": "…"}, or leave it unset.'
        ) from None
    return value


def read_jwks_url(name: str) -> str:
    """Return the address of a JWKS; plain http only for this machine and host names without dots."""
    value = env.url(name, schemes=("https", "http"))
    host = urlsplit(value).hostname or ""
    near = "." not in host and ":" not in host
    if value.startswith("http://") and not (near or host == "::1" or host.startswith("127.")):
        raise ImproperlyConfigured(
            f"{name} must start with https://: over plain http an attacker could replace the keys. "
            "Only this machine and host names without dots (http://keycloak:8080/…) may use http."
        )
    if value and not host:
        raise ImproperlyConfigured(
            f"{name} names no host. Set it like https://issuer.example/jwks.json."
        )
    return value


def _load_keys(folder: Path) -> dict[str, str]:
    path = folder / "keys.json"
    try:
        if not path.exists():
            _create_keys(path)
        keys: dict[str, str] = json.loads(path.read_text())
    except OSError as error:
        raise _unusable(path, f"cannot be read or made ({error.strerror})") from None
    except ValueError:
        raise _unusable(path, "is no JSON") from None
    if not isinstance(keys, dict) or not all(isinstance(keys.get(name), str) for name in _IN_FILE):
        raise _unusable(path, f"does not have {', '.join(_IN_FILE)}")
    return keys


def _unusable(path: Path, reason: str) -> ImproperlyConfigured:
    return ImproperlyConfigured(
        f"VAR_DIR has a file of keys, {path}, that {reason}. Put its copy back, name a folder of yours "
        "like VAR_DIR=var, or set SECRET_KEY, JWT_SECRET and SEALING_KEYS: without the old SEALING_KEYS "
        "no stored key can be opened."
    )


def _create_keys(path: Path) -> None:
    """Create the file atomically; of two processes that start together one wins."""
    path.parent.mkdir(parents=True, exist_ok=True)
    keys = {
        "SECRET_KEY": secrets.token_urlsafe(48),
        "JWT_SECRET": secrets.token_urlsafe(48),
        "SEALING_KEYS": Fernet.generate_key().decode(),
    }
    handle, draft = tempfile.mkstemp(dir=path.parent)  # mode 600
    with os.fdopen(handle, "w") as file:
        json.dump(keys, file, indent=1)
    try:
        os.link(draft, path)
    except FileExistsError:
        pass  # another process created it
    finally:
        os.unlink(draft)
