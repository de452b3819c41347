"""Signed URLs: `{base}/storage/v1/object/sign/{bucket}/{path}?token={jwt}` (seed 001).

Pure CPU. The key is derived from JWT_SECRET under a name of its own, so a login token never opens a
file and a download token never logs in. With ATTACHMENT_STORAGE=supabase the same form is signed
with the project's secret, as its storage server does, and that server answers it.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import time
from base64 import urlsafe_b64encode
from functools import lru_cache
from typing import Any, Final
from urllib.parse import unquote_to_bytes
from uuid import UUID

import jwt
import msgspec
from django.conf import settings

from config.errors import InvalidRequest
from conversations.attachments.object_names import (
    StoredObject,
    is_image,
    is_upload,
    is_wellformed,
    owner_prefix,
)

SIGN_PATH: Final = "/storage/v1/object/sign/"
LONGEST_URL: Final = 4_096
_ALGORITHM: Final = "HS256"
_SCOPE: Final = "download"
_QUERY: Final = re.compile(r"token=([A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+)")


class TokenRefused(Exception):
    """A download token that opens nothing: `InvalidJWT`, or `InvalidSignature` for another object."""

    def __init__(self, error: str, message: str) -> None:
        super().__init__(message)
        self.error = error
        self.message = message


def sign_url(bucket: str, path: str) -> str:
    """Return a URL that opens this object for SIGNED_URL_TTL_S seconds."""
    now = int(time.time())
    claims: dict[str, Any] = {
        "url": f"{bucket}/{path}",
        "iat": now,
        "exp": now + settings.SIGNED_URL_TTL_S,
    }
    if not _at_supabase():
        claims["scope"] = _SCOPE
    return f"{_base()}{SIGN_PATH}{bucket}/{path}?token={_token(claims)}"


def _token(claims: dict[str, Any]) -> str:
    """Return a JWT by HS256 (RFC 7515 §3.1), as `jwt.encode` makes it in five times the time: a page of
    history signs hundreds. What is read is verified by the library."""
    signed = _HEADER + b"." + _base64(msgspec.json.encode(claims))
    return (signed + b"." + _base64(hmac.digest(_key().encode(), signed, "sha256"))).decode()


def _base64(raw: bytes) -> bytes:
    return urlsafe_b64encode(raw).rstrip(b"=")


_HEADER: Final = _base64(b'{"alg":"HS256","typ":"JWT"}')


def is_signed_url(url: str) -> bool:
    """Return whether the URL begins like ours."""
    return url.startswith(_base() + SIGN_PATH)


def parse_signed_url(url: str, *, owner_id: UUID, texts: bool = False) -> StoredObject:
    """Return the caller's own image, or text, that a URL of ours names (specs/run-agent-input.md §6).

    Raise InvalidRequest (`invalid_binary_url`) for every other URL: a caller who could pass another
    user's object here would have it signed anew.
    """
    stored = _parse_own_url(url)
    takes = is_upload if texts else is_image
    if stored is None or not takes(stored) or not stored.path.startswith(owner_prefix(owner_id)):
        raise invalid_url()
    try:
        verify(url.partition("?token=")[2], stored)
    except TokenRefused:
        raise invalid_url() from None
    return stored


def invalid_url() -> InvalidRequest:
    return InvalidRequest("binary content url must be a valid signed URL", code="invalid_binary_url")


def verify(token: str, stored: StoredObject) -> int:
    """Return the seconds for which the token opens this object. Raise TokenRefused if it does not."""
    try:
        claims = jwt.decode(
            token,
            _key(),
            algorithms=[_ALGORITHM],
            options={"require": ["exp", "iat"], "verify_aud": False},
        )
    except jwt.ExpiredSignatureError:
        raise TokenRefused("InvalidJWT", '"exp" claim timestamp check failed') from None
    except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
        raise TokenRefused("InvalidJWT", "The token is not valid.") from None
    if not _at_supabase() and (claims.keys() != _CLAIMS or claims["scope"] != _SCOPE):
        raise TokenRefused("InvalidJWT", "The token is not valid.")
    if claims.get("url") != f"{stored.bucket}/{stored.path}":
        raise TokenRefused("InvalidSignature", "The url do not match the signature")
    return max(0, int(claims["exp"] - time.time()))


_CLAIMS: Final = {"url", "scope", "iat", "exp"}


def _parse_own_url(url: str) -> StoredObject | None:
    """Return the object in a URL of our host and form, whoever owns it; None for other URLs.

    The beginning is compared as text: scheme, host, port and user information have one spelling.
    Each part is decoded once by itself, so an encoded slash cannot make two parts of one.
    """
    start = _base() + SIGN_PATH
    if len(url) > LONGEST_URL or not url.startswith(start):
        return None
    place, _, query = url[len(start) :].partition("?")
    if not _QUERY.fullmatch(query) or not place.isascii():
        return None
    bucket, *parts = (unquote_to_bytes(part).decode("ascii", "replace") for part in place.split("/"))
    if any("/" in part for part in parts):
        return None
    stored = StoredObject(bucket, "/".join(parts))
    return stored if is_wellformed(stored) else None


def _at_supabase() -> bool:
    return bool(settings.ATTACHMENT_STORAGE == "supabase")


def _base() -> str:
    return str(settings.SUPABASE_URL if _at_supabase() else settings.PUBLIC_URL)


def _key() -> str:
    if _at_supabase():
        return str(settings.SUPABASE_JWT_SECRET)
    return _derive_key(settings.JWT_SECRET)


@lru_cache(maxsize=4)
def _derive_key(secret: str) -> str:
    return hmac.new(secret.encode(), b"parley: attachment download", hashlib.sha256).hexdigest()
