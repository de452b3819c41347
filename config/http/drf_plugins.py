"""What the settings plug into Django REST framework: our callers, limits, parser and error shape."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import structlog
from django.core.exceptions import SuspiciousOperation
from django.db import DataError, OperationalError
from django.http import Http404
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework import exceptions
from rest_framework.authentication import BaseAuthentication
from rest_framework.parsers import JSONParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.throttling import BaseThrottle

from config import errors
from config.auth import bearer
from config.auth.models import User
from config.coordination import rate_limits
from config.http import json_limits
from config.http.database_errors import refusal_of

log = structlog.get_logger(__name__)


class BearerAuthentication(BaseAuthentication):
    """`Authorization: Bearer <JWT or API token>`; see `config.auth.bearer`."""

    def authenticate(self, request: Request) -> tuple[User, bearer.Caller]:
        try:
            caller = bearer.authenticate_sync(request.headers.get("Authorization"))
        except errors.Unauthorized:
            rate_limits.admit_anonymous(request.META)
            raise
        user = User.objects.filter(pk=caller.user_id).first()
        if user is None:
            raise errors.Unauthorized("This account is gone.")
        return user, caller

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


class CallerThrottle(BaseThrottle):
    """`config.coordination.rate_limits` for every DRF view that has no throttle of its own."""

    def allow_request(self, request: Request, view: object) -> bool:
        match request.auth:
            case bearer.Caller() as caller:
                rate_limits.admit(caller.user_id, is_guest=caller.is_guest, meta=request.META)
            case _:
                rate_limits.admit_anonymous(request.META)
        return True


class BearerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How the OpenAPI document names and describes `BearerAuthentication`."""

    target_class = BearerAuthentication
    name = "bearer"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return {"type": "http", "scheme": "bearer", "description": "A JWT or an API token."}


class SafeJSONParser(JSONParser):
    """DRF's parser, with JSON of too many values or levels refused like any other that is wrong."""

    def parse(self, stream: Any, media_type: Any = None, parser_context: Any = None) -> Any:
        raw = stream.read()
        json_limits.check_value_count(raw)
        try:
            body = super().parse(BytesIO(raw), media_type, parser_context)
        except RecursionError:
            raise exceptions.ParseError from None
        json_limits.check_depth(body)
        return body


def render_error(error: Exception, context: dict[str, Any]) -> Response | None:
    """Give whatever DRF or we raise the shape of `config.errors`."""
    ours = _ours(error)
    if isinstance(ours, errors.ParleyError) and ours.status >= 500:
        log.exception("request failed", exc_info=error)
    return Response(errors.body(ours), status=ours.status, headers=errors.headers(ours))


def _ours(error: Exception) -> errors.ParleyError:
    match error:
        case errors.ParleyError():
            return error
        case Http404() | exceptions.NotFound():
            return errors.NotFound()
        case SuspiciousOperation():  # a Host that is not ours, for one
            return errors.InvalidRequest("The request cannot be read.", code="bad_request")
        case exceptions.NotAuthenticated() | exceptions.AuthenticationFailed():
            return errors.Unauthorized(code="token_missing")
        case exceptions.PermissionDenied():
            return errors.Forbidden()
        case exceptions.Throttled():
            return errors.TooManyRequests(retry_after=int(getattr(error, "wait", None) or 1))
        case exceptions.ValidationError():
            return errors.InvalidRequest(errors=error.get_full_details())
        case exceptions.ParseError():
            return errors.InvalidRequest("The body is not valid JSON.", code="invalid_json")
        case OperationalError() | DataError():
            cause = error.__cause__  # psycopg's error, of which Django has made its own
            return refusal_of(cause if isinstance(cause, Exception) else error)
        case exceptions.APIException():
            made = errors.InvalidRequest(str(error.detail), code=str(error.get_codes()))
            made.status = error.status_code  # type: ignore[misc]
            return made
    return errors.ParleyError()
