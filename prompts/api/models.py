"""REST views of models and settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final, cast

from django.db import transaction
from drf_spectacular.utils import OpenApiParameter, extend_schema
from msgspec import to_builtins
from rest_framework.request import Request
from rest_framework.response import Response

from config.auth.bearer import Caller
from config.auth.models import Scope, User
from config.auth.requirements import READ, Access, Needs
from config.errors import Forbidden, InvalidRequest
from config.http.drf_views import View, json_of, published
from prompts import app_settings
from prompts.endpoints import routing, web_search_key


class LlmAdminRequired(Forbidden):
    """This needs a staff account and a token with the admin scope."""

    code = "llm_admin_required"


def llm_staff(permission: str) -> Access:
    """Return the requirement of staff with this permission; others get llm_admin_required."""
    return Access(Scope.ADMIN, permission, refusal=LlmAdminRequired)


_ENDPOINTS: Final = llm_staff("prompts.view_endpoint")


class Models(View):
    """The models that a run may request."""

    needs: ClassVar[Needs] = {"GET": READ}

    @extend_schema(
        operation_id="llm_models",
        tags=["Models"],
        summary="List the models that a run may request",
        description="The list contains the models that are routable now (schema llm_models_item). "
        "For staff, `view=endpoints` lists the endpoints.",
        parameters=[
            OpenApiParameter("view", str, enum=["mapped", "endpoints"], default="mapped"),
        ],
        responses={200: published("LlmModels")},
    )
    def get(self, request: Request) -> Response:
        caller = cast("Caller", request.auth)
        match request.query_params.get("view", "mapped"):
            case "mapped":
                return list_response(routing.list_models(caller.user_id))
            case "endpoints":
                _ENDPOINTS.check_sync(caller, request.user)
                return list_response(routing.list_endpoints())
        raise InvalidRequest("view must be mapped or endpoints.", code="view_unknown")


class AppConfig(View):
    """The settings that staff change while Parley runs."""

    needs: ClassVar[Needs] = {
        "GET": llm_staff("prompts.view_appsetting"),
        "POST": llm_staff("prompts.change_appsetting"),
    }

    @extend_schema(
        operation_id="llm_app_config",
        summary="Get the settings",
        description="For staff. The key of the web search is masked; its source is db, env or none.",
        responses={200: published("AppConfig")},
        tags=["Administration"],
    )
    def get(self, request: Request) -> Response:
        return item_response(_read_config())

    @extend_schema(
        operation_id="llm_app_config_update",
        summary="Change settings",
        description="For staff. Settings that are not given stay unchanged. `web_search_exa_api_key` is "
        "write-only; an empty value removes the key.",
        request=json_of("AppConfigChanges", server={"prompt_mode": "server"}),
        responses={200: published("AppConfig")},
        tags=["Administration"],
    )
    def post(self, request: Request) -> Response:
        _change_config(read_json_object(request), by=get_user(request))
        return item_response(_read_config())


def _read_config() -> dict[str, Any]:
    """Return all settings with their values, and the mask and source of the web search's key."""
    key, name = web_search_key.get_masked_key(), web_search_key.FIELD
    return app_settings.get_all() | {f"{name}_masked": key.masked, f"{name}_source": key.source}


@transaction.atomic
def _change_config(values: dict[str, Any], *, by: User) -> None:
    """Store the given settings; raise `InvalidRequest` and store nothing if one is invalid."""
    for name, value in values.items():
        _check_config(name, value)
    for name, value in values.items():
        if name == web_search_key.FIELD:
            web_search_key.store_key(value, by=by)
        elif app_settings.get(name) != value:
            app_settings.change(name, value, by=by)


def _check_config(name: str, value: object) -> None:
    if name == web_search_key.FIELD:
        web_search_key.check_key(value)
    elif not name.isprintable() or len(name) > 100:
        raise InvalidRequest("There is no such setting.", code="setting_unknown")
    else:
        app_settings.check(name, value)


def read_json_object(request: Request) -> dict[str, Any]:
    """Return the body, which must be an object; raise `InvalidRequest`."""
    if not isinstance(request.data, dict):
        raise InvalidRequest("The body must be a JSON object.", code="invalid_json")
    return dict(request.data)


def item_response(data: Any, *, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return the envelope of one item."""
    body = {"code": 200, "msg": "success", "data": to_builtins(data)}
    return Response(body, status=status, headers=headers)


def list_response(items: Sequence[Any], *, total: int | None = None, **more: int) -> Response:
    """Return the envelope of a list."""
    counted = {"total": len(items) if total is None else total}
    return Response({"code": 200, "msg": "success", "data": to_builtins(items)} | counted | more)


def get_user(request: Request) -> User:
    """Return the account of the caller."""
    return cast("User", request.user)
