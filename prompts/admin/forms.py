"""What the pages of this room share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

from django.core.exceptions import ValidationError
from django.http import HttpRequest

from config.auth.models import User
from config.errors import InvalidRequest


@contextmanager
def refusals_shown() -> Iterator[None]:
    """Show what an action refuses beside the field instead of failing the page."""
    try:
        yield
    except InvalidRequest as error:
        raise ValidationError(error.detail) from None


def staff(request: HttpRequest) -> User:
    """Who is signed in; admin lets nobody else in."""
    return cast("User", request.user)
