"""The endpoints for staff and analysts: the dashboard's numbers, and the end of a user's streams."""

from __future__ import annotations

from typing import Any, ClassVar, Final
from uuid import UUID

from django.http import HttpRequest, HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from agents.api.dashboard import WINDOWS, dashboard
from agents.intake import stream_slots
from config.auth.bearer import Caller
from config.auth.models import Scope
from config.auth.requirements import Access, Needs
from config.errors import InvalidRequest
from config.http.async_views import api, json_response
from config.http.documentation import groups
from config.http.documentation.json_types import Count, Shown, Uuid
from config.http.documentation.operations import described, operation, query, response
from config.http.documentation.schema_builders import ref
from config.http.drf_views import View

_CUTS_OFF: Final = Access(Scope.ADMIN, "conversations.change_run")
Fields = dict[str, serializers.Field[Any, Any, Any, Any]]

_MODEL: Final[Fields] = {
    "model_key": serializers.CharField(),
    "scope_type": serializers.CharField(),
    "resolved_model": serializers.CharField(allow_null=True),
    "provider": serializers.CharField(allow_null=True),
    "endpoint_id": serializers.IntegerField(allow_null=True),
    "availability": serializers.BooleanField(),
    "availability_reason": serializers.CharField(allow_null=True),
    "calls_total": serializers.IntegerField(),
    "unique_users": serializers.IntegerField(),
    "success_rate": serializers.FloatField(help_text="In percent."),
    "avg_latency_ms": serializers.FloatField(),
}
_MODELS: Final[Fields] = {
    "total": serializers.IntegerField(),
    "available": serializers.IntegerField(),
    "unavailable": serializers.IntegerField(),
    "rows": inline_serializer("StatsModel", _MODEL, many=True),
}
_REQUESTS: Final[Fields] = {
    "total": serializers.IntegerField(),
    "success": serializers.IntegerField(),
    "error": serializers.IntegerField(),
    "avg_latency_ms": serializers.FloatField(),
}
_CONNECTIVITY: Final[Fields] = {
    "is_running": serializers.BooleanField(),
    "healthy_endpoints": serializers.IntegerField(),
    "total_endpoints": serializers.IntegerField(),
    "connectivity_rate": serializers.FloatField(help_text="In percent."),
    "last_check": serializers.DateTimeField(allow_null=True),
}


class Dashboard(View):
    """`GET /api/v1/stats/dashboard`: numbers of the last hour, day or week, for staff."""

    needs: ClassVar[Needs] = {"GET": Access(Scope.ADMIN, "conversations.view_run")}

    @extend_schema(
        operation_id="stats_dashboard",
        summary="What ran in the last hour, day or week, for staff",
        tags=["Metrics"],
        parameters=[OpenApiParameter("time_window", str, enum=list(WINDOWS), default="24h")],
        responses={
            200: inline_serializer(
                "StatsDashboard",
                {
                    "time_window": serializers.CharField(),
                    "daily_active_users": serializers.IntegerField(),
                    "ai_requests": inline_serializer("StatsRequests", _REQUESTS),
                    "token_usage": serializers.IntegerField(),
                    "api_connectivity": inline_serializer("StatsConnectivity", _CONNECTIVITY),
                    "mapped_models": inline_serializer("StatsModels", _MODELS),
                },
            ),
        },
    )
    def get(self, request: Request) -> Response:
        window = request.query_params.get("time_window") or "24h"
        if window not in WINDOWS:
            raise InvalidRequest("time_window must be 1h, 24h or 7d.", code="invalid_time_window")
        return Response(dashboard(window))


class Disconnected(Shown, frozen=True):
    user_id: Uuid
    disconnected: Count


@described(
    operation(
        "POST /api/v1/llm/sse/force-disconnect",
        "llm_sse_force_disconnect",
        "End all streams of a user in every process, for staff",
        {"200": response("The number of ended streams.", ref("Disconnected"))},
        group=groups.ADMINISTRATION,
        parameters=[query("user_id", "The user's id. Default: the caller.")],
    )
)
@api(POST=_CUTS_OFF)
async def force_disconnect(request: HttpRequest, caller: Caller) -> HttpResponseBase:
    """`POST /api/v1/llm/sse/force-disconnect`: end a user's streams, in every process.

    Their readers may come back at once; to keep an account away, switch it off in admin first.
    """
    user_id = _user_id(request.GET.get("user_id")) or caller.user_id
    ended = await stream_slots.force_disconnect(user_id)
    return json_response({"code": 200, "msg": "success", "data": Disconnected(str(user_id), ended)})


def _user_id(value: str | None) -> UUID | None:
    """Return the id of the requested user; None for the caller."""
    try:
        return UUID(value) if value else None
    except ValueError:
        raise InvalidRequest("user_id must be the id of a user.", code="invalid_user_id") from None
