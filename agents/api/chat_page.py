"""The chat page: a client of the API like any other, for people who have a browser.

The page holds no secret: its script fetches a JWT from `/chat/token` (with session and CSRF token),
which lives a quarter of an hour and may run and read, or it uses an API token that the user enters.
Scripts and styles come from our own files alone, and the page inserts a model's output as text.
"""

from __future__ import annotations

from typing import Any, Final

from django.conf import settings
from django.contrib.auth import views as auth_views
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from agents.intake.prompt_override import PERMISSION
from config import errors
from config.auth.bearer import issue_token
from config.auth.models import Scope, User
from config.auth.sign_in_pages import SignInForm, finish_response
from config.database import run_sync
from config.http.async_views import error_response, json_response
from prompts.endpoints.routing import get_default_model
from prompts.models import PromptVersion

TOKEN_LIVES_S: Final = 900
TOKEN_SCOPES: Final = (Scope.RUN.value, Scope.READ.value)


@require_safe
def chat(request: HttpRequest) -> HttpResponseBase:
    """`GET /chat/`: return the page; with `?prompt_version=ID` staff try that version in it."""
    version_id = request.GET.get("prompt_version")
    if version_id and not request.user.is_authenticated:
        return redirect_to_login(request.get_full_path(), reverse("chat_login"))
    version = _tried(request, version_id) if version_id else None
    shown = {"version": version, "public_url": settings.PUBLIC_URL, "default_model": _default_model()}
    return _strict(render(request, "chat/chat.html", shown))


def _default_model() -> str:
    """Return the model that the page begins with; "" if there is no default model."""
    try:
        return run_sync(get_default_model())
    except errors.ParleyError:
        return ""


def _tried(request: HttpRequest, text: str) -> PromptVersion:
    user = request.user
    if not (isinstance(user, User) and user.is_staff and user.has_perm(PERMISSION)):
        raise PermissionDenied
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else 0
    known = PromptVersion.objects.select_related("prompt")
    return get_object_or_404(known, pk=number, prompt__deleted_at=None)


_login = auth_views.LoginView.as_view(
    template_name="chat/login.html",
    authentication_form=SignInForm,
    next_page="/chat/",
    redirect_authenticated_user=True,
)
_logout = auth_views.LogoutView.as_view(next_page="/chat/")


def sign_in(request: HttpRequest) -> HttpResponseBase:
    """`/chat/login/`: sign in a local account, with the limits on guessing that admin has."""
    return _strict(finish_response(request, _login(request)))


def sign_out(request: HttpRequest) -> HttpResponseBase:
    """`POST /chat/logout/`: end the session, and return to the page."""
    return _strict(_logout(request))


@require_POST
def token(request: HttpRequest) -> HttpResponse:
    """`POST /chat/token`: return a short-lived JWT for the signed-in user; Django has checked CSRF."""
    user = request.user
    if not isinstance(user, User):
        return error_response(errors.Unauthorized("Sign in first.", code="token_missing"))
    text, lifetime = issue_token(user, scopes=TOKEN_SCOPES, lifetime_s=TOKEN_LIVES_S)
    body: dict[str, Any] = {"access_token": text, "token_type": "Bearer", "expires_in": lifetime}
    return json_response(body, headers={"Cache-Control": "no-store"})


def _policy() -> str:
    """Return the policy: everything from here; pictures also from another host of attachments."""
    elsewhere = settings.ATTACHMENT_STORAGE == "supabase" or settings.ATTACHMENT_SERVE == "redirect"
    pictures = f"img-src 'self' blob: data: {settings.PUBLIC_URL}{' https:' if elsewhere else ''}"
    return (
        f"default-src 'self'; {pictures}; object-src 'none'; base-uri 'none'; form-action 'self'; "
        "frame-ancestors 'none'"
    )


def _strict(response: HttpResponseBase) -> HttpResponseBase:
    response["Content-Security-Policy"] = _policy()
    response["Referrer-Policy"] = "same-origin"  # without a referrer Django refuses forms as forged
    response["Cache-Control"] = "no-store"
    return response
