"""Prompts over REST, for staff (specs/text-run.md §4)."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from config.auth.access import Needs
from config.errors import InvalidRequest
from config.rest_views import View
from prompts import active, prompt_items
from prompts.models import PromptKind
from prompts.prompt_items import LARGEST_PAGE, read_body
from prompts.views import ENVELOPE, LISTED, caller_of, enveloped, listed, llm_staff

_BODY: Final = {"application/json": {"type": "object"}}
_LARGEST_NUMBER: Final = 1_000_000
_VIEW: Final = llm_staff("prompts.view_prompt")
_ADD: Final = llm_staff("prompts.add_prompt")
_CHANGE: Final = llm_staff("prompts.change_prompt")


class Prompts(View):
    """All prompts."""

    needs: ClassVar[Needs] = {"GET": _VIEW, "POST": _ADD}

    @extend_schema(
        operation_id="llm_prompts",
        summary="List the prompts",
        parameters=[
            OpenApiParameter("page", int, default=1),
            OpenApiParameter("page_size", int, default=20, description=f"At most {LARGEST_PAGE}."),
            OpenApiParameter("prompt_type", str, enum=PromptKind.values),
            OpenApiParameter("is_active", bool),
        ],
        responses={200: LISTED},
    )
    def get(self, request: Request) -> Response:
        number = _whole(request, "page", 1, largest=_LARGEST_NUMBER)
        size = _whole(request, "page_size", 20, largest=LARGEST_PAGE)
        total, items = prompt_items.page(
            number=number,
            size=size,
            kind=_one_of(request, "prompt_type", PromptKind.values),
            is_active={"true": True, "false": False, None: None}[
                _one_of(request, "is_active", ["true", "false"])
            ],
        )
        return listed(items, total=total, page=number, page_size=size)

    @extend_schema(
        operation_id="llm_prompt_create",
        summary="Make a prompt with its first version",
        request=_BODY,
        responses={201: ENVELOPE},
    )
    def post(self, request: Request) -> Response:
        made = prompt_items.create(read_body(request.data), by=caller_of(request))
        return enveloped(made, status=201)


class Prompt(View):
    """One prompt."""

    needs: ClassVar[Needs] = {"GET": _VIEW, "PUT": _CHANGE, "DELETE": _CHANGE}

    @extend_schema(operation_id="llm_prompt", summary="One prompt", responses={200: ENVELOPE})
    def get(self, request: Request, prompt_id: int) -> Response:
        return enveloped(prompt_items.item(prompt_id))

    @extend_schema(
        operation_id="llm_prompt_update",
        summary="Change a prompt; another wording is a new version, in use at once if the prompt is",
        request=_BODY,
        responses={200: ENVELOPE},
    )
    def put(self, request: Request, prompt_id: int) -> Response:
        staff = caller_of(request)
        return enveloped(prompt_items.update(prompt_id, read_body(request.data), by=staff))

    @extend_schema(
        operation_id="llm_prompt_delete",
        summary="Delete a prompt that is not in use",
        responses={200: ENVELOPE},
    )
    def delete(self, request: Request, prompt_id: int) -> Response:
        prompt_items.delete(prompt_id, by=caller_of(request))
        return enveloped({"id": prompt_id})


class Activate(View):
    """Put a prompt into use."""

    needs: ClassVar[Needs] = {"POST": _CHANGE}

    @extend_schema(
        operation_id="llm_prompt_activate",
        summary="Put the newest version (or `{version}`) into use for its type",
        request=_BODY,
        responses={200: ENVELOPE},
    )
    def post(self, request: Request, prompt_id: int) -> Response:
        staff = caller_of(request)
        body: Any = request.data or {}
        number = body.get("version") if isinstance(body, dict) else "no object"
        if number is not None and (type(number) is not int or not 0 < number <= _LARGEST_NUMBER):
            raise InvalidRequest("version must be the number of a version.", field="version")
        return enveloped(prompt_items.activate(prompt_id, number, by=staff))


class ActiveAgentPrompts(View):
    """What a run that starts now is told."""

    needs: ClassVar[Needs] = {"GET": _VIEW}

    @extend_schema(
        operation_id="llm_active_agent_prompts",
        summary="Preview the system message of a run, and the prompts that it is made of",
        responses={200: ENVELOPE},
    )
    def get(self, request: Request) -> Response:
        found = {kind: prompt_items.in_use(kind) for kind in ("agent_system", "agent_tools")}
        return enveloped(found | {"system_message": active.effective_system_message()})


def _whole(request: Request, name: str, default: int, *, largest: int) -> int:
    given = request.query_params.get(name)
    if not given:
        return default
    if not (given.isascii() and given.isdigit() and len(given) <= 9 and 0 < int(given) <= largest):
        raise InvalidRequest(f"{name} must be a whole number from 1 to {largest}.", field=name)
    return int(given)


def _one_of(request: Request, name: str, options: list[str]) -> str | None:
    given = request.query_params.get(name)
    if given and given not in options:
        raise InvalidRequest(f"{name} must be one of {', '.join(options)}.", field=name)
    return given or None
