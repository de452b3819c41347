"""The installation's own keys: from the environment, or made once and kept in `var/keys.json`.

A single host needs no key to be set. Several hosts must be given the same SECRET_KEY, JWT_SECRET
and SEALING_KEYS, because a file under `var/` is not shared between them.
"""

from __future__ import annotations

import json
import os
import secrets
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

from cryptography.fernet import Fernet
from django.core.exceptions import ImproperlyConfigured

from config import env
from config.auth import public_keys


def secret(name: str, folder: Path) -> str:
    """A signing secret of at least 32 characters."""
    value = env.text(name) or _kept(folder)[name]
    if len(value) < 32:
        raise ImproperlyConfigured(
            f"{name} is too short: use 32 characters or more, for example the output of "
            "`python -c 'import secrets; print(secrets.token_urlsafe(48))'`, or leave it unset."
        )
    return value


def sealing(name: str, folder: Path) -> list[str]:
    """Fernet keys, newest first: the first seals, all of them open (see `manage.py rotate_keys`)."""
    keys = env.words(name) or _kept(folder)[name].split(",")
    for key in keys:
        try:
            Fernet(key)
        except ValueError:
            raise ImproperlyConfigured(
                f"{name} holds something that is not a Fernet key. Make one with `python -c 'from "
                "cryptography.fernet import Fernet; print(Fernet.generate_key().decode())'`."
            ) from None
    return keys


def public_jwk(name: str) -> str:
    """A public JWK or JWKS as JSON text, checked; "" when unset."""
    value = env.text(name)
    try:
        public_keys.static(value)
    except public_keys.Unfit as error:
        raise ImproperlyConfigured(
            f"{name} cannot be used: {error}. Set it to a public JWK like "
            '{"kty": "EC", "crv": "P-256", "x": "…", "y": "…"}, or leave it unset.'
        ) from None
    return value


def jwks_url(name: str) -> str:
    """The address of a JWKS; plain http only where nobody is between: this machine, a bare host name."""
    value = env.url(name, schemes=("https", "http"))
    host = urlsplit(value).hostname or ""
    near = "." not in host and ":" not in host
    if value.startswith("http://") and not (near or host == "::1" or host.startswith("127.")):
        raise ImproperlyConfigured(
            f"{name} must start with https://: over plain http anybody between could put their own "
            "keys in. Only this machine and bare host names (http://keycloak:8080/…) may do without."
        )
    if value and not host:
        raise ImproperlyConfigured(
            f"{name} names no host. Set it like https://issuer.example/jwks.json."
        )
    return value


def _kept(folder: Path) -> dict[str, str]:
    path = folder / "keys.json"
    if not path.exists():
        _make(path)
    kept: dict[str, str] = json.loads(path.read_text())
    return kept


def _make(path: Path) -> None:
    """Write the file whole or not at all; of two processes that start together one wins."""
    path.parent.mkdir(parents=True, exist_ok=True)
    made = {
        "SECRET_KEY": secrets.token_urlsafe(48),
        "JWT_SECRET": secrets.token_urlsafe(48),
        "SEALING_KEYS": Fernet.generate_key().decode(),
    }
    handle, draft = tempfile.mkstemp(dir=path.parent)  # mode 600
    with os.fdopen(handle, "w") as file:
        json.dump(made, file, indent=1)
    try:
        os.link(draft, path)
    except FileExistsError:
        pass  # the other process made it
    finally:
        os.unlink(draft)
