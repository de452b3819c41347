"""Feedback on runs over REST."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, HttpResponseBase

from config.auth.bearer import Caller
from config.auth.requirements import READ, RUN
from config.http.async_views import api, json_body, json_response
from conversations.threads import feedback


@api(GET=READ, POST=RUN, DELETE=RUN)
async def run_feedback(request: HttpRequest, caller: Caller, run_id: str) -> HttpResponseBase:
    """Answer `/api/v1/agent/runs/{run_id}/feedback`: write (POST), read (GET), delete (DELETE)."""
    match request.method:
        case "POST":
            judgement = feedback.parse_judgement(await json_body(request))
            stored, is_new = await feedback.record_feedback(run_id, judgement, user_id=caller.user_id)
            if not is_new:
                return json_response(stored)
            location = f"/api/v1/agent/runs/{stored['run_id']}/feedback"
            return json_response(stored, 201, {"Location": location})
        case "DELETE":
            await feedback.delete_feedback(run_id, user_id=caller.user_id)
            return HttpResponse(status=204)
    return json_response(await feedback.fetch_feedback(run_id, user_id=caller.user_id))
