"""Feedback on runs over REST."""

from __future__ import annotations

from functools import partial
from typing import Final

from django.http import HttpRequest, HttpResponse, HttpResponseBase

from config.auth.bearer import Caller
from config.auth.requirements import READ, RUN
from config.http.async_views import api, json_body, json_response
from config.http.documentation import groups
from config.http.documentation.operations import body, described, operation, response
from config.http.documentation.schema_builders import ERROR, ref
from conversations.threads import feedback

_operation: Final = partial(operation, group=groups.RUNS)
_GIVEN: Final = {"score": 1, "comment": "Just right.", "tags": ["short"]}


@described(
    _operation(
        "GET /api/v1/agent/runs/{run_id}/feedback",
        "agent_run_feedback",
        "Get the caller's feedback on a run",
        {
            "200": response("The feedback.", ref("Feedback")),
            "404": response("No run or no feedback.", ERROR),
        },
    ),
    _operation(
        "POST /api/v1/agent/runs/{run_id}/feedback",
        "agent_run_feedback_give",
        "Give feedback on a run, or replace it",
        {
            "200": response("The feedback that replaces the caller's previous one.", ref("Feedback")),
            "201": response("The caller's first feedback on this run.", ref("Feedback")),
        },
        requestBody=body(ref("NewFeedback"), good=_GIVEN),
    ),
    _operation(
        "DELETE /api/v1/agent/runs/{run_id}/feedback",
        "agent_run_feedback_withdraw",
        "Delete the caller's feedback on a run",
        {"204": {"description": "The feedback is deleted."}},
    ),
)
@api(GET=READ, POST=RUN, DELETE=RUN)
async def run_feedback(request: HttpRequest, caller: Caller, run_id: str) -> HttpResponseBase:
    """Answer `/api/v1/agent/runs/{run_id}/feedback`: write (POST), read (GET), delete (DELETE)."""
    match request.method:
        case "POST":
            judgement = feedback.parse_judgement(await json_body(request))
            stored, is_new = await feedback.record_feedback(run_id, judgement, user_id=caller.user_id)
            if not is_new:
                return json_response(stored)
            location = f"/api/v1/agent/runs/{stored.run_id}/feedback"
            return json_response(stored, 201, {"Location": location})
        case "DELETE":
            await feedback.delete_feedback(run_id, user_id=caller.user_id)
            return HttpResponse(status=204)
    return json_response(await feedback.fetch_feedback(run_id, user_id=caller.user_id))
