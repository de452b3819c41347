"""The few answers that belong to no room: home, health, contract schemas and error pages."""

from __future__ import annotations

from typing import Any

import structlog
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.views import defaults

from config import database, errors
from config.http import error_response, json_response
from config.middleware import API_PATHS

log = structlog.get_logger(__name__)


def home(request: HttpRequest) -> HttpResponseBase:
    """The bare address leads staff to admin."""
    return redirect("/admin/")


async def health(request: HttpRequest) -> HttpResponse:
    """`GET /health`: 200 while the database answers, else 503."""
    try:
        async with database.connection() as connection:
            await connection.execute("SELECT 1")
    except Exception as error:  # whatever keeps the database away, the answer is the same
        log.warning("health: the database is away", error=type(error).__name__)
        return json_response({"status": "unavailable", "database": False}, 503)
    return json_response({"status": "ok", "database": True})


async def contract_schema(request: HttpRequest, name: str) -> HttpResponse:
    """`GET /api/v1/schemas/{name}`: a JSON Schema of the published contracts, with or without suffix."""
    folder = settings.BASE_DIR / "docs" / "api-contracts" / "schemas"
    known = {path.name.removesuffix(".schema.json"): path for path in folder.glob("*.schema.json")}
    found = known.get(name.removesuffix(".json").removesuffix(".schema"))
    if found is None:
        return error_response(
            errors.NotFound(f"There is no such schema; there are: {', '.join(sorted(known))}.")
        )
    return json_response(found.read_bytes(), headers={"Content-Type": "application/schema+json"})


def _is_api(request: HttpRequest) -> bool:
    return request.path.startswith((*API_PATHS, "/ws/"))


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    if _is_api(request):
        return error_response(errors.InvalidRequest("The request cannot be read.", code="bad_request"))
    return defaults.bad_request(request, exception)


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    return (
        error_response(errors.Forbidden())
        if _is_api(request)
        else defaults.permission_denied(request, exception)
    )


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return (
        error_response(errors.NotFound())
        if _is_api(request)
        else defaults.page_not_found(request, exception)
    )


def server_error(request: HttpRequest, *args: Any) -> HttpResponse:
    return error_response(errors.ParleyError()) if _is_api(request) else defaults.server_error(request)
