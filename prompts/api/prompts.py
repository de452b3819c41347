"""REST views of prompts, for staff (specs/text-run.md §4)."""

from __future__ import annotations

from typing import Annotated, ClassVar, Final

from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from msgspec import Meta, Struct, ValidationError, convert
from rest_framework.request import Request
from rest_framework.response import Response

from config.auth.requirements import Needs
from config.errors import InvalidRequest
from config.http.documentation.json_types import Shown
from config.http.drf_views import View, json_of, published
from prompts.api.models import get_user, item_response, list_response, llm_staff
from prompts.models import PromptKind
from prompts.wordings import active, prompt_crud
from prompts.wordings.prompt_crud import LARGEST_PAGE, ActivePrompt, parse_body

_NOT_FOUND: Final = {404: OpenApiResponse(description="The prompt does not exist.")}
_CONFLICT: Final = {409: OpenApiResponse(description="The name is taken, or the prompt is in use.")}
_COACH: Final = {"name": "Coach", "content": "You are a coach.", "prompt_type": "agent_system"}
_LARGEST_NUMBER: Final = 1_000_000
_VIEW: Final = llm_staff("prompts.view_prompt")
_ADD: Final = llm_staff("prompts.add_prompt")
_CHANGE: Final = llm_staff("prompts.change_prompt")


class PromptVersionChoice(Struct, frozen=True):
    version: Annotated[int, Meta(ge=1, le=_LARGEST_NUMBER)] | None = None


class DeletedPrompt(Shown, frozen=True):
    id: int


class PromptPreview(Shown, frozen=True):
    """The system message of runs that start now, and the prompts that it consists of."""

    agent_system: ActivePrompt | None
    agent_tools: ActivePrompt | None
    system_message: str


class Prompts(View):
    """All prompts."""

    needs: ClassVar[Needs] = {"GET": _VIEW, "POST": _ADD}

    @extend_schema(
        operation_id="llm_prompts",
        tags=["Prompts"],
        summary="List the prompts",
        parameters=[
            OpenApiParameter("page", int, default=1),
            OpenApiParameter("page_size", int, default=20, description=f"1 to {LARGEST_PAGE}."),
            OpenApiParameter("prompt_type", str, enum=PromptKind.values),
            OpenApiParameter("is_active", bool),
        ],
        responses={200: published("Prompts")},
    )
    def get(self, request: Request) -> Response:
        number = _parse_number(request, "page", 1, largest=_LARGEST_NUMBER)
        size = _parse_number(request, "page_size", 20, largest=LARGEST_PAGE)
        total, items = prompt_crud.list_page(
            number=number,
            size=size,
            kind=_parse_choice(request, "prompt_type", PromptKind.values),
            is_active={"true": True, "false": False, None: None}[
                _parse_choice(request, "is_active", ["true", "false"])
            ],
        )
        return list_response(items, total=total, page=number, page_size=size)

    @extend_schema(
        operation_id="llm_prompt_create",
        tags=["Prompts"],
        summary="Create a prompt with its first version",
        request=json_of("PromptBody", coach=_COACH),
        responses={201: published("Prompt")} | _CONFLICT,
    )
    def post(self, request: Request) -> Response:
        created = prompt_crud.create(parse_body(request.data), by=get_user(request))
        location = f"/api/v1/llm/prompts/{created.id}"
        return item_response(created, status=201, headers={"Location": location})


class Prompt(View):
    """One prompt."""

    needs: ClassVar[Needs] = {"GET": _VIEW, "PUT": _CHANGE, "DELETE": _CHANGE}

    @extend_schema(
        operation_id="llm_prompt",
        tags=["Prompts"],
        summary="Get a prompt",
        responses={200: published("Prompt")} | _NOT_FOUND,
    )
    def get(self, request: Request, prompt_id: int) -> Response:
        return item_response(prompt_crud.get_item(prompt_id))

    @extend_schema(
        operation_id="llm_prompt_update",
        tags=["Prompts"],
        summary="Change a prompt; a new wording becomes the next version, active if the prompt is",
        request=json_of("PromptBody", wording={"content": "You are a patient coach."}),
        responses={200: published("Prompt")} | _NOT_FOUND | _CONFLICT,
    )
    def put(self, request: Request, prompt_id: int) -> Response:
        staff = get_user(request)
        return item_response(prompt_crud.update(prompt_id, parse_body(request.data), by=staff))

    @extend_schema(
        operation_id="llm_prompt_delete",
        tags=["Prompts"],
        summary="Delete a prompt that is not in use",
        responses={200: published("PromptDeleted")} | _NOT_FOUND | _CONFLICT,
    )
    def delete(self, request: Request, prompt_id: int) -> Response:
        prompt_crud.delete(prompt_id, by=get_user(request))
        return item_response(DeletedPrompt(prompt_id))


class Activate(View):
    """The activation of a prompt."""

    needs: ClassVar[Needs] = {"POST": _CHANGE}

    @extend_schema(
        operation_id="llm_prompt_activate",
        tags=["Prompts"],
        summary="Activate the newest version, or the given `version`, for the prompt's type",
        request=json_of("PromptVersionChoice", first={"version": 1}),
        responses={200: published("Prompt")} | _NOT_FOUND,
    )
    def post(self, request: Request, prompt_id: int) -> Response:
        staff = get_user(request)
        try:
            number = convert(request.data or {}, PromptVersionChoice).version
        except ValidationError:
            raise InvalidRequest("version must be the number of a version.", field="version") from None
        return item_response(prompt_crud.activate(prompt_id, number, by=staff))


class ActiveAgentPrompts(View):
    """The system message of runs that start now."""

    needs: ClassVar[Needs] = {"GET": _VIEW}

    @extend_schema(
        operation_id="llm_active_agent_prompts",
        tags=["Prompts"],
        summary="Preview the system message of a run, and the prompts that it consists of",
        responses={200: published("ActivePrompts")},
    )
    def get(self, request: Request) -> Response:
        system, tools = map(prompt_crud.get_active, ("agent_system", "agent_tools"))
        return item_response(PromptPreview(system, tools, active.read_system_message()))


def _parse_number(request: Request, name: str, default: int, *, largest: int) -> int:
    raw = request.query_params.get(name)
    if not raw:
        return default
    if not (raw.isascii() and raw.isdigit() and len(raw) <= 9 and 0 < int(raw) <= largest):
        raise InvalidRequest(f"{name} must be a whole number from 1 to {largest}.", field=name)
    return int(raw)


def _parse_choice(request: Request, name: str, options: list[str]) -> str | None:
    raw = request.query_params.get(name)
    if raw and raw not in options:
        raise InvalidRequest(f"{name} must be one of {', '.join(options)}.", field=name)
    return raw or None
