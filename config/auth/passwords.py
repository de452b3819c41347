"""Check a password, unless too many were wrong for its username (RATE_WRONG_PASSWORDS_PER_10_MINUTES).

Whatever takes a password comes here through Django's `authenticate`. All strangers together have one
count for a username, whether it is anybody's or not. A browser that has signed in with it carries a
signed cookie (OWASP calls it a device cookie) and has a count of its own: strangers who guess for ever
lock nobody out of the browsers that they use.
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

from config import limits
from config.auth.models import User
from config.errors import TooManyRequests

KNOWN_FOR_S: Final = 365 * 86_400
_PURPOSE: Final = "parley.known-browser"


class PasswordBackend(ModelBackend):
    """Django's own, asked only while there is room for another wrong password."""

    def authenticate(
        self,
        request: HttpRequest | None,
        username: str | None = None,
        password: str | None = None,
        **credentials: Any,
    ) -> Any:
        """The active user with this password, or None; TooManyRequests without having looked."""
        if username is None or password is None:
            return None
        name = _counted_as(request, username)
        try:
            limits.admit_password(name)
        except TooManyRequests:
            given = {"username": username}
            user_login_failed.send(__name__, credentials=given, request=request, unchecked=True)
            raise
        wrong = False
        try:
            user = super().authenticate(request, username=username, password=password, **credentials)
            wrong = user is None
        finally:
            if not wrong:  # it was right, or the database is away
                limits.forgive_password(name)
        return user

    async def aauthenticate(self, request: HttpRequest | None, **credentials: Any) -> Any:  # type: ignore[override]
        return await sync_to_async(self.authenticate)(request, **credentials)


def remember_browser(request: HttpRequest, response: HttpResponseBase, user: User) -> None:
    """Let the browser show, the next time, that it has signed in as this user."""
    key = _key(user.get_username())
    response.set_signed_cookie(
        _cookie(key),
        _device(request, key) or secrets.token_urlsafe(16),
        salt=_PURPOSE + key,
        max_age=KNOWN_FOR_S,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def _counted_as(request: HttpRequest | None, username: str) -> str:
    """The name under which wrong passwords count: the username's, and the browser's if that is known."""
    key = _key(username)
    device = _device(request, key) if request is not None else ""
    return f"{key}:{device}" if device else key


def _key(username: str) -> str:
    """A username in a form that may lie in Redis: somebody types a password there now and then."""
    return salted_hmac(_PURPOSE, username.encode(errors="surrogatepass"), algorithm="sha256").hexdigest()


def _cookie(key: str) -> str:
    return f"known_{key[:16]}"  # one a username: a browser may be used by several people


def _device(request: HttpRequest, key: str) -> str:
    try:
        return request.get_signed_cookie(_cookie(key), salt=_PURPOSE + key, max_age=KNOWN_FOR_S) or ""
    except (KeyError, signing.BadSignature):
        return ""
