"""The few answers that belong to no room: home, health, contract schemas and error pages."""

from __future__ import annotations

from typing import Any, Final

import structlog
from django.contrib import admin
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.views import defaults

from config import contracts, errors, sql
from config.auth.sign_in_pages import finish_response
from config.http import paths
from config.http.async_views import allow, error_response, json_response
from config.http.documentation import groups
from config.http.documentation.operations import Route, described, public_operation, response
from config.http.documentation.schema_builders import FLAG, TEXT, Schema, array, open_object, record
from config.http.openai_absent import absent
from config.process import schema

log = structlog.get_logger(__name__)


def home(request: HttpRequest) -> HttpResponseBase:
    """The bare address leads staff to admin."""
    return redirect("/admin/")


def admin_login(request: HttpRequest) -> HttpResponseBase:
    """Admin's own login, with the limits on guessing."""
    return finish_response(request, admin.site.login(request))


def _probe(name: str, summary: str, when: str, **members: Schema) -> Route:
    """Return the operation of a probe, whose two answers have the same members."""
    told = {
        "200": response(f"{when}.", record(status={"const": "ok"}, database=FLAG, **members)),
        "503": response(
            "Send nothing here.",
            record(status={"const": "unavailable"}, database=FLAG, optional=members),
        ),
    }
    return public_operation(f"GET /{name}", name, summary, told, group=groups.SERVICE)


@described(_probe("health", "Ask whether the server lives", "The database answers"))
async def health(request: HttpRequest) -> HttpResponse:
    """`GET /health`: 200 while the database answers, else 503."""
    if (refused := _unless_read(request)) is not None:
        return refused
    try:
        await sql.change("SELECT 1")
    except Exception as error:  # whatever keeps the database away, the answer is the same
        log.warning("health: the database is away", error=type(error).__name__)
        return _unavailable(database=False)
    return json_response({"status": "ok", "database": True})


@described(
    _probe(
        "ready",
        "Ask whether the server can take requests",
        "The database answers and has every migration",
        migrations=array(TEXT) | {"description": "Those that the database does not have yet."},
    )
)
async def ready(request: HttpRequest) -> HttpResponse:
    """`GET /ready`: 200 when the database answers and has every migration, else 503: send nothing."""
    if (refused := _unless_read(request)) is not None:
        return refused
    try:
        missing = await schema.list_missing_migrations()
    except Exception as error:  # as for health; a database without the table is not ready either
        log.warning("ready: the database is away", error=type(error).__name__)
        return _unavailable(database=False)
    if missing:
        return _unavailable(database=True, migrations=missing)
    return json_response({"status": "ok", "database": True, "migrations": []})


def _unavailable(**facts: Any) -> HttpResponse:
    return json_response({"status": "unavailable"} | facts, 503, {"Retry-After": "1"})


_SCHEMA: Final = open_object("A JSON Schema: https://json-schema.org/draft/2020-12/schema")


@described(
    public_operation(
        "GET /api/v1/schemas/{name}",
        "contract_schema",
        "Get a JSON Schema of the published contracts",
        {"200": response("The schema.", _SCHEMA, "application/schema+json")},
        group=groups.SERVICE,
    )
)
async def contract_schema(request: HttpRequest, name: str) -> HttpResponse:
    """`GET /api/v1/schemas/{name}`: a JSON Schema of the published contracts, with or without suffix."""
    if (refused := _unless_read(request)) is not None:
        return refused
    known = contracts.read_all()
    found = known.get(name.removesuffix(".json").removesuffix(".schema"))
    if found is None:
        return error_response(
            errors.NotFound(f"There is no such schema; there are: {', '.join(sorted(known))}.")
        )
    return HttpResponse(found, content_type="application/schema+json")


def _unless_read(request: HttpRequest) -> HttpResponse | None:
    """405 in our shape for what is neither GET nor HEAD."""
    try:
        allow(request, "GET", "HEAD")
    except errors.ParleyError as error:
        return error_response(error)
    return None


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    refusal = errors.InvalidRequest("The request cannot be read.", code="bad_request")
    return _refuse(request, refusal) or defaults.bad_request(request, exception)


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _refuse(request, errors.Forbidden()) or defaults.permission_denied(request, exception)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    refusal = absent(request.path) or errors.NotFound()
    return _refuse(request, refusal) or defaults.page_not_found(request, exception)


def server_error(request: HttpRequest, *args: Any) -> HttpResponse:
    return _refuse(request, errors.ParleyError()) or defaults.server_error(request)


def _refuse(request: HttpRequest, error: errors.ParleyError) -> HttpResponse | None:
    """Return the error in our format at an address of the API; None at a page's."""
    is_api = f"{request.path}/".startswith((*paths.API, "/ws/"))
    return error_response(error, request.path) if is_api else None
