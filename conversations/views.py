"""`GET /api/v1/agent/history` (specs/run-agent-input.md §4)."""

from __future__ import annotations

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from config.auth.bearer import Caller
from conversations import history


class HistoryView(APIView):
    """One day of a conversation."""

    @extend_schema(
        summary="One day of a conversation, the newest first",
        parameters=[
            OpenApiParameter("threadId", OpenApiTypes.UUID, description="Default: the newest thread."),
            OpenApiParameter("before", OpenApiTypes.DATE, description="The newest day before this one."),
        ],
        responses={200: OpenApiTypes.OBJECT},
    )
    def get(self, request: Request) -> Response:
        caller: Caller = request.auth  # type: ignore[assignment]
        caller.require("read")
        query = request.query_params
        day = history.history_day(
            caller.user_id, thread_id=query.get("threadId"), before=query.get("before")
        )
        return Response(day)
