"""Sign-in forms with both rate limits, shown in the form and in the status."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.forms import AuthenticationForm
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponseBase
from unfold.forms import AuthenticationForm as AdminForm

from config import errors
from config.auth.models import User
from config.auth.passwords import remember_browser
from config.coordination import rate_limits


class SignInForm(AuthenticationForm):
    """Django's form; `refusal` is the error if a limit prevented the password check."""

    refusal: errors.TooManyRequests | None = None
    request: HttpRequest

    def clean(self) -> dict[str, Any]:
        try:
            rate_limits.admit_sign_in(self.request.META)
            return super().clean()
        except errors.TooManyRequests as refusal:
            self.refusal = refusal
            raise ValidationError(refusal.detail, code=refusal.code) from None


class AdminSignInForm(SignInForm, AdminForm):  # type: ignore[misc]
    """The form of admin, which only staff can use."""


def finish_response(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    """Set 429 and Retry-After for a refusal, or the browser's cookie after a sign-in."""
    form = (getattr(response, "context_data", None) or {}).get("form")
    refusal = getattr(form, "refusal", None)
    if refusal is not None:
        response.status_code = refusal.status
        for name, value in errors.headers(refusal).items():
            response[name] = value
    elif request.method == "POST" and isinstance(request.user, User):
        remember_browser(request, response, request.user)
    return response
