"""Helpers of the admin pages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

from django.core.exceptions import ValidationError
from django.http import HttpRequest

from config.auth.models import User
from config.errors import InvalidRequest


@contextmanager
def show_errors() -> Iterator[None]:
    """Show an `InvalidRequest` of an action beside the field."""
    try:
        yield
    except InvalidRequest as error:
        raise ValidationError(error.detail) from None


def get_staff(request: HttpRequest) -> User:
    """Return the signed-in account."""
    return cast("User", request.user)
