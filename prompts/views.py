"""What clients may know about models; the rest of this room answers in admin."""

from __future__ import annotations

from typing import Any, cast

from drf_spectacular.utils import OpenApiParameter, extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from config.auth.bearer import Caller, require_not_guest
from config.auth.models import Scope
from config.errors import Forbidden, InvalidRequest
from prompts import routing


class LlmAdminRequired(Forbidden):
    """This needs a staff account and a token with the admin scope."""

    code = "llm_admin_required"


class Models(APIView):
    """The models that a run may ask for."""

    @extend_schema(
        operation_id="llm_models",
        summary="List the models that a run may ask for",
        description="Only models that can be routed now are listed (schema llm_models_item). "
        "`view=endpoints` lists the endpoints behind them, for staff.",
        parameters=[
            OpenApiParameter("view", str, enum=["mapped", "endpoints"], default="mapped"),
        ],
        responses={
            200: inline_serializer(
                "LlmModels",
                {
                    "code": serializers.IntegerField(),
                    "msg": serializers.CharField(),
                    "data": serializers.ListField(child=serializers.DictField()),
                    "total": serializers.IntegerField(),
                },
            )
        },
    )
    def get(self, request: Request) -> Response:
        match request.query_params.get("view", "mapped"):
            case "mapped":
                return _listed(routing.list_models())
            case "endpoints":
                _require_staff(cast("Caller", request.auth))
                return _listed(routing.list_endpoints())
        raise InvalidRequest("view must be mapped or endpoints.", code="view_unknown")


def _require_staff(caller: Caller) -> None:
    require_not_guest(caller)
    if not caller.is_staff or Scope.ADMIN not in caller.scopes:
        raise LlmAdminRequired


def _listed(items: list[dict[str, Any]]) -> Response:
    return Response({"code": 200, "msg": "success", "data": items, "total": len(items)})
