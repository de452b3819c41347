"""The check of SENTRY_DSN, before Sentry's SDK meets it."""

from __future__ import annotations

from django.core.exceptions import ImproperlyConfigured


def check(dsn: str) -> None:
    """Raise ImproperlyConfigured unless it is a DSN."""
    from sentry_sdk.utils import BadDsn, Dsn

    try:
        Dsn(dsn)
    except (BadDsn, ValueError):
        raise ImproperlyConfigured(
            "SENTRY_DSN is no DSN. Copy it from the project's page in Sentry, like "
            "SENTRY_DSN=https://key@sentry.example/1, or leave it unset."
        ) from None
