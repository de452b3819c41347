"""Password checks with a limit of wrong ones per username (RATE_WRONG_PASSWORDS_PER_10_MINUTES).

Every password check goes through Django's `authenticate` and this backend. All unknown browsers share
one count per username, whether it exists or not. A browser that has signed in with the username has a
signed cookie (a device cookie in OWASP's terms) and its own count, so an attacker cannot lock users
out of their own browsers.
"""

from __future__ import annotations

import secrets
from typing import Any, Final

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.signals import user_login_failed
from django.core import signing
from django.http import HttpRequest, HttpResponseBase
from django.utils.crypto import salted_hmac

from config.auth.models import User
from config.coordination import rate_limits
from config.errors import TooManyRequests

KNOWN_FOR_S: Final = 365 * 86_400
_PURPOSE: Final = "parley.known-browser"


class PasswordBackend(ModelBackend):
    """Django's backend, called only while the limit of wrong passwords is not reached."""

    def authenticate(
        self,
        request: HttpRequest | None,
        username: str | None = None,
        password: str | None = None,
        **credentials: Any,
    ) -> Any:
        """Return the active user with this password, or None; raise TooManyRequests before a check."""
        if username is None or password is None:
            return None
        name = _limit_key(request, username)
        try:
            rate_limits.admit_password(name)
        except TooManyRequests:
            names = {"username": username}
            user_login_failed.send(__name__, credentials=names, request=request, unchecked=True)
            raise
        wrong = False
        try:
            user = super().authenticate(request, username=username, password=password, **credentials)
            wrong = user is None
        finally:
            if not wrong:  # it was right, or the database is unavailable
                rate_limits.release_password(name)
        return user

    async def aauthenticate(self, request: HttpRequest | None, **credentials: Any) -> Any:  # type: ignore[override]
        return await sync_to_async(self.authenticate)(request, **credentials)


def remember_browser(request: HttpRequest, response: HttpResponseBase, user: User) -> None:
    """Set the cookie by which the browser is known to have signed in as this user."""
    key = _key(user.get_username())
    response.set_signed_cookie(
        _cookie(key),
        _read_device(request, key) or secrets.token_urlsafe(16),
        salt=_PURPOSE + key,
        max_age=KNOWN_FOR_S,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def _limit_key(request: HttpRequest | None, username: str) -> str:
    """Return the key of the count of wrong passwords: of the username, and of a known browser."""
    key = _key(username)
    device = _read_device(request, key) if request is not None else ""
    return f"{key}:{device}" if device else key


def _key(username: str) -> str:
    """Return a hash of the username for Redis, as people sometimes enter a password there."""
    return salted_hmac(_PURPOSE, username.encode(errors="surrogatepass"), algorithm="sha256").hexdigest()


def _cookie(key: str) -> str:
    return f"known_{key[:16]}"  # one per username: several people may use a browser


def _read_device(request: HttpRequest, key: str) -> str:
    try:
        return request.get_signed_cookie(_cookie(key), salt=_PURPOSE + key, max_age=KNOWN_FOR_S) or ""
    except (KeyError, signing.BadSignature):
        return ""
