"""Helpers of the admin pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

from django import forms
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


class CheckedField(forms.CharField):
    """An optional text that a function of an action checks."""

    def __init__(self, check: Callable[[str], object], **options: Any) -> None:
        super().__init__(required=False, **options)
        self._check = check

    def validate(self, value: Any) -> None:
        with show_errors():
            self._check(value)


def get_staff(request: HttpRequest) -> User:
    """Return the signed-in account."""
    return cast("User", request.user)
