"""The forms in which somebody signs in: both limits on guessing, said in the form and in the status."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.forms import AuthenticationForm
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponseBase
from unfold.forms import AuthenticationForm as AdminForm

from config import errors, limits
from config.auth.models import User
from config.auth.passwords import remember_browser


class SignInForm(AuthenticationForm):
    """Django's; `refusal` is why it has not looked at the password, if it has not."""

    refusal: errors.TooManyRequests | None = None
    request: HttpRequest

    def clean(self) -> dict[str, Any]:
        try:
            limits.admit_sign_in(self.request.META)
            return super().clean()
        except errors.TooManyRequests as refusal:
            self.refusal = refusal
            raise ValidationError(refusal.detail, code=refusal.code) from None


class AdminSignInForm(SignInForm, AdminForm):  # type: ignore[misc]
    """The same for admin, which takes staff only."""


def answered(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    """What a login view answers, with 429 and Retry-After for a refusal; who got in is remembered."""
    form = (getattr(response, "context_data", None) or {}).get("form")
    refusal = getattr(form, "refusal", None)
    if refusal is not None:
        response.status_code = refusal.status
        for name, value in errors.headers(refusal).items():
            response[name] = value
    elif request.method == "POST" and isinstance(request.user, User):
        remember_browser(request, response, request.user)
    return response
