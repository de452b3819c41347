"""The sign-in endpoint, which issues a token for a username and a password."""

from __future__ import annotations

from typing import Any, Final

from django.contrib.auth import authenticate
from django.contrib.auth.signals import user_logged_in
from django.http import HttpRequest
from drf_spectacular.utils import OpenApiExample, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.throttling import BaseThrottle
from rest_framework.views import APIView

from config.auth.bearer import issue_token
from config.auth.models import User
from config.auth.passwords import remember_browser
from config.coordination import rate_limits
from config.errors import PayloadTooLarge, Unauthorized

LONGEST_BODY: Final = 8 * 1024
_CREDENTIALS: Final = {"username": "ada", "password": "correct horse battery staple"}


class SignInThrottle(BaseThrottle):
    """RATE_SIGN_IN_PER_MINUTE attempts per client address, shared with the login of admin."""

    def allow_request(self, request: Request, view: APIView) -> bool:
        rate_limits.admit_sign_in(request.META)
        return True


class Credentials(serializers.Serializer[Any]):
    """A local user's name and password."""

    username = serializers.CharField(max_length=150)
    password = serializers.CharField(max_length=1_000, trim_whitespace=False)


class IssuedToken(serializers.Serializer[Any]):
    """A token for the Authorization header."""

    access_token = serializers.CharField()
    token_type = serializers.ChoiceField(choices=["Bearer"])
    expires_in = serializers.IntegerField(help_text="Seconds until the token expires.")


class SignIn(APIView):
    """`POST /api/v1/auth/token`: issue a token for a password."""

    authentication_classes = ()
    permission_classes = (AllowAny,)
    throttle_classes = (SignInThrottle,)

    @extend_schema(
        operation_id="sign_in",
        summary="Get a token with a username and a password",
        tags=["Service"],
        auth=[],
        request=Credentials,
        examples=[OpenApiExample("password", _CREDENTIALS, request_only=True)],
        responses={
            200: IssuedToken,
            401: OpenApiResponse(description="`invalid_credentials`"),
            413: OpenApiResponse(description="`payload_too_large`"),
            422: OpenApiResponse(description="`invalid_request`; `errors` names the fields"),
            429: OpenApiResponse(description="`too_many_requests`; try again after Retry-After seconds"),
        },
    )
    def post(self, request: Request) -> Response:
        _refuse_large(request)
        credentials = Credentials(data=request.data)
        credentials.is_valid(raise_exception=True)
        user = _sign_in(request._request, **credentials.validated_data)
        token, lifetime = issue_token(user)
        response = Response(
            {"access_token": token, "token_type": "Bearer", "expires_in": lifetime},
            headers={"Cache-Control": "no-store"},
        )
        remember_browser(request._request, response, user)
        return response


def _refuse_large(request: Request) -> None:
    """Raise PayloadTooLarge early: DRF would read a body of any size into memory."""
    try:
        length = int(request.META.get("CONTENT_LENGTH") or 0)
    except ValueError:
        return  # DRF treats it as an empty body
    if length > LONGEST_BODY:
        raise PayloadTooLarge


def _sign_in(request: HttpRequest, *, username: str, password: str) -> User:
    """Return the active user with this password; Django hashes for unknown names as well.

    Raise Unauthorized, or TooManyRequests without a check after too many wrong passwords.
    """
    user = authenticate(request, username=username, password=password)
    if not isinstance(user, User):
        raise Unauthorized("The username or the password is wrong.", code="invalid_credentials")
    user_logged_in.send(User, request=request, user=user)
    return user
