"""What clients may know about models; the rest of this room answers in admin."""

from __future__ import annotations

from typing import Any, ClassVar, Final, cast

from drf_spectacular.utils import OpenApiParameter, extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from config.auth.access import READ, Access, Needs
from config.auth.bearer import Caller
from config.auth.models import Scope, User
from config.errors import Forbidden, InvalidRequest
from config.rest_views import View
from prompts import app_config, routing


class LlmAdminRequired(Forbidden):
    """This needs a staff account and a token with the admin scope."""

    code = "llm_admin_required"


def llm_staff(right: str) -> Access:
    """Staff with this right; Forbidden `llm_admin_required` for others."""
    return Access(Scope.ADMIN, right, refusal=LlmAdminRequired)


_ENDPOINTS: Final = llm_staff("prompts.view_endpoint")
ENVELOPE: Final = inline_serializer(
    "LlmAnswer",
    {
        "code": serializers.IntegerField(),
        "msg": serializers.CharField(),
        "data": serializers.DictField(),
    },
)


LISTED: Final = inline_serializer(
    "LlmList",
    {
        "code": serializers.IntegerField(),
        "msg": serializers.CharField(),
        "data": serializers.ListField(child=serializers.DictField()),
        "total": serializers.IntegerField(),
    },
)


class Models(View):
    """The models that a run may ask for."""

    needs: ClassVar[Needs] = {"GET": READ}

    @extend_schema(
        operation_id="llm_models",
        summary="List the models that a run may ask for",
        description="Only models that can be routed now are listed (schema llm_models_item). "
        "`view=endpoints` lists the endpoints behind them, for staff.",
        parameters=[
            OpenApiParameter("view", str, enum=["mapped", "endpoints"], default="mapped"),
        ],
        responses={
            200: LISTED,
        },
    )
    def get(self, request: Request) -> Response:
        caller = cast("Caller", request.auth)
        match request.query_params.get("view", "mapped"):
            case "mapped":
                return listed(routing.list_models(caller.user_id))
            case "endpoints":
                _ENDPOINTS.check_sync(caller, request.user)
                return listed(routing.list_endpoints())
        raise InvalidRequest("view must be mapped or endpoints.", code="view_unknown")


class AppConfig(View):
    """The settings that staff change while Parley runs."""

    needs: ClassVar[Needs] = {
        "GET": llm_staff("prompts.view_appsetting"),
        "POST": llm_staff("prompts.change_appsetting"),
    }

    @extend_schema(
        operation_id="llm_app_config",
        summary="Read the settings",
        description="Staff only. The web search's key is masked; its source is db, env or none.",
        responses={200: ENVELOPE},
        tags=["llm"],
    )
    def get(self, request: Request) -> Response:
        return enveloped(app_config.shown())

    @extend_schema(
        operation_id="llm_app_config_update",
        summary="Change some settings",
        description="Staff only. What is not named stays; `web_search_exa_api_key` is written and never "
        "read, and an empty one removes it.",
        request={"application/json": {"type": "object"}},
        responses={200: ENVELOPE},
        tags=["llm"],
    )
    def post(self, request: Request) -> Response:
        app_config.change(json_object_of(request), by=caller_of(request))
        return enveloped(app_config.shown())


def json_object_of(request: Request) -> dict[str, Any]:
    """The body as an object; InvalidRequest when it is none."""
    if not isinstance(request.data, dict):
        raise InvalidRequest("The body must be a JSON object.", code="invalid_json")
    return dict(request.data)


def enveloped(data: Any, *, status: int = 200) -> Response:
    """The answer that the app's API has for one thing."""
    return Response({"code": 200, "msg": "success", "data": data}, status=status)


def listed(items: list[dict[str, Any]], *, total: int | None = None, **more: int) -> Response:
    """The answer that the app's API has for a list."""
    counted = {"total": len(items) if total is None else total}
    return Response({"code": 200, "msg": "success", "data": items} | counted | more)


def caller_of(request: Request) -> User:
    """The account that calls."""
    return cast("User", request.user)
